// One thread: its frame, and the views in it.

import { useEffect, useRef, useState } from "preact/hooks";
import { client, own, reason } from "../api/client.ts";
import { answers, asked } from "../api/inbox.ts";
import type { Timeline as Page } from "../api/types.ts";
import { exported } from "../lib/copy.ts";
import { useLive, type Live } from "../lib/live.ts";
import { useEvery, useLoad } from "../lib/load.ts";
import { go, href } from "../route.ts";
import { Badge, Button, CopyButton, Dialog, Failure, Notice, Status, Tabs, Time, Waiting } from "../ui/basic.tsx";
import { Shown } from "../ui/value.tsx";
import { Compare } from "./compare.tsx";
import { AnswerForm, headline } from "./inbox.tsx";
import { RunPage, Runs } from "./runs.tsx";
import { StateView } from "./state.tsx";
import { ThreadGraph } from "./thread_graph.tsx";
import { Timeline } from "./timeline.tsx";
import { Try } from "./try.tsx";

export type Info = {
  thread_id: string;
  status: string;
  created_at: string;
  updated_at: string;
  metadata: { graph_id?: string; assistant_id?: string } & Record<string, unknown>;
  error: { error?: string; message?: string } | null;
  interrupts: Record<string, unknown[]>;
};

export type ThreadProps = { id: string; info: Info; live: Live; query: URLSearchParams; moved: () => void };

const SELECT = ["thread_id", "status", "created_at", "updated_at", "metadata", "interrupts", "error"];

/** The thread without its values, which may be large. */
async function read(id: string): Promise<Info | null> {
  const asked = { ids: [id], limit: 1, select: SELECT } as Parameters<typeof client.value.threads.search>[0];
  const [found] = (await client.value.threads.search(asked)) as unknown as Info[];
  // One that is stored only as checkpoints is taken in when it is asked for by its id.
  return found ?? ((await client.value.threads.get(id)) as unknown as Info);
}

export function Thread({ id, view, more, query }: { id: string; view: string; more: string; query: URLSearchParams }) {
  const info = useLoad(`thread ${id}`, () => read(id));
  const live = useLive(id);
  const seen = useRef(0);
  const due = useRef(0);
  const moved = () => {
    // At most twice a second, however fast supersteps follow each other.
    if (due.current) return;
    due.current = window.setTimeout(() => {
      due.current = 0;
      info.again();
    }, 500);
  };
  useEffect(() => () => clearTimeout(due.current), []);
  useEffect(() => {
    if (live.moved !== seen.current) moved();
    seen.current = live.moved;
  }, [live.moved]);
  useEvery(5000, info.again);
  if (info.status === 404 || info.status === 422) {
    return <Failure why={info.error ?? "There is no such thread."} />;
  }
  if (!info.data) return info.error ? <Failure why={info.error} again={info.again} /> : <Waiting rows={6} />;
  const props: ThreadProps = { id, info: info.data, live, query, moved: info.again };
  const tab = (name: string, label: string) => ({ id: name, label, to: href(["thread", id, name]) });
  return (
    <>
      <Head info={info.data} live={live} done={info.again} />
      {info.error && <Failure why={info.error} again={info.again} />}
      <Tabs
        now={view === "run" ? "runs" : view}
        tabs={[
          tab("timeline", "Timeline"),
          tab("graph", "Graph"),
          tab("state", "State"),
          tab("compare", "Compare"),
          tab("runs", "Runs"),
          tab("try", "Continue"),
        ]}
      />
      <ThreadView view={view} more={more} {...props} />
    </>
  );
}

function ThreadView({ view, more, ...props }: ThreadProps & { view: string; more: string }) {
  switch (view) {
    case "graph":
      return <ThreadGraph {...props} />;
    case "state":
      return <StateView {...props} />;
    case "compare":
      return <Compare {...props} />;
    case "runs":
      return <Runs {...props} />;
    case "run":
      return <RunPage {...props} run={more} />;
    case "try":
      return <Try {...props} />;
    default:
      return <Timeline {...props} />;
  }
}

