// The long-term memory that graphs share.

import { useState } from "preact/hooks";
import { client, reason } from "../api/client.ts";
import type { Json } from "../api/types.ts";
import { useLoad } from "../lib/load.ts";
import { refine } from "../route.ts";
import { Button, Dialog, Empty, Failure, Field, Panel, Time, Title, Waiting } from "../ui/basic.tsx";
import { strict } from "../ui/form.tsx";
import { Shown } from "../ui/value.tsx";

const PAGE = 50;

/** A namespace in the address. Its parts may have any character. */
const packed = (namespace: string[]) => JSON.stringify(namespace);

function unpacked(text: string | null): string[] {
  try {
    const parts: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(parts) ? parts.map(String) : [];
  } catch {
    return [];
  }
}

export function StoreBrowser({ query }: { query: URLSearchParams }) {
  const at = unpacked(query.get("ns"));
  const search = query.get("q") ?? "";
  const [pages, show] = useState(1);
  const [editing, edit] = useState<{ namespace: string[]; key: string; value: Json } | null>(null);
  const [text, write] = useState(search);
  const spaces = useLoad(`namespaces ${packed(at)}`, () =>
    client.value.store.listNamespaces({ prefix: at, maxDepth: at.length + 1, limit: 1000 }));
  const items = useLoad(`items ${packed(at)} ${search} ${pages}`, () =>
    client.value.store.searchItems(at, { limit: PAGE * pages, ...(search ? { query: search } : {}) }));
  const below = (spaces.data?.namespaces ?? []).filter((one) => one.length > at.length);
  const again = () => {
    edit(null);
    items.again();
    spaces.again();
  };
  return (
    <>
      <Title
        about="What graphs remember across threads."
        actions={<Button kind="main" onClick={() => edit({ namespace: at, key: "", value: {} })}>New item</Button>}
      >
        Store
      </Title>
      <nav class="row wrap" aria-label="Namespace">
        <Button kind="quiet" onClick={() => refine({ ns: null })}>all</Button>
        {at.map((part, nth) => (
          <span key={nth}>/ <Button kind="quiet" onClick={() => refine({ ns: packed(at.slice(0, nth + 1)) })}>{part}</Button></span>
        ))}
      </nav>
      {below.length > 0 && (
        <div class="row wrap" role="group" aria-label="Below">
          {below.map((one) => (
            <button type="button" class="chip" key={packed(one)} onClick={() => refine({ ns: packed(one) })}>{one[one.length - 1]}</button>
          ))}
        </div>
      )}
      <form class="filters" onSubmit={(event) => { event.preventDefault(); refine({ q: text }); }}>
        <Field label="Search" hint="By meaning if the server has an index, else by words.">
          <input type="search" data-search value={text} onInput={(event) => write(event.currentTarget.value)} />
        </Field>
      </form>
      {items.error && <Failure why={items.error} again={items.again} />}
      {items.waiting && <Waiting rows={4} />}
      {items.data?.items.length === 0 && <Empty title="Nothing is stored here">Graphs write with <code>task.store()</code>.</Empty>}
      {items.data?.items.map((item) => (
        <Panel
          key={`${packed(item.namespace)} ${item.key}`}
          title={<span class="mono">{item.key}</span>}
          name={item.key}
          actions={<Button kind="quiet" label={`Edit ${item.key}`} onClick={() => edit({ namespace: item.namespace, key: item.key, value: item.value as Json })}>Edit</Button>}
        >
          <p class="dim">{item.namespace.join(" / ")}, changed <Time at={(item as unknown as { updated_at?: string }).updated_at ?? item.updatedAt} /></p>
          <Shown of={item.value as Json} open={1} />
        </Panel>
      ))}
      {items.data?.items.length === PAGE * pages && <Button onClick={() => show(pages + 1)}>Show more</Button>}
      {editing && <ItemDialog item={editing} close={() => edit(null)} done={again} />}
    </>
  );
}

function ItemDialog({ item, close, done }: { item: { namespace: string[]; key: string; value: Json }; close: () => void; done: () => void }) {
  const [namespace, place] = useState(item.namespace.join("/"));
  const [key, name] = useState(item.key);
  const [text, write] = useState(JSON.stringify(item.value, null, 2));
  const [problem, complain] = useState<string | null>(null);
  const parts = item.key ? item.namespace : namespace.split("/").filter(Boolean);
  const act = async (what: () => Promise<unknown>) => {
    try {
      await what();
      done();
    } catch (error) {
      complain(reason(error));
    }
  };
  const save = (event: Event) => {
    event.preventDefault();
    const entered = strict(text);
    if ("problem" in entered) return complain(entered.problem);
    act(() => client.value.store.putItem(parts, key, entered.value as Record<string, unknown>));
  };
  return (
    <Dialog title={item.key ? `Item ${item.key}` : "New item"} onClose={close}>
      <form class="stack" onSubmit={save}>
        {!item.key && <Field label="Namespace" hint="Parts with / between them."><input value={namespace} onInput={(event) => place(event.currentTarget.value)} /></Field>}
        {!item.key && <Field label="Key"><input value={key} onInput={(event) => name(event.currentTarget.value)} /></Field>}
        <Field label="Value, as JSON"><textarea class="mono" rows={8} spellcheck={false} value={text} onInput={(event) => write(event.currentTarget.value)} /></Field>
        {problem && <Failure why={problem} />}
        <div class="row end">
          {item.key && <Button kind="danger" onClick={() => act(() => client.value.store.deleteItem(parts, key))}>Delete</Button>}
          <Button kind="main" submit disabled={!key || parts.length === 0}>Save</Button>
        </div>
      </form>
    </Dialog>
  );
}
