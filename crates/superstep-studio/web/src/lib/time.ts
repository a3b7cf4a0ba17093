// Times and numbers as people read them, in their own zone.

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });
const EXACT = new Intl.DateTimeFormat("en", { dateStyle: "full", timeStyle: "long" });
const CLOCK = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat("en", { year: "numeric", month: "short", day: "numeric" });
const NUMBER = new Intl.NumberFormat("en");

const STEPS: [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

export function ago(time: string, now = Date.now()): string {
  const seconds = (Date.parse(time) - now) / 1000;
  if (Number.isNaN(seconds)) return "at an unknown time";
  const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return RELATIVE.format(Math.trunc(seconds / size), unit);
}

export function exact(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : `${EXACT.format(date)} (${time})`;
}

export function clock(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : CLOCK.format(date);
}

export function day(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : DAY.format(date);
}

/** How long something took, in the two largest units. */
export function length(millis: number): string {
  if (millis < 1000) return `${Math.round(millis)} ms`;
  if (millis < 60_000) return `${(millis / 1000).toFixed(1)} s`;
  const units: [string, number][] = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]];
  const parts: string[] = [];
  let rest = millis;
  for (const [name, size] of units) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count} ${name}`);
  }
  return parts.slice(0, 2).join(" ");
}

export function number(value: number): string {
  return NUMBER.format(value);
}

/** The beginning of an id, enough to tell it from its neighbours. */
export function short(id: string): string {
  return id.length > 13 ? `${id.slice(0, 4)}…${id.slice(-6)}` : id;
}
