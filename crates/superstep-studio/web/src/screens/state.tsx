// What a thread knows at a checkpoint, who wrote it, and going on from there in another way.

import { useState } from "preact/hooks";
import { client, own, reason } from "../api/client.ts";
import type { Changes, Json, Outline } from "../api/types.ts";
import { useLoad } from "../lib/load.ts";
import { href, go, refine } from "../route.ts";
import { Button, Empty, Failure, Field, Id, Notice, Panel, Time, Waiting } from "../ui/basic.tsx";
import { strict } from "../ui/form.tsx";
import { Value } from "../ui/value.tsx";
import { ChangeList, moreOf } from "./changes.tsx";
import { readTimeline, type ThreadProps } from "./thread.tsx";

type Fields = Extract<Outline, { type: "object" }>;

type Written = { nodes: string[]; step: number; at: string };

/** Who wrote each channel last, as far as the newest supersteps before a checkpoint say. */
async function lastWriters(id: string, at: string | null): Promise<Map<string, Written>> {
  const found = new Map<string, Written>();
  if (!at) return found;
  // Only what was made before it can have led to it: its id is later than theirs.
  const page = await readTimeline(id, undefined, 1);
  const newest = page.checkpoints[0]?.checkpoint_id === at;
  const rows = (await readTimeline(id, newest ? undefined : at, 300)).checkpoints;
  const byId = new Map(rows.map((row) => [row.checkpoint_id, row]));
  let parent = newest ? byId.get(at)?.parent_checkpoint_id : null;
  if (!newest) {
    const here = await own<Changes>(`/threads/${id}/changes`, { checkpoint_id: at });
    parent = here.from;
  }
  for (let row = byId.get(parent ?? ""); row; row = byId.get(row.parent_checkpoint_id ?? "")) {
    const step: [string, string][] = row.tasks.flatMap((task) => (task.wrote ?? []).map((channel): [string, string] => [channel, task.name]));
    const fresh = new Set(step.map(([channel]) => channel).filter((channel) => !found.has(channel)));
    for (const channel of fresh) {
      const nodes = step.filter(([name]) => name === channel).map(([, node]) => (node === "__start__" ? "the input" : node));
      found.set(channel, { nodes: [...new Set(nodes)], step: row.step, at: row.checkpoint_id });
    }
  }
  return found;
}

