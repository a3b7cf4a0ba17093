// Drives a server with a stock JavaScript client, on the graphs of the demo: node client.mjs URL PACKAGE

import { all, finish, refused, show, until } from "./checks.mjs";

const [url, name] = process.argv.slice(2);
const { Client } = await import(name);
const client = new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
const MISSING = "00000000-0000-0000-0000-000000000000";
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

async function assistants() {
  const found = await client.assistants.search({ limit: 100 });
  const counter = found.find((one) => one.graph_id === "counter");
  show("a default assistant", counter?.assistant_id === "09d6caf4-2ef3-5a8b-b1a7-114690ed5d45");
  const paged = await client.assistants.search({ limit: 2, includePagination: true });
  show("a page says where the next begins", paged.next === "2" && paged.assistants.length === 2, paged);
  const made = await client.assistants.create({ graphId: "configured", context: { model_name: "m1" }, name: "mine" });
  show("an assistant has a context", same(made.config.configurable, { model_name: "m1" }));
  show("it is found", (await client.assistants.get(made.assistant_id)).name === "mine");
  show("and counted", (await client.assistants.count({ graphId: "configured" })) >= 2);
  const changed = await client.assistants.update(made.assistant_id, { graphId: "configured", context: { model_name: "m2" } });
  show("a change is a version", changed.version === 2);
  const result = await client.runs.wait(null, made.assistant_id, { input: { question: "?" } });
  show("a run uses the context", result.answer === "m2/0.0", result);
  const back = await client.assistants.setLatest(made.assistant_id, 1);
  show("an older version is used again", back.context.model_name === "m1");
  const versions = await client.assistants.getVersions(made.assistant_id);
  show("versions", same(versions.map((one) => one.version), [2, 1]));
  const schemas = await client.assistants.getSchemas(made.assistant_id);
  show("schemas", schemas.context_schema.properties.model_name.type === "string");
  const graph = await client.assistants.getGraph("nested", { xray: true });
  show("a drawing", graph.nodes.some((node) => node.id === "child:child_ask"));
  const nested = found.find((one) => one.graph_id === "nested");
  const inside = await client.assistants.getSubgraphs(nested.assistant_id);
  show("subgraphs", "child" in inside, inside);
  await client.assistants.delete(made.assistant_id);
  show("a deleted one is missing", await refused(404, () => client.assistants.get(made.assistant_id)));
}

async function threads() {
  const user = crypto.randomUUID();
  const thread = await client.threads.create({ metadata: { user, deep: { a: 1, b: 2 } } });
  const id = thread.thread_id;
  show("a new thread", thread.status === "idle" && thread.values === null);
  show("an id is taken once", await refused(409, () => client.threads.create({ threadId: id })));
  const again = await client.threads.create({ threadId: id, ifExists: "do_nothing" });
  show("unless nothing is to be done", again.thread_id === id);
  await client.threads.update(id, { metadata: { k: 2 } });
  const found = await client.threads.search({ metadata: { deep: { b: 2 }, k: 2, user } });
  show("a thread is found by what it contains", same(found.map((one) => one.thread_id), [id]));
  const fields = await client.threads.search({ metadata: { user }, select: ["thread_id", "status"] });
  show("with chosen fields", same(Object.keys(fields[0]).sort(), ["status", "thread_id"]), fields);
  show("and counted", (await client.threads.count({ metadata: { user } })) === 1);
  show("no thread", await refused(404, () => client.threads.get(MISSING)));
  show("no id", await refused(422, () => client.threads.get("abc")));
  const state = await client.threads.getState(id);
  show("a thread that has not begun", state.checkpoint === null && same(state.values, {}));
  await client.runs.wait(id, "counter", { input: { count: 10, log: ["in"] } });
  const copy = await client.threads.copy(id);
  show("a copy", (await client.threads.getState(copy.thread_id)).values.count === 13);
  if (client.threads.prune) {
    const pruned = await client.threads.prune([copy.thread_id], { strategy: "keep_latest" });
    show("pruned", pruned.pruned_count === 1);
    show("one state is left", (await client.threads.getHistory(copy.thread_id)).length === 1);
  }
  await client.threads.delete(id);
  show("a deleted thread is missing", await refused(404, () => client.threads.getState(id)));
}

