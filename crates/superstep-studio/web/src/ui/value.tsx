// A value as a tree. The server cuts large values, and sends the rest when it is asked for.

import { useState } from "preact/hooks";
import type { Json, Outline } from "../api/types.ts";
import { number } from "../lib/time.ts";

/** Reads more of a value: of the part at `path`, from this item or character on. */
export type More = (path: string, offset: number) => Promise<Outline>;

export function Value({ of, more, open = 2 }: { of: Outline; more?: More | undefined; open?: number }) {
  return (
    <div class="value mono">
      <Part of={of} path="" more={more} open={open} />
    </div>
  );
}

function Part({ of, path, more, open }: { of: Outline; path: string; more: More | undefined; open: number }) {
  switch (of.type) {
    case "null":
      return <span class="value-null">null</span>;
    case "boolean":
    case "number":
      return <span class={`value-${of.type}`}>{String(of.value)}</span>;
    case "string":
      return <Text of={of} path={path} more={more} />;
    default:
      return <Parts of={of} path={path} more={more} open={open} />;
  }
}

function Text({ of, path, more }: { of: Extract<Outline, { type: "string" }>; path: string; more: More | undefined }) {
  const [text, set] = useState(of.value);
  const [busy, wait] = useState(false);
  // A value that was read again starts at its beginning.
  const shown = text.startsWith(of.value) ? text : of.value;
  const rest = of.length - [...shown].length;
  const read = async () => {
    if (!more) return;
    wait(true);
    const part = await more(path, [...shown].length).catch(() => null);
    wait(false);
    if (part?.type === "string") set(shown + part.value);
  };
  return (
    <span class="value-string">
      {shown}
      {rest > 0 && more && (
        <button type="button" class="more" disabled={busy} onClick={read}>… {number(rest)} more characters</button>
      )}
      {rest > 0 && !more && <span class="dim">… {number(rest)} more characters</span>}
    </span>
  );
}

type Composite = Extract<Outline, { type: "list" | "object" }>;

function Parts({ of, path, more, open }: { of: Composite; path: string; more: More | undefined; open: number }) {
  const [unfolded, unfold] = useState(open > 0);
  const [extra, add] = useState<Composite[]>([]);
  const [busy, wait] = useState(false);
  const isList = of.type === "list";
  const what = `${number(of.length)} ${isList ? "item" : "field"}${of.length === 1 ? "" : "s"}`;
  if (of.length === 0) return <span class="dim">{isList ? "[]" : "{}"}</span>;
  const pages = [of, ...extra.filter((page) => page.type === of.type)];
  const last = pages[pages.length - 1] as Composite;
  const end = last.offset + last.items.length;
  const read = async () => {
    if (!more) return;
    wait(true);
    const part = await more(path, end).catch(() => null);
    wait(false);
    if (part && part.type === of.type) add([...extra, part as Composite]);
  };
  return (
    <span class="value-parts">
      <button type="button" class="fold" aria-expanded={unfolded} onClick={() => unfold(!unfolded)}>
        {unfolded ? "▾" : "▸"} {what}
      </button>
      {unfolded && (
        <span class="value-rows">
          {pages.flatMap((page) => page.items.map((item, at) => {
            const name = page.type === "list" ? String(page.offset + at) : page.keys[at] ?? "";
            return (
              <span class="value-row" key={`${page.offset}-${name}`}>
                <span class="value-key">{name}</span>
                <Part of={item} path={`${path}/${escaped(name)}`} more={more} open={open - 1} />
              </span>
            );
          }))}
          {end < of.length && more && (
            <button type="button" class="more" disabled={busy} onClick={read}>… {number(of.length - end)} more</button>
          )}
          {end < of.length && !more && <span class="dim">… {number(of.length - end)} more</span>}
        </span>
      )}
    </span>
  );
}

/** A part of a JSON pointer. */
function escaped(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** How much of a value that is here already is put into the page. */
const ITEMS = 100;
const CHARACTERS = 2000;

/** A value that is here already, in the form in which the server sends large ones. */
export function outline(value: Json | undefined, room = { left: 500 }): Outline {
  room.left -= 1;
  if (value === null || value === undefined) return { type: "null" };
  if (typeof value === "boolean") return { type: "boolean", value };
  if (typeof value === "number") return { type: "number", value };
  if (typeof value === "string") {
    if (value.length <= CHARACTERS) return { type: "string", value, length: [...value].length };
    // Large texts are not spread into characters only to be counted.
    return { type: "string", value: [...value.slice(0, CHARACTERS)].join(""), length: value.length };
  }
  if (Array.isArray(value)) {
    const items: Outline[] = [];
    for (const item of value.slice(0, ITEMS)) {
      if (room.left <= 0) break;
      items.push(outline(item, room));
    }
    return { type: "list", length: value.length, offset: 0, items };
  }
  const all = Object.keys(value);
  const keys: string[] = [];
  const items: Outline[] = [];
  for (const key of all.slice(0, ITEMS)) {
    if (room.left <= 0) break;
    keys.push(key);
    items.push(outline(value[key], room));
  }
  return { type: "object", length: all.length, offset: 0, keys, items };
}

/** A value that is here already, as a tree. */
export function Shown({ of, open }: { of: Json | undefined; open?: number }) {
  return <Value of={outline(of)} {...(open === undefined ? {} : { open })} />;
}