function Head({ info, live, done }: { info: Info; live: Live; done: () => void }) {
  const [asking, ask] = useState(false);
  const [problem, complain] = useState<string | null>(null);
  const id = info.thread_id;
  const graph = info.metadata.graph_id;
  const remove = async () => {
    try {
      await client.value.threads.delete(id);
      go(["threads"]);
    } catch (error) {
      complain(reason(error));
    }
    ask(false);
  };
  const save = async () => {
    try {
      await exported(id, info);
    } catch (error) {
      complain(reason(error));
    }
  };
  return (
    <header class="thread-head">
      <div class="row wrap">
        <h1>{graph ?? "Thread"}</h1>
        <Status of={info.status} />
        <span class="mono dim break">{id}</span>
        <CopyButton text={id}>Copy id</CopyButton>
        <span class="grow" />
        <Button kind="quiet" onClick={save}>Export</Button>
        <Button kind="quiet" onClick={() => ask(true)}>Delete</Button>
      </div>
      <p class="dim">
        Started <Time at={info.created_at} />, changed <Time at={info.updated_at} />
        {graph && <>, <a href={href(["graphs", graph])}>graph {graph}</a></>}
      </p>
      {problem && <Failure why={problem} />}
      {info.status === "error" && info.error && (
        <Notice tone="bad"><b>{info.error.error ?? "The last run failed"}</b>: {info.error.message}</Notice>
      )}
      {info.status === "interrupted" && Object.keys(info.interrupts).length > 0 && <Open info={info} done={done} />}
      <Answers id={id} changed={info.updated_at} />
      <Running live={live} status={info.status} />
      {asking && (
        <Dialog title="Delete this thread?" onClose={() => ask(false)}>
          <p>Its runs and checkpoints are deleted, too. This cannot be undone.</p>
          <div class="row end">
            <Button onClick={() => ask(false)}>Keep it</Button>
            <Button kind="danger" onClick={remove}>Delete</Button>
          </div>
        </Dialog>
      )}
    </header>
  );
}

/** The questions of the thread, to be answered here as well as in the inbox. */
function Open({ info, done }: { info: Info; done: () => void }) {
  const list = useLoad(`open ${info.thread_id} ${info.updated_at}`, () => asked(info.thread_id));
  if (!list.data) return null;
  return (
    <div class="stack">
      {list.data.map((one) => (
        <details class="panel ask" key={one.id}>
          <summary><Badge tone="ask">{one.node}</Badge> {headline(one.value)}</summary>
          <AnswerForm thread={info.thread_id} id={one.id} value={one.value} gone={false} done={done} />
        </details>
      ))}
    </div>
  );
}

/** Who answered what, if the server keeps that. */
function Answers({ id, changed }: { id: string; changed: string }) {
  const list = useLoad(`answers ${id} ${changed}`, () => answers(id));
  if (!list.data || list.data.length === 0) return null;
  return (
    <details class="panel">
      <summary>Answers given: {list.data.length}</summary>
      <ul class="plain-list">
        {list.data.map((one) => (
          <li key={`${one.interrupt_id} ${one.answered_at}`}>
            <span class="dim">{one.answered_by ?? "somebody"}, <Time at={one.answered_at} />: {headline(one.question)}</span>
            <Shown of={one.answer} open={1} />
            {one.comment && <p>{one.comment}</p>}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** What runs now, in a line that is there before anything runs. */
function Running({ live, status }: { live: Live; status: string }) {
  const names = [...new Set(live.running.values())];
  return (
    <div class="live-line" aria-live="polite">
      <span class={`dot ${live.connected ? (status === "busy" ? "busy" : "on") : ""}`} aria-hidden="true" />
      {!live.connected ? "Not connected" : names.length > 0 ? `Running: ${names.slice(0, 6).join(", ")}${names.length > 6 ? ` and ${names.length - 6} more` : ""}` : status === "busy" ? "Running" : "Live: events appear as they happen"}
      {live.count > 0 && <span class="dim num"> {live.count} events</span>}
    </div>
  );
}

export function readTimeline(id: string, before?: string, limit = 100): Promise<Page> {
  return own<Page>(`/threads/${id}/timeline`, { before, limit });
}