async function runs() {
  const { thread_id: id } = await client.threads.create();
  let created = null;
  const options = { input: { count: 1 }, streamMode: ["values", "updates"], onRunCreated: (run) => (created = run) };
  const seen = await all(client.runs.stream(id, "counter", options));
  show("a stream begins with its run", seen[0].event === "metadata" && seen[0].data.run_id === created?.run_id, created);
  const names = seen.slice(1).map((part) => part.event);
  show("and has every step", same(names, ["values", "updates", "values", "updates", "values", "updates", "values"]), names);
  const run = await client.runs.create(id, "counter", { input: { count: 1 } });
  const result = await client.runs.join(id, run.run_id);
  show("a run goes on from the one before", result.count === 8, result);
  const listed = await client.runs.list(id, { limit: 10 });
  show("runs are listed, newest first", listed.length === 2 && listed[0].run_id === run.run_id);
  const chosen = await client.runs.list(id, { select: ["run_id", "status"] });
  show("with chosen fields", same(chosen[0], { run_id: run.run_id, status: "success" }), chosen);
  show("one of them", (await client.runs.get(id, run.run_id)).status === "success");
  await client.runs.delete(id, run.run_id);
  show("it is deleted", await refused(404, () => client.runs.get(id, run.run_id)));
  const batch = await client.runs.createBatch([
    { assistantId: "counter", input: {} },
    { assistantId: "slow", input: {} },
  ]);
  show("a batch, in order", batch.length === 2 && batch[0].kwargs.input !== undefined, batch);
  const failed = await client.runs.wait(id, "failing", { input: {}, raiseError: false });
  show("a failed run says why", same(failed.__error__, { error: "ValueError", message: "boom happened" }), failed);
  const parts = await all(client.runs.stream(null, "failing", { input: {} }));
  show("so does its stream", parts.at(-1).event === "error" && parts.at(-1).data.message === "boom happened");
  show("no graph", await refused(422, () => client.runs.create(id, "nope", {})));
  const custom = await all(client.runs.stream(null, "progress", { input: { n: 2 }, streamMode: "custom" }));
  show("custom events", custom.filter((part) => part.event === "custom").length === 2, custom);
  const options2 = { input: { messages: "hi there" }, streamMode: "messages-tuple" };
  const chat = await all(client.runs.stream(null, "chat", options2));
  const tokens = chat.filter((part) => part.event === "messages").map((part) => part.data[0].content);
  show("tokens", same(tokens, ["You", " said:", " hi", " there", ""]), tokens);
  const nested = { input: { topic: "x" }, streamMode: "updates", streamSubgraphs: true };
  const inside = await all(client.runs.stream(null, "nested", nested));
  show("events of subgraphs", inside.some((part) => part.event.startsWith("updates|child:")));
}

async function questions() {
  const { thread_id: id } = await client.threads.create();
  const asked = await client.runs.wait(id, "approval", { input: { topic: "cats" } });
  show("a question ends the run", asked.__interrupt__[0].value.question === "approve?", asked);
  const thread = await client.threads.get(id);
  show("and interrupts the thread", thread.status === "interrupted");
  show("its state says what is next", same((await client.threads.getState(id)).next, ["review"]));
  const result = await client.runs.wait(id, "approval", { command: { resume: "yes" } });
  show("an answer goes on", same(result.log, ["write", "review", "publish:yes"]), result);
  const history = await client.threads.getHistory(id, { limit: 100 });
  show("a history, newest first", history[0].next.length === 0 && history.length > 4);
  const older = await client.threads.getHistory(id, { limit: 100, before: { configurable: history[1].checkpoint } });
  show("what is older", older.length === history.length - 2, older.length);
  const at = history.find((state) => state.next[0] === "review");
  show("a state by its id", (await client.threads.getState(id, at.checkpoint.checkpoint_id)).values.draft === "draft about cats");
  show("a state by its place", (await client.threads.getState(id, at.checkpoint)).next[0] === "review");
  const forked = await client.threads.updateState(id, { values: { topic: "dogs" }, checkpoint: at.checkpoint, asNode: "write" });
  show("a fork", forked.checkpoint.checkpoint_id !== at.checkpoint.checkpoint_id);
  const nested = await client.threads.create();
  await client.runs.wait(nested.thread_id, "nested", { input: { topic: "deep" } });
  const state = await client.threads.getState(nested.thread_id, undefined, { subgraphs: true });
  show("the state of a graph inside", state.tasks[0].state.values.child_log[0] === "child_prepare");
}

