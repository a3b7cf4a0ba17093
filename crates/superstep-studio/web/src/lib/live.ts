// The events of a thread as they happen, whoever started its runs.

import { useEffect, useRef, useState } from "preact/hooks";
import { client, lost, online, streamed } from "../api/client.ts";

export type Seen = { nth: number; name: string; about: string; node: string | null; at: string };

export type Live = {
  /** Nodes that run now, by their task. */
  running: Map<string, string>;
  /** Nodes that finished since the page was opened, and how. */
  ended: Map<string, "done" | "failed" | "asks">;
  /** The last events, oldest first. */
  events: Seen[];
  /** All that came, those that are no longer kept included. */
  count: number;
  /** Text that models emit, until their message is complete. */
  text: string;
  connected: boolean;
  /** Changes when a superstep or a run has ended. */
  moved: number;
};

/** So many events are kept: the page stays the same size however long a run takes. */
const KEPT = 200;
const ABOUT = 160;

type Event = { id?: string | undefined; event: string; data: unknown };

function fresh(): Live {
  return { running: new Map(), ended: new Map(), events: [], count: 0, text: "", connected: false, moved: 0 };
}

/** The text of an event, short: a large value is not written out to be cut. */
function brief(data: unknown, room = ABOUT): string {
  if (typeof data === "string") return JSON.stringify(data.slice(0, room));
  if (data === null || typeof data !== "object") return String(data);
  const parts = Array.isArray(data) ? data.slice(0, 8).map((one) => ["", one]) : Object.entries(data).slice(0, 8);
  let text = "";
  for (const [name, value] of parts) {
    if (text.length > room) break;
    text += `${text ? ", " : ""}${name ? `${name}: ` : ""}${brief(value, room - text.length)}`;
  }
  return (Array.isArray(data) ? `[${text}]` : `{${text}}`).slice(0, room + 2);
}

type TaskEvent = { id?: string; name?: string; input?: unknown; result?: unknown; error?: unknown; interrupts?: unknown[] };

/** Folds an event into what is shown. */
export function fold(live: Live, { event, data }: Event): void {
  live.count += 1;
  const [mode = "", ...ns] = event.split("|");
  let node: string | null = null;
  const prefix = ns.map((part) => `${part.split(":")[0]}:`).join("");
  if (mode === "tasks" && data && typeof data === "object") {
    const task = data as TaskEvent;
    node = prefix + (task.name ?? "");
    const id = task.id ?? node;
    if ("input" in task || "triggers" in task) {
      live.running.set(id, node);
    } else {
      live.running.delete(id);
      live.ended.set(node, task.error ? "failed" : task.interrupts?.length ? "asks" : "done");
    }
  } else if (mode === "updates" && data && typeof data === "object") {
    const names = Object.keys(data);
    if (names.includes("__interrupt__")) live.moved += 1;
    for (const name of names.filter((name) => name !== "__interrupt__")) {
      live.ended.set(prefix + name, "done");
      for (const [id, running] of live.running) if (running === prefix + name) live.running.delete(id);
    }
    node = prefix + (names[0] ?? "");
    live.moved += 1;
  } else if (mode === "messages" && Array.isArray(data)) {
    const chunk = data[0] as { type?: string; content?: unknown };
    if (chunk?.type === "AIMessageChunk" && typeof chunk.content === "string") {
      live.text = (live.text + chunk.content).slice(-4000);
    }
  } else if (mode === "metadata") {
    live.ended.clear();
    live.running.clear();
    live.text = "";
    live.moved += 1;
  } else if (["end", "error", "values", "checkpoints", "run_end", "lifecycle"].includes(mode)) {
    live.moved += 1;
    if (mode === "end" || mode === "error") live.running.clear();
  }
  live.events.push({ nth: live.count, name: event, about: brief(data), node, at: new Date().toISOString() });
}

/** Follows a thread while a component is shown. Changes are shown once for each frame of the screen, however many came. */
export function useLive(thread: string): Live {
  const [, redraw] = useState(0);
  const state = useRef<Live>(fresh());
  useEffect(() => {
    const stop = new AbortController();
    let waiting: Event[] = [];
    let asked = false;
    let last: string | undefined;
    const show = () => {
      asked = false;
      // A frame folds as much as fits into it; what is left comes with the next one.
      const until = performance.now() + 20;
      let at = 0;
      while (at < waiting.length && performance.now() < until) fold(state.current, waiting[at++] as Event);
      waiting = waiting.slice(at);
      const { events } = state.current;
      if (events.length > KEPT) state.current.events = events.slice(-KEPT);
      if (waiting.length > 0) later();
      redraw((turn) => turn + 1);
    };
    const later = () => {
      if (asked) return;
      asked = true;
      if (document.visibilityState === "visible") requestAnimationFrame(show);
      else setTimeout(show, 500);
    };
    const follow = async () => {
      while (!stop.signal.aborted) {
        try {
          const stream = client.value.threads.joinStream(thread, {
            streamMode: ["run_modes", "lifecycle"],
            signal: stop.signal,
            ...(last ? { lastEventId: last } : {}),
          });
          // What happened since the page was read, and before the stream began, is not in the stream.
          streamed.set(thread, () => {
            state.current.connected = true;
            state.current.moved += 1;
            later();
          });
          for await (const part of stream) {
            if (part.id) last = part.id;
            waiting.push(part as Event);
            later();
          }
        } catch (error) {
          if (stop.signal.aborted) return;
          const status = (error as { status?: number }).status;
          if (status && status < 500 && status !== 429) return;
        }
        state.current.connected = false;
        later();
        if (stop.signal.aborted) return;
        if (online.peek()) await new Promise((resolve) => setTimeout(resolve, 500));
        if (!online.peek()) await lost();
        while (!online.peek()) await new Promise<void>((resolve) => {
          const end = online.subscribe((there) => {
            if (there) {
              queueMicrotask(() => end());
              resolve();
            }
          });
        });
      }
    };
    follow();
    return () => {
      streamed.delete(thread);
      stop.abort();
    };
  }, [thread]);
  return state.current;
}
