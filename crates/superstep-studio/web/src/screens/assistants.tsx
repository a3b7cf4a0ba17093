// Graphs with settings, and the versions of these settings.

import { useState } from "preact/hooks";
import { client, reason } from "../api/client.ts";
import type { Json } from "../api/types.ts";
import { useLoad } from "../lib/load.ts";
import { go, href } from "../route.ts";
import { Badge, Button, Dialog, Empty, Failure, Field, Id, Notice, Panel, Time, Title, Waiting } from "../ui/basic.tsx";
import { strict } from "../ui/form.tsx";
import { Shown } from "../ui/value.tsx";

export function Assistants() {
  const [making, make] = useState(false);
  const list = useLoad("all assistants", () => client.value.assistants.search({ limit: 1000, sortBy: "name", sortOrder: "asc" }));
  return (
    <>
      <Title
        about="An assistant is a graph with settings of its own. Every graph has one by its name."
        actions={<Button kind="main" onClick={() => make(true)}>New assistant</Button>}
      >
        Assistants
      </Title>
      {list.error && <Failure why={list.error} again={list.again} />}
      {list.waiting && <Waiting rows={6} />}
      {list.data?.length === 0 && <Empty title="There are no assistants" />}
      <ul class="rows">
        {list.data?.map((one) => (
          <li key={one.assistant_id}>
            <a data-row class="row-link thread-row" href={href(["assistant", one.assistant_id])}>
              <span class="row-title">{one.name}</span>
              <Badge>{one.graph_id}</Badge>
              <span class="num">version {one.version}</span>
              <span class="num"><Time at={one.updated_at} /></span>
            </a>
          </li>
        ))}
      </ul>
      {making && <NewAssistant close={() => make(false)} graphs={[...new Set(list.data?.map((one) => one.graph_id) ?? [])]} />}
    </>
  );
}

function NewAssistant({ close, graphs }: { close: () => void; graphs: string[] }) {
  const [name, write] = useState("");
  const [graph, choose] = useState(graphs[0] ?? "");
  const [problem, complain] = useState<string | null>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      const made = await client.value.assistants.create({ graphId: graph, name: name.trim() || graph });
      go(["assistant", made.assistant_id]);
    } catch (error) {
      complain(reason(error));
    }
  };
  return (
    <Dialog title="New assistant" onClose={close}>
      <form class="stack" onSubmit={submit}>
        <Field label="Name"><input value={name} onInput={(event) => write(event.currentTarget.value)} /></Field>
        <Field label="Graph">
          <select value={graph} onChange={(event) => choose(event.currentTarget.value)}>
            {graphs.map((one) => <option key={one}>{one}</option>)}
          </select>
        </Field>
        {problem && <Failure why={problem} />}
        <div class="row end"><Button kind="main" submit disabled={!graph}>Create</Button></div>
      </form>
    </Dialog>
  );
}

export function Assistant({ id }: { id: string }) {
  const one = useLoad(`assistant ${id}`, () => client.value.assistants.get(id));
  const versions = useLoad(`versions ${id}`, () => client.value.assistants.getVersions(id, { limit: 100 }));
  const [text, write] = useState<string | null>(null);
  const [problem, complain] = useState<string | null>(null);
  const [done, say] = useState<string | null>(null);
  if (one.error && !one.data) return <Failure why={one.error} again={one.again} />;
  if (!one.data) return <Waiting rows={6} />;
  const about = one.data;
  const settings = text ?? JSON.stringify(about.context ?? {}, null, 2);
  const again = async (what: string) => {
    say(what);
    write(null);
    await Promise.all([one.again(), versions.again()]);
  };
  const save = async (event: Event) => {
    event.preventDefault();
    const entered = strict(settings);
    if ("problem" in entered) return complain(entered.problem);
    complain(null);
    try {
      const made = await client.value.assistants.update(id, { graphId: about.graph_id, context: entered.value });
      await again(`Saved as version ${made.version}.`);
    } catch (error) {
      complain(reason(error));
    }
  };
  const use = async (version: number) => {
    complain(null);
    try {
      await client.value.assistants.setLatest(id, version);
      await again(`Version ${version} is used from now on.`);
    } catch (error) {
      complain(reason(error));
    }
  };
  return (
    <>
      <Title
        about={<>Assistant <Id of={id} /> of <a href={href(["graphs", about.graph_id])}>{about.graph_id}</a>, version {about.version}</>}
        actions={<a class="button main" href={href(["try"], { graph: id })}>Try it</a>}
      >
        {about.name}
      </Title>
      {problem && <Failure why={problem} />}
      {done && <Notice tone="good">{done}</Notice>}
      <Panel title="Context" name="Context">
        <form class="stack" onSubmit={save}>
          <Field label="Settings of its runs, as JSON" hint="Saving makes a new version; older ones stay.">
            <textarea class="mono" rows={6} spellcheck={false} value={settings} onInput={(event) => write(event.currentTarget.value)} />
          </Field>
          <div class="row"><Button kind="main" submit>Save as a new version</Button></div>
        </form>
      </Panel>
      <Panel title="Versions" name="Versions">
        {versions.error && <Failure why={versions.error} again={versions.again} />}
        <ul class="plain-list">
          {versions.data?.map((version) => (
            <li key={version.version} class="row wrap">
              <b class="num">{version.version}</b>
              <span class="dim"><Time at={version.created_at} /></span>
              <Shown of={(version.context ?? {}) as Json} open={0} />
              {version.version === about.version
                ? <Badge tone="good">in use</Badge>
                : <Button kind="quiet" onClick={() => use(version.version)}>Use this version</Button>}
            </li>
          ))}
        </ul>
      </Panel>
    </>
  );
}