async function inProgress() {
  const { thread_id: id } = await client.threads.create();
  const slow = { input: { ticks: 1000, delay: 0.01 } };
  const run = await client.runs.create(id, "slow", slow);
  show("another is refused", await refused(409, () => client.runs.create(id, "slow", { multitaskStrategy: "reject" })));
  const second = await client.runs.create(id, "counter", { input: { count: 1 } });
  show("another waits", (await client.runs.get(id, second.run_id)).status === "pending");
  await client.runs.cancel(id, run.run_id, true);
  show("a cancelled run", (await client.runs.get(id, run.run_id)).status === "interrupted");
  await client.runs.join(id, second.run_id);
  show("then the other runs", (await client.runs.get(id, second.run_id)).status === "success");
  show("nothing to cancel", await refused(404, () => client.runs.cancel(id, run.run_id)));
  if (client.runs.cancelMany) {
    const third = await client.runs.create(id, "slow", slow);
    await client.runs.cancelMany({ threadId: id, runIds: [third.run_id] });
    const over = async () => (await client.runs.get(id, third.run_id)).status === "interrupted";
    await until("several are cancelled", over);
  }
  const leaver = new AbortController();
  let left = null;
  const stream = client.runs.stream(id, "slow", {
    ...slow, onDisconnect: "cancel", signal: leaver.signal, onRunCreated: (made) => (left = made),
  });
  try {
    for await (const part of stream) if (part.event === "values") leaver.abort();
  } catch {
    // It was aborted.
  }
  await until("a reader that leaves takes its run along", async () => (await client.runs.get(id, left.run_id)).status === "interrupted");
}

async function resumable() {
  const { thread_id: id } = await client.threads.create();
  const options = { input: { count: 1 }, streamMode: ["updates"], streamResumable: true };
  const run = await client.runs.create(id, "counter", options);
  await client.runs.join(id, run.run_id);
  const seen = await all(client.runs.joinStream(id, run.run_id, { lastEventId: "-1" }));
  show("a stream is had again", same(seen.map((part) => part.event), ["metadata", "updates", "updates", "updates"]), seen);
  show("ids are not repeated", new Set(seen.map((part) => part.id)).size === 4);
  const rest = await all(client.runs.joinStream(id, run.run_id, { lastEventId: seen[1].id }));
  show("or the rest of it", same(rest.map((part) => part.data), seen.slice(2).map((part) => part.data)));
  const filtered = await all(client.runs.joinStream(id, run.run_id, { lastEventId: "-1", streamMode: ["values"] }));
  show("or other modes, of which there are none", filtered.length === 0, filtered);
}

async function items() {
  const space = ["js", crypto.randomUUID()];
  await client.store.putItem(space, "k1", { x: 1 });
  await client.store.putItem(space, "k2", { x: 2 });
  show("an item", (await client.store.getItem(space, "k1")).value.x === 1);
  const found = await client.store.searchItems(space, { filter: { x: { $gt: 1 } } });
  show("items are searched", same(found.items.map((one) => one.key), ["k2"]));
  const spaces = await client.store.listNamespaces({ prefix: space });
  show("namespaces", same(spaces.namespaces, [space]), spaces);
  await client.store.deleteItem(space, "k1");
  show("a missing item is nothing", (await client.store.getItem(space, "k1")) === null);
}

for (const part of [assistants, threads, runs, questions, inProgress, resumable, items]) await part();
finish();
