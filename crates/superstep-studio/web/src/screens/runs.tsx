// The runs of a thread, and one of them with its events.

import { useEffect, useRef, useState } from "preact/hooks";
import { client, reason } from "../api/client.ts";
import type { Json } from "../api/types.ts";
import { useEvery, useLoad } from "../lib/load.ts";
import { clock, exact, length, number } from "../lib/time.ts";
import { href } from "../route.ts";
import { Button, Empty, Failure, Id, Panel, Status, Time, Waiting } from "../ui/basic.tsx";
import { Shown } from "../ui/value.tsx";
import { CopyAs } from "./copy_as.tsx";
import type { ThreadProps } from "./thread.tsx";

type Run = {
  run_id: string;
  assistant_id: string;
  status: string;
  created_at: string;
  updated_at: string;
  metadata: Record<string, Json>;
  kwargs: Record<string, Json>;
  multitask_strategy: string;
  attempt?: number;
  worker?: string | null;
  lease_until?: string | null;
};

const over = (run: Run) => !["pending", "running"].includes(run.status);

export function Runs({ id, info, live }: ThreadProps) {
  const [count, show] = useState(20);
  const list = useLoad(`runs ${id} ${count}`, async () => (await client.value.runs.list(id, { limit: count })) as unknown as Run[]);
  const first = useRef(true);
  useEffect(() => {
    if (!first.current) list.again();
    first.current = false;
  }, [info.updated_at, info.status, live.moved]);
  if (list.error) return <Failure why={list.error} again={list.again} />;
  if (list.waiting) return <Waiting rows={4} />;
  const runs = list.data ?? [];
  if (runs.length === 0) return <Empty title="No run yet">A run drives the thread until it is done, asks or fails.</Empty>;
  return (
    <section aria-label="Runs">
      <ul class="rows">
        {runs.map((run) => (
          <li key={run.run_id}>
            <a data-row class="row-link thread-row" href={href(["thread", id, "run", run.run_id])}>
              <Status of={run.status} />
              <span class="mono">{run.run_id.slice(-12)}</span>
              <span class="num">{over(run) ? `took ${length(Date.parse(run.updated_at) - Date.parse(run.created_at))}` : ""}</span>
              <span class="num"><Time at={run.created_at} /></span>
            </a>
          </li>
        ))}
      </ul>
      {runs.length === count && <Button onClick={() => show(count + 50)}>Show more</Button>}
    </section>
  );
}

export function RunPage({ id, run: runId, live, moved }: ThreadProps & { run: string }) {
  const run = useLoad(`run ${id} ${runId}`, async () => (await client.value.runs.get(id, runId)) as unknown as Run);
  const [problem, complain] = useState<string | null>(null);
  useEvery(2000, () => {
    if (run.data && !over(run.data)) run.again();
  });
  if (run.error && !run.data) return <Failure why={run.error} again={run.again} />;
  if (!run.data) return <Waiting rows={6} />;
  const about = run.data;
  const cancel = async (action: "interrupt" | "rollback") => {
    complain(null);
    try {
      await client.value.runs.cancel(id, runId, true, action);
      moved();
      if (action === "interrupt") run.again();
    } catch (error) {
      complain(reason(error));
    }
  };
  const body: Record<string, Json> = {};
  for (const name of ["input", "command"]) if (about.kwargs[name] != null) body[name] = about.kwargs[name] as Json;
  return (
    <section class="stack" aria-label="Run">
      <div class="row wrap">
        <a class="button" href={href(["thread", id, "runs"])}>All runs</a>
        <Status of={about.status} />
        <Id of={about.run_id} />
        <span class="grow" />
        {!over(about) && <Button onClick={() => cancel("interrupt")} title="Stop it; what it did stays">Cancel</Button>}
        {!over(about) && <Button kind="danger" onClick={() => cancel("rollback")} title="Stop it, and delete what it did">Cancel and roll back</Button>}
      </div>
      {problem && <Failure why={problem} />}
      <Panel title="The run" name="About the run">
        <dl class="facts">
          <dt>Started</dt><dd><Time at={about.created_at} /></dd>
          <dt>{over(about) ? "Took" : "Running for"}</dt>
          <dd class="num">{length((over(about) ? Date.parse(about.updated_at) : Date.now()) - Date.parse(about.created_at))}</dd>
          <dt>Assistant</dt><dd><Id of={about.assistant_id} to={href(["assistant", about.assistant_id])} /></dd>
          <dt>If busy</dt><dd>{about.multitask_strategy}</dd>
          {about.attempt !== undefined && <><dt>Attempt</dt><dd class="num">{about.attempt}</dd></>}
          {about.worker && <><dt>Worker</dt><dd class="mono">{about.worker}</dd></>}
          {about.lease_until && <><dt>Lease until</dt><dd><Time at={about.lease_until} /></dd></>}
        </dl>
        <CopyAs started={{ thread: id, assistant: about.assistant_id, body }} />
      </Panel>
      <Panel title="What was asked for" name="Request"><Shown of={about.kwargs} open={2} /></Panel>
      <Panel title="Events" name="Events"><Events thread={id} run={about} live={live} /></Panel>
    </section>
  );
}

