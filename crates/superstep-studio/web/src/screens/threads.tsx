// Which threads there are, and how they are.

import { useState } from "preact/hooks";
import { client } from "../api/client.ts";
import { useEvery, useLoad } from "../lib/load.ts";
import { href, refine } from "../route.ts";
import { Button, Count, Empty, Failure, Field, Id, Status, Time, Title, Waiting } from "../ui/basic.tsx";

const STATES = ["idle", "busy", "interrupted", "error"] as const;
type State = (typeof STATES)[number];
const PAGE = 50;

type Row = { thread_id: string; status: string; updated_at: string; created_at: string; metadata?: Record<string, unknown> };

/** `user=ada` as metadata; the value is JSON, or text if it is not JSON. */
function metadata(text: string): Record<string, unknown> | null {
  const found: Record<string, unknown> = {};
  for (const part of text.split(/[\s,]+/).filter(Boolean)) {
    const at = part.indexOf("=");
    if (at < 1) return null;
    const value = part.slice(at + 1);
    try {
      found[part.slice(0, at)] = JSON.parse(value);
    } catch {
      found[part.slice(0, at)] = value;
    }
  }
  return found;
}

export function Threads({ query }: { query: URLSearchParams }) {
  const state = STATES.find((one) => one === query.get("status"));
  const written = query.get("q") ?? "";
  const isId = /^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(written.trim());
  const filter = isId ? {} : metadata(written);
  const offset = Math.max(0, Number(query.get("offset")) || 0);
  const about = { ...(state ? { status: state } : {}), ...(filter && !isId ? { metadata: filter } : {}) };
  const list = useLoad(`threads ${state} ${written} ${offset}`, async () => {
    if (filter === null) return [];
    const found = await client.value.threads.search({
      ...about,
      ...(isId ? { ids: [written.trim()] } : {}),
      limit: PAGE + 1,
      offset,
      sortBy: "updated_at",
      sortOrder: "desc",
      select: ["thread_id", "status", "updated_at", "created_at", "metadata"],
    } as Parameters<typeof client.value.threads.search>[0]);
    return found as unknown as Row[];
  });
  const counts = useLoad(`counts ${written}`, async () => {
    const count = (status?: State) =>
      client.value.threads.count({ ...(status ? { status } : {}), ...(filter && !isId ? { metadata: filter } : {}) });
    const [all, ...each] = await Promise.all([count(), ...STATES.map(count)]);
    return { all, each };
  });
  useEvery(3000, () => {
    list.again();
    counts.again();
  });
  const [text, write] = useState(written);
  const rows = list.data?.slice(0, PAGE) ?? [];
  const more = (list.data?.length ?? 0) > PAGE;
  const chip = (label: string, status: State | null, count: number | undefined) => (
    <button
      type="button"
      class="chip"
      key={label}
      aria-pressed={(state ?? null) === status}
      onClick={() => refine({ status, offset: null })}
    >
      {label} <Count of={count} />
    </button>
  );
  return (
    <>
      <Title
        about="Each thread is a line of checkpoints. The filters are part of the address."
        actions={<a class="button main" href={href(["try"])}>New run</a>}
      >
        Threads
      </Title>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          refine({ q: text, offset: null });
        }}
      >
        <div class="row wrap" role="group" aria-label="Status">
          {chip("all", null, counts.data?.all)}
          {chip("at rest", "idle", counts.data?.each[0])}
          {chip("running", "busy", counts.data?.each[1])}
          {chip("waiting for an answer", "interrupted", counts.data?.each[2])}
          {chip("failed", "error", counts.data?.each[3])}
        </div>
        <Field label="Find by id or metadata">
          <input
            type="search"
            data-search
            placeholder="user=ada graph_id=mail"
            value={text}
            onInput={(event) => write(event.currentTarget.value)}
            onChange={() => refine({ q: text, offset: null })}
          />
        </Field>
      </form>
      {filter === null && <p class="notice warn" role="status">Write metadata as NAME=VALUE, or the whole id of a thread.</p>}
      {list.error && <Failure why={list.error} again={list.again} />}
      {list.waiting && <Waiting rows={6} />}
      {list.data && rows.length === 0 && filter !== null && (
        written || state ? (
          <Empty title="No thread is like that">Take a filter away to see more.</Empty>
        ) : (
          <Empty title="There are no threads yet">
            <a href={href(["try"])}>Start one in the playground</a>, or with any client of the server.
          </Empty>
        )
      )}
      {rows.length > 0 && (
        <ul class="rows" aria-label="Threads">
          {rows.map((row) => (
            <li key={row.thread_id}>
              <a data-row class="row-link thread-row" href={href(["thread", row.thread_id])}>
                <Status of={row.status} />
                <span class="row-title">{String(row.metadata?.graph_id ?? "no graph yet")}</span>
                <Id of={row.thread_id} />
                <span class="tags">{tags(row.metadata)}</span>
                <span class="num"><Time at={row.updated_at} /></span>
              </a>
            </li>
          ))}
        </ul>
      )}
      {(offset > 0 || more) && (
        <div class="row">
          <Button disabled={offset === 0} onClick={() => refine({ offset: Math.max(0, offset - PAGE) })}>Newer</Button>
          <Button disabled={!more} onClick={() => refine({ offset: offset + PAGE })}>Older</Button>
        </div>
      )}
    </>
  );
}

/** What the server itself puts into the metadata is shown elsewhere. */
function tags(metadata: Record<string, unknown> | undefined): string {
  const own = Object.entries(metadata ?? {}).filter(([key]) => !["graph_id", "assistant_id"].includes(key));
  return own.map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`).join(" ").slice(0, 120);
}
