// The next times of a schedule. The first one is the server's; the page works out those that follow.

type Parts = { minute: number; hour: number; day: number; month: number; weekday: number };

const NAMES: Record<string, number> = Object.fromEntries([
  ...["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"].map((name, at) => [name, at + 1]),
  ...["sun", "mon", "tue", "wed", "thu", "fri", "sat"].map((name, at) => [name, at]),
]);

/** The values of a field, or nothing if it says something that only the server knows. */
function field(text: string, least: number, most: number): Set<number> | null {
  const found = new Set<number>();
  for (const part of text.toLowerCase().split(",")) {
    const [range = "", every] = part.split("/");
    const step = every === undefined ? 1 : Number(every);
    let [from, to] = [least, most];
    if (range !== "*") {
      const [a = "", b] = range.split("-");
      from = NAMES[a] ?? Number(a);
      to = b === undefined ? (every === undefined ? from : most) : NAMES[b] ?? Number(b);
    }
    if (![from, to, step].every(Number.isInteger) || step < 1 || from < least || to > most) return null;
    for (let at = from; at <= to; at += step) found.add(at);
  }
  return found;
}

function inZone(zone: string): (time: number) => Parts {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: zone, hourCycle: "h23", minute: "numeric", hour: "numeric", day: "numeric", month: "numeric", weekday: "short",
  });
  return (time) => {
    const parts = Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]));
    return {
      minute: Number(parts.minute),
      hour: Number(parts.hour),
      day: Number(parts.day),
      month: Number(parts.month),
      weekday: NAMES[(parts.weekday ?? "").toLowerCase()] ?? 0,
    };
  };
}

const MINUTE = 60_000;

/** Up to `count` times, the first of them given. Only the first if the schedule cannot be worked out here. */
export function firings(schedule: string, zone: string, first: string | null, count: number): string[] {
  if (!first) return [];
  const found = [first];
  const fields = schedule.trim().split(/\s+/);
  const [minutes, hours, days, months, weekdays] = [
    field(fields[0] ?? "", 0, 59), field(fields[1] ?? "", 0, 23), field(fields[2] ?? "", 1, 31),
    field(fields[3] ?? "", 1, 12), field(fields[4] ?? "", 0, 7),
  ];
  if (fields.length !== 5 || !minutes || !hours || !days || !months || !weekdays) return found;
  if (weekdays.has(7)) weekdays.add(0);
  let read: (time: number) => Parts;
  try {
    read = inZone(zone);
  } catch {
    return found;
  }
  // As in cron: if both kinds of days are restricted, either is enough.
  const either = fields[2] !== "*" && fields[4] !== "*";
  const fits = (at: Parts) => {
    const [byDay, byWeekday] = [days.has(at.day), weekdays.has(at.weekday)];
    return months.has(at.month) && (either ? byDay || byWeekday : byDay && byWeekday);
  };
  let time = Math.floor(Date.parse(first) / MINUTE) * MINUTE + MINUTE;
  // Days and hours that do not fit are passed in one step, so rare schedules are found, too.
  for (let steps = 0; found.length < count && steps < 20_000; steps += 1) {
    const at = read(time);
    if (!fits(at)) time += (60 - at.minute) * MINUTE + Math.max(0, 22 - at.hour) * 60 * MINUTE;
    else if (!hours.has(at.hour)) time += (60 - at.minute) * MINUTE;
    else {
      if (minutes.has(at.minute)) found.push(new Date(time).toISOString());
      time += MINUTE;
    }
  }
  return found;
}
