// What waits for me: the inbox, and every way in which an answer can go.

import { check, play, scenario, Served, until } from "./harness.mjs";

const state = (server, id) => server.client.threads.getState(id);
const done = (server, id) => until("the thread is done", async () => (await state(server, id)).next.length === 0);

/** The address of the only question of a thread, in the inbox. */
async function question(server, id) {
  const now = await server.client.threads.getState(id, undefined, { subgraphs: true });
  const find = (tasks) => tasks.flatMap((task) => [...task.interrupts, ...(task.state ? find(task.state.tasks) : [])]);
  return `#/inbox?q=${find(now.tasks)[0].id}`;
}

async function answer(page, text) {
  await page.getByLabel("Your answer").fill(text);
  await page.getByRole("button", { name: "Answer", exact: true }).click();
}

scenario("at the first start there is a question to answer, and it takes two presses", async ({ fresh, open }) => {
  const page = await open(fresh, "#/inbox");
  await page.locator("a[data-row]").first().click();
  await page.getByText("Order 1042 left our warehouse").waitFor();
  await page.getByRole("button", { name: "approve" }).click();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByText("Your answer was taken").waitFor();
  const [thread] = await fresh.client.threads.search({ limit: 1 });
  await done(fresh, thread.thread_id);
  check("the mail was sent", (await state(fresh, thread.thread_id)).values.receipt === "accepted for ada@example.org");
  await page.goto(`${fresh.url}/studio/#/inbox`);
  await page.getByText("Nothing waits for you").waitFor();
});

scenario("a question is answered in the inbox, and the thread goes on", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: "the harvest" });
  const page = await open(server, await question(server, id));
  await page.getByText("draft about the harvest").waitFor();
  await answer(page, '"yes"');
  await page.getByText("Your answer was taken").waitFor();
  await page.getByRole("link", { name: "See the thread" }).click();
  await page.getByRole("button", { name: /publish/ }).waitFor();
  await done(server, id);
  check("the answer arrived", (await state(server, id)).values.decision === "yes");
});

scenario("an answer without a schema can be any JSON, and text need not be quoted", async ({ server, open }) => {
  const [first, second] = [await server.thread("approval", { topic: "a" }), await server.thread("approval", { topic: "b" })];
  const page = await open(server, await question(server, first));
  await answer(page, '{"deep": [1, null, "ü"]}');
  await page.getByText("Your answer was taken").waitFor();
  await done(server, first);
  check("an object", JSON.stringify((await state(server, first)).values.decision) === '{"deep":[1,null,"ü"]}');
  await page.goto(`${server.url}/studio/${await question(server, second)}`);
  await page.getByLabel("Your answer").fill("not {JSON");
  await page.getByText("Not JSON: sent as a text").waitFor();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByText("Your answer was taken").waitFor();
  await done(server, second);
  check("a text", (await state(server, second)).values.decision === "not {JSON");
});

scenario("a form from the schema takes the variant that has fields", async ({ server, open }) => {
  const id = await server.thread("mail", { from: "b@example.org", text: "where is it?" });
  const page = await open(server, await question(server, id));
  await page.getByRole("button", { name: "edit", exact: true }).click();
  await page.getByRole("textbox", { name: "edit" }).fill("Dear B, tomorrow.");
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByText("Your answer was taken").waitFor();
  await done(server, id);
  check("the edited text was sent", (await state(server, id)).values.draft === "Dear B, tomorrow.");
});

scenario("an answer that does not fit its schema is refused in words, and the question stays open", async ({ server, open }) => {
  const id = await server.thread("mail", { from: "c@example.org", text: "where is it?" });
  const page = await open(server, await question(server, id));
  await page.getByRole("button", { name: "As JSON" }).click();
  await answer(page, '"perhaps"');
  await page.getByText("The answer was refused, and the question is still open").waitFor();
  await page.getByRole("button", { name: "As a form" }).click();
  await page.getByRole("button", { name: "reject" }).click();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByText("Your answer was taken").waitFor();
  await done(server, id);
});

scenario("nothing is sent before something is chosen", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: "x" });
  const page = await open(server, await question(server, id));
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByText("Choose or write an answer first.").waitFor();
  check("the question is open", (await state(server, id)).next.length === 1);
});

scenario("two pages race for one answer: one is taken, and the other is told", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: "a race" });
  const address = await question(server, id);
  const [one, two] = [await open(server, address), await open(server, address)];
  await one.getByLabel("Your answer").fill('"one"');
  await two.getByLabel("Your answer").fill('"two"');
  await Promise.all([one, two].map((page) => page.getByRole("button", { name: "Answer", exact: true }).click()));
  const told = await Promise.all([one, two].map(async (page) => {
    const ended = page.getByText(/Your answer was taken|Somebody else answered first|The thread is running right now|The answer was refused/);
    return (await ended.first().textContent()) ?? "";
  }));
  await done(server, id);
  const { decision } = (await state(server, id)).values;
  check("one was taken", told.filter((text) => text.includes("was taken")).length === 1, told);
  check("and it is the one that was told so", told[decision === "one" ? 0 : 1].includes("was taken"), told, decision);
});

scenario("a question that somebody else answers while it is open here says so", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: "elsewhere" });
  const page = await open(server, await question(server, id));
  await page.getByLabel("Your answer").fill('"mine"');
  await server.client.runs.wait(id, "approval", { command: { resume: "theirs" } });
  await page.getByText("Somebody else has answered this question in the meantime").waitFor();
});

scenario("two questions of one thread are answered one after the other", async ({ server, open }) => {
  const id = await server.thread("parallel", {});
  const page = await open(server, `#/thread/${id}`);
  for (const [node, text] of [["ask_a", "1"], ["ask_b", "2"]]) {
    await page.locator("summary", { hasText: node }).click();
    const panel = page.locator("details", { hasText: node });
    await panel.getByLabel("Your answer").fill(text);
    await panel.getByRole("button", { name: "Answer", exact: true }).click();
    await until(`${node} is answered`, async () => !(await state(server, id)).tasks.some((task) => task.name === node && task.interrupts.length > 0 && !task.result));
    await page.locator("summary", { hasText: node }).waitFor({ state: "detached" });
  }
  await done(server, id);
  check("both arrived", (await state(server, id)).values.merged === "a=1|b=2", (await state(server, id)).values);
});

scenario("a question that a subgraph asks is answered like any other", async ({ server, open }) => {
  const id = await server.thread("nested", { topic: "inner" });
  const page = await open(server, await question(server, id));
  await answer(page, '"from the page"');
  await page.getByText("Your answer was taken").waitFor();
  await done(server, id);
  check("the answer got inside", (await state(server, id)).values.log.includes("after:from the page"));
});

scenario("the menu and the title count what waits, the longest first", async ({ counted, open }) => {
  const ids = [];
  for (const topic of ["first", "second", "third"]) ids.push(await counted.thread("approval", { topic }));
  const page = await open(counted, "#/inbox");
  await page.getByRole("link", { name: /Inbox 4/ }).waitFor();
  await until("the title counts", async () => (await page.title()).startsWith("(4) "));
  const rows = page.locator("a[data-row]");
  await until("all are listed", async () => (await rows.count()) === 4);
  await rows.nth(1).click();
  await page.getByText("draft about first").waitFor();
});

await play(async () => {
  const [server, fresh, counted] = await Promise.all([Served.start(), Served.start(), Served.start()]);
  // The run of the first start stops at its question.
  for (const one of [fresh, counted]) await until("a question", async () => (await one.client.threads.search({ status: "interrupted" })).length === 1);
  return { server, fresh, counted };
});
