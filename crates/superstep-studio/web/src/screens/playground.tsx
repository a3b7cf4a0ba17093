// Trying an assistant on a new thread.

import { client } from "../api/client.ts";
import { useLoad } from "../lib/load.ts";
import { go } from "../route.ts";
import { Empty, Failure, Field, Panel, Title, Waiting } from "../ui/basic.tsx";
import { Starter } from "./try.tsx";

export function Playground({ graph }: { graph: string }) {
  const list = useLoad("assistants", () => client.value.assistants.search({ limit: 1000, sortBy: "name", sortOrder: "asc" }));
  const chosen = list.data?.find((one) => one.assistant_id === graph || one.graph_id === graph) ?? list.data?.[0];
  return (
    <>
      <Title about="Start a graph on a new thread, and watch it there.">Playground</Title>
      {list.error && <Failure why={list.error} again={list.again} />}
      {list.waiting && <Waiting />}
      {list.data?.length === 0 && <Empty title="The server has no graphs">Register one with <code>Server::graph</code>.</Empty>}
      {chosen && (
        <Panel name="New run">
          <Field label="Assistant">
            <select value={chosen.assistant_id} onChange={(event) => go(["try"], { graph: event.currentTarget.value })}>
              {list.data?.map((one) => (
                <option key={one.assistant_id} value={one.assistant_id}>
                  {one.name === one.graph_id ? one.name : `${one.name} (${one.graph_id})`}
                </option>
              ))}
            </select>
          </Field>
          <Starter key={chosen.assistant_id} assistant={chosen.assistant_id} graph={chosen.graph_id} thread={null} busy={false} />
        </Panel>
      )}
    </>
  );
}
