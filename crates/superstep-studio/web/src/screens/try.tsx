// Starting a run: as a chat where the state has messages, else from a form for the input.

import { useEffect, useRef, useState } from "preact/hooks";
import { client, reason } from "../api/client.ts";
import type { Json, Layout, Schema } from "../api/types.ts";
import { own } from "../api/client.ts";
import { useLoad } from "../lib/load.ts";
import type { Live } from "../lib/live.ts";
import { go, href } from "../route.ts";
import { Button, Empty, Failure, Field, Panel, Waiting } from "../ui/basic.tsx";
import { JsonField, SchemaForm, hasFields } from "../ui/form.tsx";
import { CopyAs } from "./copy_as.tsx";
import type { ThreadProps } from "./thread.tsx";

const INPUTS = "superstep-studio-inputs";
const MODES = ["tasks", "updates", "messages-tuple", "custom"] as const;

/** Inputs that were used before in this tab, the last one first. */
function previous(graph: string): Json[] {
  try {
    const all = JSON.parse(sessionStorage.getItem(INPUTS) ?? "{}") as Record<string, Json[]>;
    return all[graph] ?? [];
  } catch {
    return [];
  }
}

function remember(graph: string, input: Json): void {
  const others = previous(graph).filter((one) => JSON.stringify(one) !== JSON.stringify(input));
  try {
    const all = JSON.parse(sessionStorage.getItem(INPUTS) ?? "{}") as Record<string, Json[]>;
    sessionStorage.setItem(INPUTS, JSON.stringify({ ...all, [graph]: [input, ...others].slice(0, 10) }));
  } catch {
    // A large input does not fit; it is not offered again.
  }
}

type Message = { id?: string; type?: string; role?: string; content?: unknown; name?: string; tool_calls?: { name: string; args: Json }[] };

function isChat(schema: Schema | undefined): boolean {
  return Boolean((schema?.properties as Record<string, unknown> | undefined)?.messages);
}

/** Starts runs of an assistant, on a thread or on a new one. */
export function Starter({ assistant, graph, thread, busy, live }: {
  assistant: string;
  graph: string;
  thread: string | null;
  busy: boolean;
  live?: Live;
}) {
  const schemas = useLoad(`schemas ${assistant}`, () => client.value.assistants.getSchemas(assistant));
  const layout = useLoad(`nodes ${graph}`, () => own<Layout>(`/assistants/${encodeURIComponent(assistant)}/layout`));
  const [input, enter] = useState<Json | undefined>(undefined);
  const [raw, useRaw] = useState(false);
  const [version, renew] = useState(0);
  const [stops, stop] = useState<string[]>([]);
  const [problem, complain] = useState<string | null>(null);
  const [sending, send] = useState(false);
  if (schemas.error) return <Failure why={schemas.error} again={schemas.again} />;
  if (schemas.waiting) return <Waiting rows={3} />;
  const schema = (schemas.data?.input_schema ?? null) as Schema | null;
  const chat = isChat(schema ?? undefined) && !raw;
  const body = (value: Json | undefined): Record<string, Json> => ({
    input: value === undefined ? {} : value,
    ...(stops.length > 0 ? { interrupt_before: stops } : {}),
  });
  const start = async (value: Json | undefined) => {
    send(true);
    complain(null);
    try {
      const id = thread ?? (await client.value.threads.create({ graphId: graph })).thread_id;
      await client.value.runs.create(id, assistant, {
        input: (value ?? {}) as Record<string, unknown>,
        streamMode: [...MODES],
        streamSubgraphs: true,
        streamResumable: true,
        // What is said while a model still answers is heard when it has finished.
        multitaskStrategy: chat ? "enqueue" : "reject",
        ...(stops.length > 0 ? { interruptBefore: stops } : {}),
      });
      if (value !== undefined) remember(graph, value);
      if (!thread) go(["thread", id, chat ? "try" : "timeline"]);
    } catch (error) {
      complain(reason(error));
    }
    send(false);
  };
  const nodes = layout.data?.nodes.map((node) => node.id).filter((id) => !id.startsWith("__")) ?? [];
  const used = previous(graph);
  return (
    <div class="stack">
      {problem && <Failure why={problem} />}
      {chat ? (
        <Chat thread={thread} live={live} sending={sending} busy={busy} say={(text) => start({ messages: [{ role: "user", content: text }] })} />
      ) : (
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault();
            start(input);
          }}
        >
          {hasFields(schema) && !raw
            ? <SchemaForm key={version} label="Input" schema={optional(schema)} value={input} set={enter} />
            : <JsonField key={version} label="Input" rows={6} value={input} set={enter} />}
          {used.length > 0 && (
            <Field label="Previous inputs">
              <select
                value=""
                onChange={(event) => {
                  enter(used[Number(event.currentTarget.value)]);
                  renew(version + 1);
                }}
              >
                <option value="">choose one</option>
                {used.map((one, at) => <option key={at} value={at}>{JSON.stringify(one).slice(0, 80)}</option>)}
              </select>
            </Field>
          )}
          <div class="row">
            <Button kind="main" submit disabled={sending || busy}>{busy ? "Running…" : "Start the run"}</Button>
          </div>
        </form>
      )}
      <details>
        <summary>Options</summary>
        <div class="stack options">
          <label class="check">
            <input type="checkbox" checked={raw} onChange={() => { useRaw(!raw); renew(version + 1); }} /> Write the input as JSON
          </label>
          <fieldset class="choice">
            <legend class="field-label">Stop before</legend>
            <div class="row wrap">
              {nodes.map((node) => (
                <label class="check" key={node}>
                  <input
                    type="checkbox"
                    checked={stops.includes(node)}
                    onChange={() => stop(stops.includes(node) ? stops.filter((one) => one !== node) : [...stops, node])}
                  /> {node}
                </label>
              ))}
            </div>
          </fieldset>
          <CopyAs started={{ thread, assistant, body: body(input) }} />
        </div>
      </details>
    </div>
  );
}

