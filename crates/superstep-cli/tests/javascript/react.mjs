// Drives a server with the hook `useStream` of `@langchain/react`, which speaks the thread protocol: node react.mjs URL

import { useStream } from "@langchain/react";
import { Client } from "sdk-1";

import { finish, show, until } from "./checks.mjs";
import { mount } from "./page.mjs";

const [url] = process.argv.slice(2);
const client = new Client({ apiUrl: url });
const text = (message) =>
  typeof message?.content === "string"
    ? message.content
    : (message?.content ?? []).map((block) => block.text ?? "").join("");

async function open(options) {
  const page = mount(() => useStream({ apiUrl: url, ...options }));
  await until("the hook is there", () => page.hook !== null);
  return page;
}

async function chat() {
  const page = await open({ assistantId: "chat" });
  page.hook.submit({ messages: [{ type: "human", content: "hi there" }] });
  await until("an answer comes", () => text(page.hook.messages[1]) === "You said: hi there");
  await until("and ends", () => !page.hook.isLoading);
  const thread = page.hook.threadId;
  show("a thread was made", typeof thread === "string", thread);
  await until("it is rendered", () => page.text.includes("You said"));
  page.hook.submit({ messages: [{ type: "human", content: "again" }] });
  await until("a conversation goes on", () => text(page.hook.messages[3]) === "You said: again");
  await until("and ends again", () => !page.hook.isLoading);
  const stored = await client.threads.getState(thread);
  show("the thread has it", stored.values.messages.length === 4);
  page.unmount();
  const later = await open({ assistantId: "chat", threadId: thread });
  await until("a page that is opened later has it all", () => later.hook.messages.length === 4);
  later.unmount();
}

async function question() {
  const page = await open({ assistantId: "approval" });
  page.hook.submit({ topic: "cats" });
  await until("a question is shown", () => page.hook.interrupt !== undefined);
  show("with what it asks", page.hook.interrupt.value.question === "approve?", page.hook.interrupt);
  await until("the run has ended", () => !page.hook.isLoading);
  await page.hook.respond("yes");
  await until("an answer goes on", () => page.hook.values.decision === "yes");
  await until("nothing is open", () => page.hook.interrupts.length === 0);
  await until("the thread rests", async () => (await client.threads.get(page.hook.threadId)).status === "idle");
  page.unmount();
}

async function nested() {
  const page = await open({ assistantId: "nested" });
  page.hook.submit({ topic: "deep" });
  const asked = () => page.hook.interrupts.length > 0 || page.hook.getThread?.()?.interrupts?.length > 0;
  await until("a question from inside is shown", asked);
  await until("its run has ended", () => !page.hook.isLoading);
  await page.hook.respond("fine");
  await until("it is answered", () => page.hook.values.note === "fine");
  page.unmount();
}

async function failure() {
  const page = await open({ assistantId: "failing" });
  page.hook.submit({}).catch(() => {});
  await until("a failure is shown", () => String(page.hook.error).includes("boom happened"));
  page.unmount();
}

async function stop() {
  const page = await open({ assistantId: "slow" });
  page.hook.submit({ ticks: 1000, delay: 0.01 });
  await until("a run is shown as it goes on", () => page.hook.values?.done > 1);
  await page.hook.stop();
  const rests = async () => (await client.threads.get(page.hook.threadId)).status !== "busy";
  await until("its run is stopped", rests);
  page.unmount();
}

for (const part of [chat, question, nested, failure, stop]) await part();
finish();
