// The graphs that the server knows, and one of them drawn.

import { useState } from "preact/hooks";
import { client, own } from "../api/client.ts";
import type { Json, Layout } from "../api/types.ts";
import { useLoad } from "../lib/load.ts";
import { href } from "../route.ts";
import { Button, Empty, Failure, Panel, Title, Waiting } from "../ui/basic.tsx";
import { GraphView } from "../ui/graph.tsx";
import { Shown } from "../ui/value.tsx";

export function Graphs({ name }: { name: string }) {
  return name ? <Graph key={name} name={name} /> : <List />;
}

function List() {
  const list = useLoad("graphs", () => client.value.assistants.search({ limit: 1000, metadata: { created_by: "system" }, sortBy: "name", sortOrder: "asc" }));
  return (
    <>
      <Title about="What the server can run.">Graphs</Title>
      {list.error && <Failure why={list.error} again={list.again} />}
      {list.waiting && <Waiting rows={6} />}
      {list.data?.length === 0 && <Empty title="The server has no graphs" />}
      <ul class="rows">
        {list.data?.map((one) => (
          <li key={one.assistant_id}>
            <a data-row class="row-link" href={href(["graphs", one.graph_id])}><span class="row-title">{one.graph_id}</span></a>
          </li>
        ))}
      </ul>
    </>
  );
}

function Graph({ name }: { name: string }) {
  const [deep, unfold] = useState(false);
  const [chosen, choose] = useState<string | null>(null);
  const layout = useLoad(`layout ${name} ${deep}`, () => own<Layout>(`/assistants/${encodeURIComponent(name)}/layout`, { xray: deep ? "true" : undefined }));
  const hasSubgraphs = deep || layout.data?.nodes.some((node) => node.subgraph);
  const schemas = useLoad(`schemas of ${name}`, async () => {
    const [assistant] = await client.value.assistants.search({ graphId: name, limit: 1 });
    return assistant ? client.value.assistants.getSchemas(assistant.assistant_id) : null;
  });
  const edges = layout.data?.edges.filter((edge) => edge.source === chosen || edge.target === chosen) ?? [];
  return (
    <>
      <Title
        actions={
          <>
            <a class="button" href={href(["threads"], { q: `graph_id=${name}` })}>Its threads</a>
            <a class="button main" href={href(["try"], { graph: name })}>Try it</a>
          </>
        }
      >
        {name}
      </Title>
      {layout.error && <Failure why={layout.error} again={layout.again} />}
      {hasSubgraphs && <div class="row"><Button pressed={deep} onClick={() => unfold(!deep)}>{deep ? "Fold subgraphs" : "Unfold subgraphs"}</Button></div>}
      {!layout.data && !layout.error && <Waiting rows={8} />}
      <div class={chosen ? "split chosen" : "split"}>
        {layout.data && <GraphView key={String(deep)} layout={layout.data} chosen={chosen} choose={(node) => choose(node === chosen ? null : node)} />}
        {chosen && (
          <Panel title={<span class="mono">{chosen}</span>} name="Node" actions={<Button kind="quiet" label="Close" onClick={() => choose(null)}>✕</Button>}>
            <ul class="plain-list">
              {edges.map((edge, at) => (
                <li key={at}>
                  {edge.source === chosen ? "to" : "from"} <b class="mono">{edge.source === chosen ? edge.target : edge.source}</b>
                  <span class="dim">{edge.conditional ? ", if its router says so" : ""}{edge.label ? ` (${edge.label})` : ""}</span>
                </li>
              ))}
            </ul>
          </Panel>
        )}
      </div>
      {schemas.data && (
        <Panel title="Schemas" name="Schemas">
          <Shown of={schemas.data as unknown as Json} open={1} />
        </Panel>
      )}
    </>
  );
}
