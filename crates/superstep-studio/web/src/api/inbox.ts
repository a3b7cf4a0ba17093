// Open questions, and answering them.

import { client, own, reason, status } from "./client.ts";
import type { Json, Schema } from "./types.ts";

export type Question = {
  id: string;
  thread: string;
  graph: string;
  asked: string;
  /** When the clock answers. */
  due: string | null;
  value: Json;
};

export type Page = { questions: Question[]; next: string | null };

type Found = {
  questions: { thread_id: string; interrupt_id: string; value: Json; due: Json; asked_at: string; graph_id: Json }[];
  next: string | null;
};

/** An answer that was not refused for so long counts as taken, in milliseconds. */
const PATIENCE = 5000;

/** Threads or questions that are read together. */
const PAGE = 50;

/** A server without an inbox of its own was asked for it. */
let withoutInbox = false;

/** The open questions of all threads, the one that waits longest first. The one place that knows how the server lists them. */
export async function openQuestions(cursor: string | null): Promise<Page> {
  if (!withoutInbox) {
    try {
      const found = await own<Found>("/inbox/search", {}, { limit: PAGE, ...(cursor ? { cursor } : {}) });
      return { questions: found.questions.map(ofInbox), next: found.next };
    } catch (error) {
      if (status(error) !== 404 && status(error) !== 405) throw error;
      withoutInbox = true;
    }
  }
  const offset = Number(cursor ?? 0);
  const found = (await client.value.threads.search({
    status: "interrupted",
    limit: PAGE,
    offset,
    sortBy: "updated_at",
    sortOrder: "asc",
    select: ["thread_id", "updated_at", "metadata", "interrupts"],
  })) as Listed[];
  return { questions: found.flatMap(ofThread), next: found.length === PAGE ? String(offset + PAGE) : null };
}

function ofInbox(one: Found["questions"][number]): Question {
  return {
    id: one.interrupt_id,
    thread: one.thread_id,
    graph: typeof one.graph_id === "string" ? one.graph_id : "",
    asked: one.asked_at,
    due: typeof one.due === "string" ? one.due : null,
    value: one.value,
  };
}

type Listed = { thread_id: string; updated_at: string; metadata?: unknown; interrupts?: unknown };

function ofThread(thread: Listed): Question[] {
  const interrupts = (thread.interrupts ?? {}) as Record<string, { id?: string; value?: Json }[]>;
  const graph = (thread.metadata as { graph_id?: string } | null)?.graph_id ?? "";
  return Object.values(interrupts).flat().map((asked) => ({
    id: asked.id ?? "",
    thread: thread.thread_id,
    graph,
    asked: thread.updated_at,
    due: null,
    value: asked.value ?? null,
  }));
}

export type Given = { interrupt_id: string; question: Json; answer: Json; answered_by: string | null; comment: string | null; answered_at: string };

/** The answers that were given on a thread, newest first; none if the server does not keep them. */
export async function answers(thread: string): Promise<Given[]> {
  if (withoutInbox) return [];
  try {
    return await own<Given[]>(`/threads/${thread}/answers`);
  } catch (error) {
    if (status(error) !== 404) throw error;
    return [];
  }
}

type TaskState = {
  id: string;
  name: string;
  interrupts: { id?: string; value?: unknown; response_schema?: Schema | null }[];
  state?: { tasks: TaskState[] } | null;
};

/** What a question looks like in the state of its thread, where its schema is. */
export type Asked = { id: string; node: string; value: Json; schema: Schema | null };

export async function asked(thread: string): Promise<Asked[]> {
  const state = await client.value.threads.getState(thread, undefined, { subgraphs: true });
  return inside(state.tasks as unknown as TaskState[]);
}

function inside(tasks: TaskState[]): Asked[] {
  return tasks.flatMap((task) => {
    const deeper = task.state ? inside(task.state.tasks) : [];
    if (deeper.length > 0) return deeper;
    return task.interrupts.map((one) => ({
      id: one.id ?? "",
      node: task.name,
      value: (one.value ?? null) as Json,
      schema: one.response_schema ?? null,
    }));
  });
}

export type Answered =
  | { was: "taken"; run: string }
  | { was: "late" }
  | { was: "refused"; why: string }
  | { was: "busy" };

type Asking = { id?: string }[];
type Told = { run_id?: string; message?: string; triggers?: unknown; error?: unknown; interrupts?: Asking; __interrupt__?: Asking };

function asks(interrupts: Asking | undefined, question: string): boolean {
  return interrupts?.some((one) => one.id === question) ?? false;
}

/** Answers a question with a run of its thread, and says what became of the answer as soon as that is known. */
export async function answer(thread: string, question: string, value: Json): Promise<Answered> {
  // Another reader may have answered since the question was shown.
  if (!(await asked(thread)).some((one) => one.id === question)) return { was: "late" };
  const { metadata } = await client.value.threads.get(thread);
  const about = (metadata ?? {}) as { assistant_id?: string; graph_id?: string };
  const assistant = about.assistant_id ?? about.graph_id ?? "";
  let run = "";
  try {
    const events = client.value.runs.stream(thread, assistant, {
      command: { resume: { [question]: value } },
      streamMode: ["tasks", "updates"],
      streamResumable: true,
      onDisconnect: "continue",
      multitaskStrategy: "reject",
    });
    const verdict = async (): Promise<Answered> => {
      for await (const { event, data } of events) {
        const told = (data ?? {}) as Told;
        if (event === "metadata") run = told.run_id ?? "";
        else if (event === "error") return { was: "refused", why: told.message ?? "the run failed" };
        // That a task begins says nothing yet: it may refuse the answer, and its question is open again.
        else if (event === "tasks" && (told.triggers || told.error || asks(told.interrupts, question))) continue;
        else if (event === "updates" && asks(told.__interrupt__, question)) continue;
        else return { was: "taken", run };
      }
      return { was: "taken", run };
    };
    // A task that works long with its answer has not refused it.
    const patience = new Promise<Answered>((resolve) => setTimeout(() => resolve({ was: "taken", run }), PATIENCE));
    return await Promise.race([verdict(), patience]);
  } catch (error) {
    if (status(error) === 422) return { was: "refused", why: reason(error) };
    if (status(error) !== 409) throw error;
    return (await asked(thread)).some((one) => one.id === question) ? { was: "busy" } : { was: "late" };
  }
}
