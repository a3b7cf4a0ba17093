// Open questions, and answering them.

import { client } from "./client.ts";
import type { Json, Schema } from "./types.ts";

export type Question = {
  id: string;
  thread: string;
  graph: string;
  asked: string;
  value: Json;
};

type Listed = { thread_id: string; updated_at: string; metadata?: unknown; interrupts?: unknown };

/** How many threads with questions are looked at together. */
const PAGE = 50;

/** The open questions of all threads, the one that waits longest first. The one place that knows how the server lists them. */
export async function openQuestions(offset: number): Promise<{ questions: Question[]; more: boolean }> {
  const found = (await client.value.threads.search({
    status: "interrupted",
    limit: PAGE,
    offset,
    sortBy: "updated_at",
    sortOrder: "asc",
    select: ["thread_id", "updated_at", "metadata", "interrupts"],
  })) as Listed[];
  return { questions: found.flatMap(ofThread), more: found.length === PAGE };
}

function ofThread(thread: Listed): Question[] {
  const interrupts = (thread.interrupts ?? {}) as Record<string, { id?: string; value?: Json }[]>;
  const graph = (thread.metadata as { graph_id?: string } | null)?.graph_id ?? "";
  return Object.values(interrupts).flat().map((asked) => ({
    id: asked.id ?? "",
    thread: thread.thread_id,
    graph,
    asked: thread.updated_at,
    value: asked.value ?? null,
  }));
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
    for await (const { event, data } of events) {
      const told = (data ?? {}) as { run_id?: string; message?: string };
      if (event === "metadata") run = told.run_id ?? "";
      else if (event === "error") return { was: "refused", why: told.message ?? "the run failed" };
      else return { was: "taken", run };
    }
  } catch (error) {
    if ((error as { status?: number }).status !== 409) throw error;
    return (await asked(thread)).some((one) => one.id === question) ? { was: "busy" } : { was: "late" };
  }
  return { was: "taken", run };
}