export function StateView({ id, info, query, moved, live }: ThreadProps) {
  const asked = query.get("at");
  const fork = query.get("fork") === "true";
  const head = useLoad(`head ${id} ${asked} ${asked ? "" : `${info.updated_at} ${live.moved}`}`, async () => {
    if (asked) return { at: asked, row: null };
    const row = (await readTimeline(id, undefined, 1)).checkpoints[0] ?? null;
    return { at: row?.checkpoint_id ?? null, row };
  });
  const at = head.data?.at ?? null;
  const values = useLoad(`outline ${id} ${at}`, async () => (at ? own<Outline>(`/threads/${id}/outline`, { checkpoint_id: at }) : null));
  const changes = useLoad(`changes ${id} ${at}`, async () => (at ? own<Changes>(`/threads/${id}/changes`, { checkpoint_id: at }) : null));
  const writers = useLoad(`writers ${id} ${at}`, () => lastWriters(id, at));
  const problem = head.error ?? values.error;
  if (problem) return <Failure why={problem} again={() => { head.again(); values.again(); }} />;
  if (head.waiting || values.waiting) return <Waiting rows={8} />;
  if (!at || values.data?.type !== "object") {
    return <Empty title="There is no state yet">The thread has no checkpoint. <a href={href(["thread", id, "try"])}>Start a run</a></Empty>;
  }
  const state: Fields = values.data;
  const wrote = writers.data ?? new Map<string, Written>();
  return (
    <section class="stack" aria-label="State">
      <div class="row wrap">
        <span>{asked ? "At checkpoint" : "Now, at checkpoint"} <Id of={at} /></span>
        {asked && <a class="button" href={href(["thread", id, "state"])}>To the newest</a>}
        <a class="button" href={href(["thread", id, "timeline"], { at })}>On the timeline</a>
        <a class="button" href={href(["thread", id, "compare"], { b: at })}>Compare with…</a>
      </div>
      <Panel title="Values" name="Values">
        {state.items.length === 0 && <p class="dim">No channel has a value.</p>}
        <dl class="channels">
          {state.items.map((value, nth) => {
            const channel = state.keys[nth] ?? "";
            const by = wrote.get(channel);
            return (
              <div class="channel" key={`${at} ${channel}`}>
                <dt class="mono">
                  {channel}
                  {by && (
                    <a class="written" href={href(["thread", id, "timeline"], { at: by.at })}>
                      by {by.nodes.join(", ")} in step {by.step}
                    </a>
                  )}
                </dt>
                <dd><Value of={value} more={moreOf(id, at, channel)} open={1} /></dd>
              </div>
            );
          })}
        </dl>
      </Panel>
      <Panel title="Changed since the checkpoint before" name="Changes">
        {changes.error && <Failure why={changes.error} again={changes.again} />}
        {changes.waiting && <Waiting rows={2} />}
        {changes.data && <ChangeList of={changes.data} thread={id} />}
      </Panel>
      <Onward id={id} at={at} isHead={!asked} state={state} busy={info.status === "busy"} fork={fork} assistant={info.metadata.assistant_id ?? info.metadata.graph_id ?? ""} moved={moved} />
    </section>
  );
}

/** Three ways on from a checkpoint, which are three different things. */
function Onward({ id, at, isHead, state, busy, fork, assistant, moved }: {
  id: string;
  at: string;
  isHead: boolean;
  state: Fields;
  busy: boolean;
  fork: boolean;
  assistant: string;
  moved: () => void;
}) {
  const [problem, complain] = useState<string | null>(null);
  const [sending, send] = useState(false);
  const start = async (checkpoint: string | undefined) => {
    send(true);
    complain(null);
    try {
      await client.value.runs.create(id, assistant, {
        input: null,
        ...(checkpoint ? { checkpointId: checkpoint } : {}),
        streamMode: ["tasks", "updates", "messages-tuple"],
        streamResumable: true,
        multitaskStrategy: "reject",
      });
      moved();
      go(["thread", id, "timeline"]);
    } catch (error) {
      complain(reason(error));
    }
    send(false);
  };
  return (
    <Panel title="From here" name="From here">
      <div class="ways">
        <div class="way">
          <Button disabled={sending || busy || !isHead} onClick={() => start(undefined)}>Continue</Button>
          <p class="dim">The next run of the thread goes on at its newest checkpoint.{isHead ? "" : " This is an older one."}</p>
        </div>
        <div class="way">
          <Button disabled={sending || busy} onClick={() => start(at)}>Run again from here</Button>
          <p class="dim">What followed runs anew, as a branch. The old line stays.</p>
        </div>
        <div class="way">
          <Button disabled={busy} pressed={fork} onClick={() => refine({ fork: !fork })}>Fork with an edit</Button>
          <p class="dim">A branch begins here with values that you change.</p>
        </div>
      </div>
      {busy && <p class="dim">The thread is running. Wait, or cancel its run first.</p>}
      {problem && <Failure why={problem} />}
      {fork && <Edit id={id} at={at} state={state} moved={moved} />}
    </Panel>
  );
}

