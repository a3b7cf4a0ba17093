// Drives a server with the hook `useStream` of the stock SDK, and with what Agent Chat UI calls: node hook.mjs URL PACKAGE

import { finish, show, until } from "./checks.mjs";
import { mount } from "./page.mjs";

const [url, name] = process.argv.slice(2);
const { useStream } = await import(`${name}/react`);
const { Client } = await import(name);
const client = new Client({ apiUrl: url });

async function chat() {
  let thread = null;
  const options = { apiUrl: url, assistantId: "chat", messagesKey: "messages", fetchStateHistory: true };
  const page = mount(() => useStream({ ...options, onThreadId: (id) => (thread = id) }));
  await until("the hook is there", () => page.hook !== null);
  const texts = new Set();
  page.hook.submit({ messages: [{ type: "human", content: "hi there" }] });
  await until("an answer comes", () => {
    texts.add(page.hook.messages.at(-1)?.content);
    return page.hook.messages.length === 2 && !page.hook.isLoading;
  });
  show("it is the whole answer", page.hook.messages[1].content === "You said: hi there", page.hook.messages);
  show("a thread was made", typeof thread === "string");
  await until("it is rendered", () => page.text.includes("You said: hi there"));
  page.hook.submit({ messages: [{ type: "human", content: "again" }] });
  await until("a conversation goes on", () => page.hook.messages.length === 4 && !page.hook.isLoading);
  await until("its history is fetched", () => page.hook.history.length > 4);
  const first = page.hook.messages[0];
  const at = page.hook.getMessagesMetadata(first)?.firstSeenState?.parent_checkpoint;
  show("a message says where it came in", at !== undefined);
  page.hook.submit({ messages: [{ type: "human", content: "other" }] }, { checkpoint: at });
  await until("a message is edited", () => page.hook.messages[0]?.content === "other" && !page.hook.isLoading);
  await until("and makes a branch", () => page.hook.getMessagesMetadata(page.hook.messages[0])?.branchOptions?.length === 2);
  page.unmount();
  const other = mount(() => useStream({ ...options, threadId: thread }));
  await until("a page that is opened later has it all", () => other.hook?.messages?.length === 2);
  other.unmount();
}

async function question() {
  const page = mount(() => useStream({ apiUrl: url, assistantId: "approval" }));
  await until("the hook is there", () => page.hook !== null);
  page.hook.submit({ topic: "cats" });
  await until("a question is shown", () => page.hook.interrupt !== undefined && !page.hook.isLoading);
  show("with what it asks", page.hook.interrupt.value.question === "approve?", page.hook.interrupt);
  page.hook.submit(undefined, { command: { resume: "yes" } });
  await until("an answer goes on", () => page.hook.values.decision === "yes" && !page.hook.isLoading);
  show("nothing is open", page.hook.interrupt === undefined);
  page.unmount();
}

async function failure() {
  const page = mount(() => useStream({ apiUrl: url, assistantId: "failing", onError: () => {} }));
  await until("the hook is there", () => page.hook !== null);
  page.hook.submit({});
  await until("a failure is shown", () => String(page.hook.error).includes("boom happened"));
  page.unmount();
}

async function stop() {
  let thread = null;
  const page = mount(() => useStream({ apiUrl: url, assistantId: "slow", onThreadId: (id) => (thread = id) }));
  await until("the hook is there", () => page.hook !== null);
  page.hook.submit({ ticks: 1000, delay: 0.01 });
  await until("a run is shown as it goes on", () => page.hook.values?.done > 1);
  page.hook.stop();
  await until("its run is stopped", async () => (await client.threads.get(thread)).status !== "busy");
  page.unmount();
}

async function agentChatUi() {
  const info = await fetch(`${url}/info`, { headers: { origin: "http://localhost:3000" } });
  show("a browser may ask whether the server is there", info.ok && info.headers.get("access-control-allow-origin") === "*");
  const assistant = "eb6db400-e3c8-5d06-a834-015cb89efe69";
  for (const metadata of [{ graph_id: "chat" }, { assistant_id: assistant }]) {
    const threads = await client.threads.search({ metadata, limit: 100 });
    show("its threads are listed", threads.length > 0 && threads[0].values.messages.length > 0);
  }
  const asks = { origin: "http://localhost:3000", "access-control-request-method": "POST", "access-control-request-headers": "x-api-key" };
  const preflight = await fetch(`${url}/threads`, { method: "OPTIONS", headers: asks });
  show("a browser may send a key", preflight.headers.get("access-control-allow-headers") === "x-api-key");
}

for (const part of [chat, question, failure, stop, agentChatUi]) await part();
finish();
