// The server: LangGraph's own client for what it knows, and plain requests for the documented endpoints that it does not.

import { Client } from "@langchain/langgraph-sdk/client";
import { effect, signal } from "@preact/signals";

const KEY = "superstep-studio-key";

/** The server beside whose API the page is mounted. */
export const server = new URL("..", location.href.split(/[?#]/)[0]).href.replace(/\/$/, "");

/** Kept until the tab is closed, and nowhere else. */
export const key = signal(sessionStorage.getItem(KEY) ?? "");

/** The server wants a key, or another one: `refused` if it had one. */
export const locked = signal<null | "wanted" | "refused">(null);

/** Whether the server answers. */
export const online = signal(true);

/** Changes when everything that is shown has to be asked for again. */
export const epoch = signal(0);

export const client = signal(connect(""));

effect(() => {
  client.value = connect(key.value);
});

function connect(apiKey: string): Client {
  return new Client({
    apiUrl: server,
    apiKey: apiKey || null,
    callerOptions: { maxRetries: 0, fetch: watched as typeof fetch },
  });
}

export function unlock(given: string): void {
  sessionStorage.setItem(KEY, given);
  key.value = given;
  locked.value = null;
  epoch.value += 1;
}

/** Whom to tell that the stream of a thread has begun. The stock client says nothing before the first event. */
export const streamed = new Map<string, () => void>();

/** A request that tells the page whether the server answers and whether it wants a key. */
async function watched(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const used = key.peek();
  let response: Response;
  try {
    response = await fetch(input, init);
  } catch (error) {
    if (!(init?.signal?.aborted ?? false)) lost();
    throw error;
  }
  const stream = /\/threads\/([^/]+)\/stream(\?|$)/.exec(response.url);
  if (response.ok && stream) streamed.get(stream[1] ?? "")?.();
  if (response.status === 401 && used === key.peek()) locked.value = used ? "refused" : "wanted";
  return response;
}

let probing = false;

/** Asks until the server answers again, at most every five seconds, and then for everything anew. */
export async function lost(): Promise<void> {
  online.value = false;
  if (probing) return;
  probing = true;
  for (let pause = 250; ; pause = Math.min(pause * 2, 5000)) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    const there = await fetch(`${server}/ok`).then((response) => response.ok, () => false);
    if (there) break;
  }
  probing = false;
  online.value = true;
  epoch.value += 1;
}

/** Why the server refused, in its own words. */
export class Refused extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** A request to an endpoint, or with a field, that the stock client does not know. */
export async function own<T>(path: string, query: Record<string, string | number | undefined> = {}, body?: object): Promise<T> {
  const url = new URL(server + path);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  const headers: Record<string, string> = key.peek() ? { "x-api-key": key.peek() } : {};
  if (body) headers["content-type"] = "application/json";
  const response = await watched(url, { headers, ...(body ? { method: "POST", body: JSON.stringify(body) } : {}) });
  const text = await response.text();
  if (!response.ok) throw new Refused(response.status, detail(text));
  return JSON.parse(text) as T;
}

function detail(text: string): string {
  try {
    const said: unknown = JSON.parse(text);
    if (said && typeof said === "object" && "detail" in said) return String(said.detail);
  } catch {
    // The text itself says it.
  }
  return text;
}

/** An error of either kind of request as a person should read it. */
export function reason(error: unknown): string {
  if (error instanceof Refused) return error.message;
  const text = error instanceof Error ? error.message : String(error);
  const refused = /^HTTP (\d+): ([\s\S]*)$/.exec(text);
  if (refused) return detail(refused[2] ?? "") || `the server answered ${refused[1]}`;
  if (/failed to fetch|unable to connect|networkerror/i.test(text)) return "the server does not answer";
  return text;
}

export function status(error: unknown): number | undefined {
  if (error instanceof Refused) return error.status;
  const found = (error as { status?: unknown } | null)?.status;
  return typeof found === "number" ? found : undefined;
}
