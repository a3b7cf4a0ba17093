// How the server is: its queue, its workers, and the runs that failed.

import { useState } from "preact/hooks";
import { client, own, reason } from "../api/client.ts";
import { useEvery, useLoad } from "../lib/load.ts";
import { length, number } from "../lib/time.ts";
import { href } from "../route.ts";
import { Button, Empty, Failure, Id, Panel, Time, Title, Waiting } from "../ui/basic.tsx";

type Figures = {
  queue: { n_pending: number; n_running: number };
  runs_ended: Record<string, number>;
  streams_open: number;
  store_calls: number;
};

type Failed = { thread_id: string; updated_at: string; metadata?: { graph_id?: string; assistant_id?: string }; error?: { error?: string; message?: string } | null };
type Busy = { thread_id: string; updated_at: string; metadata?: { graph_id?: string } };

export function Operations() {
  const figures = useLoad("figures", () => own<Figures>("/metrics", { format: "json" }));
  const info = useLoad("info", () => own<{ version: string }>("/info"));
  const failed = useLoad("failed", async () => (await client.value.threads.search({
    status: "error", limit: 20, sortBy: "updated_at", sortOrder: "desc", select: ["thread_id", "updated_at", "metadata", "error"],
  } as Parameters<typeof client.value.threads.search>[0])) as unknown as Failed[]);
  const busy = useLoad("busy", async () => (await client.value.threads.search({
    status: "busy", limit: 20, sortBy: "updated_at", sortOrder: "asc", select: ["thread_id", "updated_at", "metadata"],
  })) as unknown as Busy[]);
  useEvery(2000, () => {
    figures.again();
    failed.again();
    busy.again();
  });
  const oldest = busy.data?.[0];
  const now = figures.data;
  return (
    <>
      <Title about={info.data ? `superstep ${info.data.version}` : undefined}>Operations</Title>
      {figures.error && <Failure why={figures.error} again={figures.again} />}
      {figures.waiting && <Waiting rows={2} />}
      {now && (
        <dl class="figures" aria-label="Figures">
          <Figure name="waiting" value={number(now.queue.n_pending)} />
          <Figure name="running" value={number(now.queue.n_running)} />
          <Figure name="longest at work" value={oldest ? length(Math.max(0, Date.now() - Date.parse(oldest.updated_at))) : "–"} />
          <Figure name="readers" value={number(now.streams_open)} />
          <Figure name="calls of the store" value={number(now.store_calls)} />
          {Object.entries(now.runs_ended).filter(([, count]) => count > 0).map(([end, count]) => <Figure key={end} name={`ended: ${end}`} value={number(count)} />)}
        </dl>
      )}
      <Panel title="Failed threads" name="Failed threads">
        {failed.error && <Failure why={failed.error} again={failed.again} />}
        {failed.data?.length === 0 && <Empty title="No thread has failed" />}
        <ul class="plain-list">
          {failed.data?.map((thread) => <FailedThread key={thread.thread_id} thread={thread} done={failed.again} />)}
        </ul>
      </Panel>
      <Panel title="Running threads" name="Running threads">
        {busy.data?.length === 0 && <Empty title="Nothing runs" />}
        <ul class="plain-list">
          {busy.data?.map((thread) => (
            <li key={thread.thread_id} class="row wrap">
              <Id of={thread.thread_id} to={href(["thread", thread.thread_id])} />
              <span>{thread.metadata?.graph_id}</span>
              <span class="dim">since <Time at={thread.updated_at} /></span>
            </li>
          ))}
        </ul>
      </Panel>
      <p class="dim">Everything else is at <code>/metrics</code> for Prometheus.</p>
    </>
  );
}

function Figure({ name, value }: { name: string; value: string }) {
  return <div class="figure"><dt>{name}</dt><dd class="num">{value}</dd></div>;
}

function FailedThread({ thread, done }: { thread: Failed; done: () => void }) {
  const [problem, complain] = useState<string | null>(null);
  const retry = async () => {
    complain(null);
    try {
      // Without input a thread goes on where it is: the tasks that failed run again.
      await client.value.runs.create(thread.thread_id, thread.metadata?.assistant_id ?? thread.metadata?.graph_id ?? "", {
        input: null, multitaskStrategy: "reject", streamResumable: true,
      });
      done();
    } catch (error) {
      complain(reason(error));
    }
  };
  return (
    <li class="stack">
      <div class="row wrap">
        <Id of={thread.thread_id} to={href(["thread", thread.thread_id])} />
        <span>{thread.metadata?.graph_id}</span>
        <span class="dim"><Time at={thread.updated_at} /></span>
        <span class="grow break">{thread.error?.error}: {thread.error?.message}</span>
        <Button onClick={retry}>Try again</Button>
      </div>
      {problem && <Failure why={problem} />}
    </li>
  );
}
