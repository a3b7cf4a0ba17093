// Where in its graph a thread is, now or at a checkpoint.

import { useState } from "preact/hooks";
import { own } from "../api/client.ts";
import type { Layout, Moment, Timeline } from "../api/types.ts";
import { useLoad } from "../lib/load.ts";
import type { Live } from "../lib/live.ts";
import { href, refine } from "../route.ts";
import { Button, Empty, Failure, Panel, Waiting } from "../ui/basic.tsx";
import { GraphView, type NodeState } from "../ui/graph.tsx";
import type { ThreadProps } from "./thread.tsx";
import { useTimeline } from "./timeline.tsx";

/** What the nodes did on the way to a checkpoint, and what runs from there. */
function statesAt(rows: Moment[], at: Moment | undefined): Map<string, NodeState> {
  const states = new Map<string, NodeState>();
  const byId = new Map(rows.map((row) => [row.checkpoint_id, row]));
  const run = at?.run_id;
  for (let row = byId.get(at?.parent_checkpoint_id ?? ""); row; row = byId.get(row.parent_checkpoint_id ?? "")) {
    // The way since the last input: what ran before it belongs to another story.
    for (const task of row.tasks) if (!states.has(task.name)) states.set(task.name, task.error ? "failed" : "done");
    if (row.source === "input" && row.run_id !== run) break;
    if (row.source === "input") break;
  }
  for (const task of at?.tasks ?? []) {
    const state = task.error ? "failed" : task.wrote ? "done" : task.questions > 0 ? "asks" : "next";
    states.set(task.name, state);
  }
  states.delete("__start__");
  return states;
}

/** What happened inside the subgraphs that ran on the way to a checkpoint, by the ids of their nodes. */
async function insideOf(thread: string, rows: Moment[], at: Moment | undefined, deep: boolean): Promise<[string, NodeState][]> {
  if (!deep || !at) return [];
  const parents = rows.filter((row) => row.checkpoint_id === at.parent_checkpoint_id);
  const tasks = [at, ...parents].flatMap((row) => row.tasks).filter((task) => task.namespace);
  const found = await Promise.all(tasks.slice(0, 8).map(async (task) => {
    const page = await own<Timeline>(`/threads/${thread}/timeline`, { namespace: task.namespace ?? "", limit: 50 });
    return [...statesAt(page.checkpoints, page.checkpoints[0])].map(([name, state]): [string, NodeState] => [`${task.name}:${name}`, state]);
  }));
  return found.flat();
}

/** A node of a subgraph that is folded stands for all that happens inside. */
function shown(states: Map<string, NodeState>, layout: Layout): Map<string, NodeState> {
  const ids = new Set(layout.nodes.map((node) => node.id));
  const found = new Map<string, NodeState>();
  for (const [id, state] of states) {
    let name = id;
    while (!ids.has(name) && name.includes(":")) name = name.slice(0, name.lastIndexOf(":"));
    if (ids.has(name)) found.set(name, state);
    // One that is unfolded is shown by its nodes: all have run if it has.
    else if (state === "done") {
      for (const inner of ids) if (inner.startsWith(`${id}:`) && !states.has(inner)) found.set(inner, state);
    }
  }
  return found;
}

function withLive(states: Map<string, NodeState>, live: Live): Map<string, NodeState> {
  const now = new Map(states);
  for (const [node, how] of live.ended) now.set(node, how);
  for (const node of live.running.values()) now.set(node, "running");
  return now;
}

export function ThreadGraph({ id, info, live, query }: ThreadProps) {
  const graph = info.metadata.graph_id;
  const deep = query.get("deep") === "true";
  const at = query.get("at");
  const layout = useLoad(`layout ${graph} ${deep}`, () => own<Layout>(`/assistants/${encodeURIComponent(graph ?? "")}/layout`, { xray: deep ? "true" : undefined }));
  const time = useTimeline(id, `${info.updated_at} ${info.status} ${live.moved}`);
  const [chosen, choose] = useState<string | null>(null);
  const here = at ? time.rows.find((row) => row.checkpoint_id === at) : time.rows[0];
  const inside = useLoad(`inside ${id} ${deep} ${here?.checkpoint_id} ${info.status}`, () => insideOf(id, time.rows, here, deep));
  if (!graph) return <Empty title="No graph yet">The first run of the thread says which graph it belongs to.</Empty>;
  if (layout.error) return <Failure why={layout.error} again={layout.again} />;
  if (!layout.data || time.waiting) return <Waiting rows={8} />;
  const stored = new Map([...statesAt(time.rows, here), ...(inside.data ?? [])]);
  const busy = live.running.size > 0 || info.status === "busy";
  const states = shown(at || !busy ? stored : withLive(stored, live), layout.data);
  const ran = time.rows.filter((row) => row.tasks.some((task) => matches(task.name, chosen)));
  return (
    <section aria-label="Graph of the thread">
      <div class="row wrap">
        <Button pressed={deep} onClick={() => refine({ deep: !deep })}>{deep ? "Fold subgraphs" : "Unfold subgraphs"}</Button>
        {at && <a class="button" href={href(["thread", id, "graph"], { deep })}>Back to now</a>}
        {at && <span class="dim">as of step {here?.step}</span>}
      </div>
      <div class={chosen ? "split chosen" : "split"}>
        <GraphView layout={layout.data} states={states} chosen={chosen} choose={(node) => choose(node === chosen ? null : node)} />
        {chosen && (
          <Panel title={<span class="mono">{chosen}</span>} name="Node" actions={<Button kind="quiet" label="Close" onClick={() => choose(null)}>✕</Button>}>
            {ran.length === 0 ? <p class="dim">It has not run among the supersteps that were read.</p> : (
              <ul class="plain-list">
                {ran.slice(0, 50).map((row) => (
                  <li key={row.checkpoint_id}>
                    <a href={href(["thread", id, "timeline"], { at: row.checkpoint_id })}>step {row.step}</a>{" "}
                    <span class="dim">
                      {row.tasks.filter((task) => matches(task.name, chosen)).map((task) => task.error ? "failed" : task.wrote ? `wrote ${task.wrote.join(", ") || "nothing"}` : "not finished").join("; ")}
                    </span>
                  </li>
                ))}
              </ul>
            )}
          </Panel>
        )}
      </div>
    </section>
  );
}

function matches(task: string, node: string | null): boolean {
  return node !== null && (task === node || node.startsWith(`${task}:`));
}