type Event = { seq: string; name: string; data: unknown; at: number };

/** The events of a run: those that the server kept, then those to come. The list has a fixed height. */
function Events({ thread, run, live }: { thread: string; run: Run; live: ThreadProps["live"] }) {
  const [events, set] = useState<Event[]>([]);
  const [total, count] = useState(0);
  const [ended, end] = useState<string | null>(null);
  const kept = run.kwargs.resumable === true || run.kwargs.stream_resumable === true;
  useEffect(() => {
    if (over(run) && !kept) return;
    const stop = new AbortController();
    let waiting: Event[] = [];
    let asked = false;
    let seen = 0;
    const show = () => {
      asked = false;
      const batch = waiting;
      waiting = [];
      set((before) => [...before, ...batch].slice(-500));
      count(seen);
    };
    const follow = async () => {
      try {
        const stream = client.value.runs.joinStream(thread, run.run_id, { signal: stop.signal, ...(kept ? { lastEventId: "-1" } : {}) });
        for await (const { id, event, data } of stream) {
          seen += 1;
          waiting.push({ seq: id?.split("-").pop() ?? String(seen), name: event, data, at: Date.now() });
          if (waiting.length > 500) waiting = waiting.slice(-500);
          if (!asked) {
            asked = true;
            requestAnimationFrame(show);
          }
        }
        end("That was all.");
      } catch (error) {
        if (!stop.signal.aborted) end(reason(error));
      }
    };
    follow();
    return () => stop.abort();
  }, [thread, run.run_id]);
  if (over(run) && !kept && events.length === 0) {
    return (
      <p class="dim">
        The run is over, and it was not asked to keep its events (stream_resumable). Its supersteps are on
        the <a href={href(["thread", thread, "timeline"])}>timeline</a>.
      </p>
    );
  }
  return (
    <>
      <p class="dim num">{number(total)} events{total > events.length ? `; the last ${events.length} are shown` : ""}. {ended ?? (live.connected ? "Live." : "")}</p>
      <ol class="events" tabIndex={0} aria-label="Events">
        {events.map((event) => <EventRow key={event.seq} event={event} />)}
      </ol>
    </>
  );
}

function EventRow({ event }: { event: Event }) {
  const [open, toggle] = useState(false);
  return (
    <li>
      <button type="button" class="event" aria-expanded={open} onClick={() => toggle(!open)}>
        <span class="num dim">{event.seq}</span>
        <span class="mono">{event.name}</span>
        <time class="num dim" title={exact(new Date(event.at).toISOString())}>{clock(new Date(event.at).toISOString())}</time>
      </button>
      {open && <Shown of={event.data as Json} open={3} />}
    </li>
  );
}