/** An input need not have every field. */
function optional(schema: Schema): Schema {
  const { required: _, ...rest } = schema;
  return rest;
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) {
    return content.map((part: { text?: string; type?: string }) => part.text ?? `[${part.type ?? "part"}]`).join("");
  }
  return content == null ? "" : JSON.stringify(content);
}

/** More messages than these are on the state's page. */
const SHOWN = 200;

function Chat({ thread, live, sending, busy, say }: {
  thread: string | null;
  live: Live | undefined;
  sending: boolean;
  busy: boolean;
  say: (text: string) => void;
}) {
  const said = useLoad(`messages ${thread} ${live?.moved ?? 0}`, async () => {
    if (!thread) return [];
    const state = await client.value.threads.getState<{ messages?: Message[] }>(thread);
    return state.values?.messages ?? [];
  });
  const kept = useRef<Message[]>([]);
  if (said.data) kept.current = said.data;
  const messages = kept.current;
  const [text, write] = useState("");
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    end.current?.scrollIntoView({ block: "nearest" });
  }, [messages.length]);
  const submit = (event: Event) => {
    event.preventDefault();
    if (!text.trim() || sending) return;
    say(text);
    write("");
  };
  return (
    <div class="chat">
      <ol class="messages" aria-label="Messages" aria-live="polite">
        {messages.length > SHOWN && <li class="dim">{messages.length - SHOWN} older messages</li>}
        {messages.slice(-SHOWN).map((message, at) => (
          <li key={message.id ?? at} class={`message ${message.type ?? message.role ?? ""}`}>
            <span class="dim who">{who(message)}</span>
            <span class="said">{textOf(message.content)}</span>
            {message.tool_calls?.map((call, nth) => <span key={nth} class="mono dim">{call.name}({JSON.stringify(call.args)})</span>)}
          </li>
        ))}
        {busy && live?.text && <li class="message ai"><span class="dim who">model</span><span class="said">{live.text}</span></li>}
      </ol>
      <div ref={end} />
      <form class="row" onSubmit={submit}>
        <input class="grow" aria-label="Message" placeholder="Say something" value={text} onInput={(event) => write(event.currentTarget.value)} />
        <Button kind="main" submit disabled={sending || !text.trim()}>Send</Button>
      </form>
    </div>
  );
}

function who({ type, role, name }: Message): string {
  const kind = type ?? role ?? "message";
  const words: Record<string, string> = { human: "you", user: "you", ai: "model", assistant: "model", tool: "tool" };
  return [words[kind] ?? kind, name].filter(Boolean).join(" ");
}

/** The playground on a thread that is there. */
export function Try({ id, info, live }: ThreadProps) {
  const assistant = info.metadata.assistant_id ?? info.metadata.graph_id;
  if (!assistant) {
    return <Empty title="This thread has no graph yet"><a href={href(["try"])}>Start a run in the playground</a></Empty>;
  }
  return (
    <Panel title="Another run on this thread" name="Continue">
      <Starter assistant={assistant} graph={info.metadata.graph_id ?? ""} thread={id} busy={info.status === "busy"} live={live} />
    </Panel>
  );
}
