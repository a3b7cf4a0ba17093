// Where the reader is: the part of the address after `#`, so that every view is a link.

import { signal } from "@preact/signals";

export type Route = { path: string[]; query: URLSearchParams };

function read(): Route {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter(Boolean).map(part);
  return { path: parts, query: new URLSearchParams(query) };
}

/** A part of an address that somebody typed need not be well formed. */
function part(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const route = signal<Route>(read());

addEventListener("hashchange", () => {
  route.value = read();
});

export type Query = Record<string, string | number | boolean | null | undefined>;

/** The address of a view: what is empty is left out of the query. */
export function href(path: (string | number)[], query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value != null && value !== "" && value !== false);
  const search = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return `#/${path.map((one) => encodeURIComponent(one)).join("/")}${search ? `?${search}` : ""}`;
}

export function go(path: (string | number)[], query: Query = {}): void {
  location.hash = href(path, query);
}

/** Changes the query of the view that is open, without a step in the history of the browser. */
export function refine(query: Query): void {
  const now = Object.fromEntries(route.value.query);
  history.replaceState(null, "", href(route.value.path, { ...now, ...query }));
  route.value = read();
}
