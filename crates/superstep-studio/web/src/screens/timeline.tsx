// Why is the thread where it is: its supersteps as rows, their tasks as lanes, the newest first.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { own, reason } from "../api/client.ts";
import type { Changes, Moment, TaskSeen } from "../api/types.ts";
import { useLoad } from "../lib/load.ts";
import { clock, day, exact, length } from "../lib/time.ts";
import { href } from "../route.ts";
import { Badge, Button, Empty, Failure, Waiting, type Tone } from "../ui/basic.tsx";
import { readTimeline, type ThreadProps } from "./thread.tsx";
import { ChangeList } from "./changes.tsx";

/** A pause that is longer is folded into a line. */
const IDLE = 30_000;
const PAGE = 100;

/** The supersteps of a thread, read page by page. The newest page is read again whenever something happened. */
export function useTimeline(id: string, changed: string) {
  const newest = useLoad(`timeline ${id}`, () => readTimeline(id, undefined, PAGE));
  const [older, keep] = useState<{ rows: Moment[]; before: string | null } | null>(null);
  const [busy, wait] = useState(false);
  const [problem, complain] = useState<string | null>(null);
  const first = useRef(true);
  const due = useRef(0);
  useEffect(() => {
    // At most so often, however fast supersteps follow each other.
    if (!first.current && !due.current) {
      due.current = window.setTimeout(() => {
        due.current = 0;
        newest.again();
      }, 300);
    }
    first.current = false;
  }, [changed]);
  useEffect(() => () => clearTimeout(due.current), []);
  const rows = useMemo(() => {
    const all = new Map<string, Moment>();
    for (const row of newest.data?.checkpoints ?? []) all.set(row.checkpoint_id, row);
    // Rows that were pushed out of the newest page since it was read stay known.
    for (const row of older?.rows ?? []) if (!all.has(row.checkpoint_id)) all.set(row.checkpoint_id, row);
    return [...all.values()].sort((a, b) => (a.checkpoint_id < b.checkpoint_id ? 1 : -1));
  }, [newest.data, older]);
  useEffect(() => {
    // What was the newest page before is kept when it moves down.
    const page = newest.data?.checkpoints;
    if (!page) return;
    keep((now) => {
      const known = new Map((now?.rows ?? []).map((row) => [row.checkpoint_id, row]));
      for (const row of page) known.set(row.checkpoint_id, row);
      return { rows: [...known.values()], before: now ? now.before : newest.data?.before ?? null };
    });
  }, [newest.data]);
  const more = async () => {
    if (!older?.before) return;
    wait(true);
    complain(null);
    try {
      const page = await readTimeline(id, older.before, 500);
      keep((now) => ({ rows: [...(now?.rows ?? []), ...page.checkpoints], before: page.before }));
    } catch (error) {
      complain(reason(error));
    }
    wait(false);
  };
  return { rows, waiting: newest.waiting, error: newest.error ?? problem, again: newest.again, more, busy, hasMore: Boolean(older?.before) };
}

export function Timeline({ id, info, live, query }: ThreadProps) {
  const time = useTimeline(id, `${info.updated_at} ${info.status} ${live.moved}`);
  const [open, toggle] = useState<string | null>(query.get("at"));
  const branches = useMemo(() => branchesOf(time.rows), [time.rows]);
  // What the tasks of a superstep changed is seen at the checkpoint that they led to, the newest one if there are several.
  const after = useMemo(() => new Map([...time.rows].reverse().map((row) => [row.parent_checkpoint_id ?? "", row.checkpoint_id])), [time.rows]);
  const failed = time.rows.find((row) => row.tasks.some((task) => task.error));
  if (time.waiting) return <Waiting rows={8} />;
  const show = (row: Moment) => {
    toggle(row.checkpoint_id);
    requestAnimationFrame(() => {
      document.getElementById(`at-${row.checkpoint_id}`)?.focus();
    });
  };
  return (
    <section aria-label="Timeline">
      {time.error && <Failure why={time.error} again={time.again} />}
      {time.rows.length === 0 && !time.error && (
        <Empty title="Nothing has run on this thread yet"><a href={href(["thread", id, "try"])}>Start a run</a></Empty>
      )}
      {failed && (
        <div class="row">
          <Button kind="danger" onClick={() => show(failed)}>Go to the failure in step {failed.step}</Button>
        </div>
      )}
      <ol class="timeline">
        {time.rows.map((row, at) => {
          const newer = time.rows[at - 1];
          const pause = newer ? Date.parse(newer.created_at) - Date.parse(row.created_at) : 0;
          return (
            <>
              {newer && day(newer.created_at) !== day(row.created_at) && <li key={`d${row.checkpoint_id}`} class="pause">{day(row.created_at)}</li>}
              {pause > IDLE && <li key={`p${row.checkpoint_id}`} class="pause">{length(pause)} without a superstep</li>}
              <Row
                key={row.checkpoint_id}
                row={row}
                thread={id}
                after={after.get(row.checkpoint_id) ?? null}
                branch={branches.get(row.checkpoint_id) ?? 0}
                took={newer && newer.parent_checkpoint_id === row.checkpoint_id ? pause : null}
                open={open === row.checkpoint_id}
                toggle={() => toggle(open === row.checkpoint_id ? null : row.checkpoint_id)}
              />
            </>
          );
        })}
      </ol>
      {time.hasMore && <Button disabled={time.busy} onClick={time.more}>{time.busy ? "Reading…" : "Older supersteps"}</Button>}
    </section>
  );
}

