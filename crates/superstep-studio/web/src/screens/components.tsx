// Every part of the page on one page, to be looked at in both colour schemes.

import { useState } from "preact/hooks";
import type { Json, Layout } from "../api/types.ts";
import { Badge, Button, CopyButton, Count, Empty, Failure, Field, Id, Notice, Panel, Status, Tabs, Time, Title, Waiting, type Tone } from "../ui/basic.tsx";
import { SchemaForm } from "../ui/form.tsx";
import { GraphView } from "../ui/graph.tsx";
import { Shown } from "../ui/value.tsx";

const VALUE: Json = { text: "a text", number: 42, yes: true, nothing: null, list: [1, 2, { deep: ["down"] }], empty: {} };
const SCHEMA = {
  type: "object",
  required: ["verdict"],
  properties: { verdict: { enum: ["approve", "reject"] }, note: { type: "string", description: "Shown to the writer" }, stars: { type: "integer" }, sure: { type: "boolean" } },
};
const LAYOUT: Layout = {
  width: 220,
  height: 210,
  groups: [{ id: "inner", label: "inner", x: 30, y: 60, width: 160, height: 80 }],
  nodes: [
    { id: "__start__", label: "start", subgraph: false, x: 80, y: 10, width: 60, height: 26 },
    { id: "ask", label: "ask", subgraph: false, x: 70, y: 90, width: 80, height: 36 },
    { id: "send", label: "send", subgraph: false, x: 70, y: 164, width: 80, height: 36 },
  ],
  edges: [
    { source: "__start__", target: "ask", conditional: false, label: null, back: false, points: [[110, 36], [110, 90]] },
    { source: "ask", target: "send", conditional: true, label: "yes", back: false, points: [[110, 126], [110, 164]] },
  ],
};
const TONES: Tone[] = ["plain", "good", "warn", "bad", "ask", "run"];

export function Components() {
  const [value, set] = useState<Json | undefined>(undefined);
  const [node, choose] = useState<string | null>(null);
  const at = new Date(Date.now() - 3 * 3600 * 1000).toISOString();
  return (
    <>
      <Title about="What every screen is made of.">Components</Title>
      <Panel title="Buttons" name="Buttons">
        <div class="row wrap">
          <Button kind="main">Main</Button><Button>Plain</Button><Button kind="quiet">Quiet</Button><Button kind="danger">Danger</Button>
          <Button disabled>Disabled</Button><Button pressed>Pressed</Button><CopyButton text="text">Copy</CopyButton>
        </div>
      </Panel>
      <Panel title="Badges and numbers" name="Badges">
        <div class="row wrap">{TONES.map((tone) => <Badge key={tone} tone={tone}>{tone}</Badge>)}</div>
        <div class="row wrap">{["idle", "busy", "interrupted", "error", "pending", "running", "success", "timeout"].map((one) => <Status key={one} of={one} />)}</div>
        <div class="row wrap"><Time at={at} /> <Id of="0198f0c2-0000-7000-8000-00000000abcd" /> <Count of={12345} /></div>
      </Panel>
      <Panel title="Notices" name="Notices">
        <div class="stack">
          {TONES.map((tone) => <Notice key={tone} tone={tone}>A notice that is {tone}.</Notice>)}
          <Failure why="What went wrong, in the words of the server." again={() => undefined} />
          <Empty title="Nothing is here">And what to do about it.</Empty>
          <Waiting rows={2} />
        </div>
      </Panel>
      <Panel title="Tabs" name="Tabs"><Tabs now="a" tabs={[{ id: "a", label: "One", to: "#/components" }, { id: "b", label: "Two", to: "#/components" }]} /></Panel>
      <Panel title="Fields" name="Fields">
        <div class="stack">
          <Field label="A text" hint="With a hint"><input /></Field>
          <Field label="A choice"><select><option>one</option><option>two</option></select></Field>
          <SchemaForm label="A form from a schema" schema={SCHEMA} value={value} set={set} />
        </div>
      </Panel>
      <Panel title="Values" name="Values"><Shown of={VALUE} /></Panel>
      <Panel title="Graphs" name="Graphs">
        <GraphView layout={LAYOUT} states={new Map([["ask", "asks"]])} chosen={node} choose={choose} />
      </Panel>
    </>
  );
}
