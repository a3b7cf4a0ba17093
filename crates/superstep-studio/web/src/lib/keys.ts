// The keyboard: single keys while nobody writes.

import { useEffect } from "preact/hooks";
import { go } from "../route.ts";

/** What the help lists. */
export const KEYS: [string, string][] = [
  ["j / k", "next or previous row"],
  ["Enter", "open the row"],
  ["/", "search"],
  ["g i", "inbox"],
  ["g t", "threads"],
  ["g p", "playground"],
  ["g g", "graphs"],
  ["g a", "assistants"],
  ["g s", "store"],
  ["g c", "crons"],
  ["g o", "operations"],
  ["r", "read everything again"],
  ["?", "help"],
  ["Esc", "close a dialog, leave a field"],
];

const PLACES: Record<string, string> = {
  i: "inbox",
  t: "threads",
  p: "try",
  g: "graphs",
  a: "assistants",
  s: "store",
  c: "crons",
  o: "operations",
};

export function useKeys(again: () => void): void {
  useEffect(() => {
    let began = 0;
    const press = (event: KeyboardEvent) => {
      const at = event.target as HTMLElement;
      const writes = at.matches("input, textarea, select, [contenteditable]");
      if (event.key === "Escape" && writes) return at.blur();
      if (writes || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const after = event.timeStamp - began < 1500;
      began = 0;
      const place = after ? PLACES[event.key] : undefined;
      if (place) return go([place]);
      switch (event.key) {
        case "g":
          began = event.timeStamp;
          return;
        case "j":
          return move(1);
        case "k":
          return move(-1);
        case "r":
          return again();
        case "?":
          return go(["help"]);
        case "/": {
          event.preventDefault();
          document.querySelector<HTMLElement>("[data-search]")?.focus();
        }
      }
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
}

/** Rows that can be opened have a link or a button of this kind. */
function move(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  if (rows.length === 0) return;
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1);
  rows[next]?.focus();
  rows[next]?.scrollIntoView({ block: "nearest" });
}