/** The value as JSON, if all of it is here. */
function whole(of: Outline): Json | undefined {
  switch (of.type) {
    case "null":
      return null;
    case "boolean":
    case "number":
      return of.value;
    case "string":
      return [...of.value].length === of.length ? of.value : undefined;
    case "list": {
      if (of.items.length < of.length) return undefined;
      const items = of.items.map(whole);
      return items.some((item) => item === undefined) ? undefined : (items as Json[]);
    }
    case "object": {
      if (of.items.length < of.length) return undefined;
      const parts = of.items.map((item, at) => [of.keys[at], whole(item)]);
      return parts.some(([, item]) => item === undefined) ? undefined : (Object.fromEntries(parts) as Json);
    }
  }
}

function Edit({ id, at, state, moved }: { id: string; at: string; state: Fields; moved: () => void }) {
  const [channel, choose] = useState(state.keys[0] ?? "");
  const before = state.items[state.keys.indexOf(channel)];
  const first = () => {
    const value = before && whole(before);
    return value === undefined ? "" : JSON.stringify(value, null, 2);
  };
  const [texts, write] = useState<Record<string, string>>({});
  const [node, as] = useState("");
  const [problem, complain] = useState<string | null>(null);
  const [made, make] = useState<string | null>(null);
  const text = texts[channel] ?? first();
  const row = useLoad(`row ${id} ${at}`, async () => {
    const page = await readTimeline(id, undefined, 200);
    const here = page.checkpoints.find((one) => one.checkpoint_id === at);
    const parent = page.checkpoints.find((one) => one.checkpoint_id === here?.parent_checkpoint_id);
    return { here, wrote: parent?.tasks.map((task) => task.name).filter((name) => !name.startsWith("__")) ?? [] };
  });
  const wrote = row.data?.wrote ?? [];
  // If several nodes wrote the checkpoint, the server does not guess which of them the edit is from.
  const source = node || (wrote.length > 1 ? wrote[0] : undefined);
  const submit = async (event: Event) => {
    event.preventDefault();
    const entered = strict(text);
    if ("problem" in entered) return complain(entered.problem);
    complain(null);
    try {
      const result = await client.value.threads.updateState(id, {
        values: { [channel]: entered.value },
        checkpointId: at,
        ...(source ? { asNode: source } : {}),
      });
      const place = result as unknown as { checkpoint_id?: string; configurable?: { checkpoint_id?: string } };
      make(place.checkpoint_id ?? place.configurable?.checkpoint_id ?? "");
      moved();
    } catch (error) {
      complain(reason(error));
    }
  };
  return (
    <form class="stack fork" onSubmit={submit}>
      <Notice tone="warn">
        The edit is a write like any other: it goes through the reducer of its channel. Where a reducer appends or adds, what you
        write is appended or added to the value; it does not replace it.
      </Notice>
      <Field label="Channel">
        <select value={channel} onChange={(event) => choose(event.currentTarget.value)}>
          {state.keys.map((key) => <option key={key}>{key}</option>)}
        </select>
      </Field>
      <Field label="Write, as JSON" hint={text === "" ? "The value is too large to be put here." : "A text stands in quotation marks."}>
        <textarea
          class="mono"
          rows={4}
          spellcheck={false}
          value={text}
          onInput={(event) => write({ ...texts, [channel]: event.currentTarget.value })}
        />
      </Field>
      {wrote.length > 1 && (
        <Field label="As if this node had written it" hint="It decides which nodes run next.">
          <select value={source ?? ""} onChange={(event) => as(event.currentTarget.value)}>
            {wrote.map((name) => <option key={name}>{name}</option>)}
          </select>
        </Field>
      )}
      {problem && <p class="notice bad" role="alert">{problem}</p>}
      {made !== null && (
        <Notice tone="good">
          The branch begins at <Id of={made} to={href(["thread", id, "state"], { at: made })} />.
          It is the newest checkpoint now: <a href={href(["thread", id, "state"])}>look at it and continue</a>.
        </Notice>
      )}
      {row.data?.here && <p class="dim">From step {row.data.here.step}, <Time at={row.data.here.created_at} /></p>}
      <div class="row"><Button kind="main" submit>Begin the branch</Button></div>
    </form>
  );
}