/** How far to the right each checkpoint stands: the line of the head is 0, each line that it left is one more. */
export function branchesOf(newestFirst: Moment[]): Map<string, number> {
  const byId = new Map(newestFirst.map((row) => [row.checkpoint_id, row]));
  const lanes = new Map<string, number>();
  let next = 0;
  for (const row of newestFirst) {
    if (lanes.has(row.checkpoint_id)) continue;
    const lane = next++;
    for (let at: Moment | undefined = row; at && !lanes.has(at.checkpoint_id); at = byId.get(at.parent_checkpoint_id ?? "")) {
      lanes.set(at.checkpoint_id, lane);
    }
  }
  return lanes;
}

export function taskTone(task: TaskSeen): Tone {
  if (task.error) return "bad";
  if (task.questions > 0 && task.wrote === null) return "ask";
  return task.wrote ? "good" : "plain";
}

/** More lanes are counted, not shown. */
const MANY = 24;

function alarming(task: TaskSeen): boolean {
  return task.error !== null || task.questions > 0;
}

const SOURCES: Record<string, string> = {
  input: "input",
  loop: "",
  update: "edited",
  fork: "branch",
};

function Row({ row, thread, after, branch, took, open, toggle }: {
  row: Moment;
  thread: string;
  after: string | null;
  branch: number;
  took: number | null;
  open: boolean;
  toggle: () => void;
}) {
  const source = SOURCES[row.source] ?? row.source;
  // The hidden node that hands the input on is no task of the user's. Failures and questions are never left out.
  const own = row.tasks.filter((task) => task.name !== "__start__");
  const lanes = [...own.filter(alarming), ...own.filter((task) => !alarming(task))].slice(0, MANY);
  return (
    <li class={`moment lane-${Math.min(branch, 5)}${open ? " open" : ""}`}>
      <button
        type="button"
        data-row
        id={`at-${row.checkpoint_id}`}
        class="moment-head"
        aria-expanded={open}
        onClick={toggle}
      >
        <span class="step num" title={`checkpoint ${row.checkpoint_id}`}>{row.step}</span>
        <span class="lanes">
          {source && <Badge>{source}</Badge>}
          {lanes.map((task) => <Lane key={task.id} task={task} />)}
          {own.length > MANY && <Badge>and {own.length - MANY} more</Badge>}
          {row.tasks.length === 0 && <span class="dim">{row.next.length === 0 ? "end" : `next: ${row.next.join(", ")}`}</span>}
        </span>
        {branch > 0 && <Badge tone="warn">branch {branch}</Badge>}
        <span class="took num dim">{took === null ? "" : length(took)}</span>
        <time class="num dim" dateTime={row.created_at} title={exact(row.created_at)}>{clock(row.created_at)}</time>
      </button>
      {open && <Details row={row} thread={thread} after={after} />}
    </li>
  );
}

function Lane({ task }: { task: TaskSeen }) {
  const about = task.error ? "failed" : task.wrote ? `wrote ${task.wrote.join(", ") || "nothing"}` : task.questions > 0 ? "asks" : "not finished";
  return <Badge tone={taskTone(task)}><span title={about}>{task.name}<span class="visually-hidden"> {about}</span></span></Badge>;
}

function Details({ row, thread, after }: { row: Moment; thread: string; after: string | null }) {
  const at = row.checkpoint_id;
  const seen = after ?? at;
  const changes = useLoad(`changes ${thread} ${seen}`, () => own<Changes>(`/threads/${thread}/changes`, { checkpoint_id: seen }));
  return (
    <div class="moment-body stack">
      <div class="row wrap">
        <a class="button" href={href(["thread", thread, "state"], { at })}>State here</a>
        <a class="button" href={href(["thread", thread, "graph"], { at })}>On the graph</a>
        <a class="button" href={href(["thread", thread, "state"], { at, fork: true })}>Fork with an edit</a>
        <a class="button" href={href(["thread", thread, "compare"], after ? { a: at, b: after } : { a: row.parent_checkpoint_id, b: at })}>Compare</a>
        {row.run_id && <a class="button" href={href(["thread", thread, "run", row.run_id])}>Its run</a>}
      </div>
      {row.tasks.filter((task) => task.name !== "__start__").slice(0, 200).map((task) => (
        <div class="task" key={task.id}>
          <Badge tone={taskTone(task)}>{task.name}</Badge>
          {task.error ? <pre class="trace">{task.error}</pre> : (
            <span class="dim">
              {task.wrote ? (task.wrote.length > 0 ? `wrote ${task.wrote.join(", ")}` : "wrote nothing") : task.questions > 0 ? "asks, and waits for the answer" : "has not finished"}
            </span>
          )}
        </div>
      ))}
      <h3>{after ? "What this superstep changed" : "What the superstep before changed"}</h3>
      {changes.waiting && <Waiting rows={2} />}
      {changes.error && <Failure why={changes.error} again={changes.again} />}
      {changes.data && <ChangeList of={changes.data} thread={thread} />}
    </div>
  );
}
