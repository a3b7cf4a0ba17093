// What happened, why it stopped, who wrote a value, and what would have happened otherwise.

import { check, play, scenario, Served, until } from "./harness.mjs";

const state = (server, id) => server.client.threads.getState(id);

scenario("threads are filtered by state, the filter is a link, and counts are live", async ({ server, open }) => {
  const failed = await server.thread("failing", {});
  const page = await open(server, "#/threads");
  await page.getByRole("button", { name: /^failed/ }).click();
  await until("the address says so", () => page.url().endsWith("status=error"));
  await page.locator(`a[href="#/thread/${failed}"]`).waitFor();
  await page.reload();
  await page.locator(`a[href="#/thread/${failed}"]`).waitFor();
  check("only failed ones", (await page.locator("a[data-row] .badge").allTextContents()).every((text) => text === "failed"));
  const before = Number(await page.getByRole("button", { name: /^failed/ }).locator(".count").textContent());
  await server.thread("failing", {});
  await until("the count moved by itself", async () =>
    Number(await page.getByRole("button", { name: /^failed/ }).locator(".count").textContent()) === before + 1);
});

scenario("threads are found by metadata and by id", async ({ server, open }) => {
  const id = await server.thread("counter", { count: 1 }, { user: "ada", n: 7 });
  await server.thread("counter", { count: 1 }, { user: "bob", n: 7 });
  const page = await open(server, "#/threads");
  await page.keyboard.press("/");
  await page.keyboard.type("user=ada n=7");
  await page.keyboard.press("Enter");
  await until("one is left", async () => (await page.locator("a[data-row]").count()) === 1);
  await page.locator(`a[href="#/thread/${id}"]`).waitFor();
  await page.getByLabel("Find by id or metadata").fill(id);
  await page.keyboard.press("Enter");
  await until("by its id", async () => (await page.locator("a[data-row]").count()) === 1);
  await page.getByLabel("Find by id or metadata").fill("nonsense");
  await page.keyboard.press("Enter");
  await page.getByText("Write metadata as NAME=VALUE").waitFor();
});

scenario("many threads come in pages", async ({ many, open }) => {
  const page = await open(many, "#/threads?q=batch%3D1");
  await until("a page", async () => (await page.locator("a[data-row]").count()) === 50);
  await page.getByRole("button", { name: "Older" }).click();
  await until("the rest", async () => (await page.locator("a[data-row]").count()) === 10);
  check("the page is in the address", page.url().includes("offset=50"), page.url());
  await page.getByRole("button", { name: "Newer" }).click();
  await until("the first page again", async () => (await page.locator("a[data-row]").count()) === 50);
});

scenario("the timeline tells what each superstep changed, and which task did it", async ({ server, open }) => {
  const id = await server.thread("counter", { count: 10 });
  const page = await open(server, `#/thread/${id}`);
  await until("all supersteps", async () => (await page.locator(".moment").count()) === 5);
  await page.locator(".moment-head", { hasText: "b wrote" }).click();
  const body = page.locator(".moment-body");
  await body.getByText("written by b").first().waitFor();
  await body.getByText("longer").waitFor();
  check("what was there before", (await body.locator(".side.removed").first().textContent()).includes("11"));
});

scenario("a failure is found with one press, with its whole text", async ({ server, open }) => {
  const id = await server.thread("failing", {});
  const page = await open(server, `#/thread/${id}`);
  await page.getByText("ValueError").first().waitFor();
  await page.getByRole("button", { name: /Go to the failure/ }).click();
  await page.locator(".trace", { hasText: "boom happened" }).waitFor();
});

scenario("a long pause is a line, not a gap", async ({ server, open }) => {
  const id = await server.thread("counter", {});
  const page = await open(server, "#/help");
  // The times of a real answer, moved apart.
  await page.route("**/timeline?*", async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    answer.checkpoints.forEach((row, at) => {
      if (at > 1) row.created_at = new Date(Date.parse(row.created_at) - 7_500_000).toISOString();
    });
    await route.fulfill({ response, json: answer });
  });
  await page.goto(`${server.url}/studio/#/thread/${id}`);
  await page.getByText("2 h 5 min without a superstep").waitFor();
  check("rows keep their height", (await page.locator(".moment").nth(1).boundingBox()).height < 60);
});

scenario("the graph shows where the thread is, and a node what it did", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: "x" });
  const page = await open(server, `#/thread/${id}/graph`);
  await page.getByRole("button", { name: "review, asks" }).waitFor();
  await page.getByRole("button", { name: "write, has run" }).click();
  await page.getByRole("region", { name: "Node" }).getByText("wrote draft, log").waitFor();
  check("what has not run is plain", (await page.getByRole("button", { name: "publish", exact: true }).count()) === 1);
});

scenario("a subgraph unfolds, and shows what happened inside", async ({ server, open }) => {
  const id = await server.thread("nested", { topic: "x" });
  const page = await open(server, `#/thread/${id}/graph`);
  await page.getByRole("button", { name: "child, asks" }).waitFor();
  await page.getByRole("button", { name: "Unfold subgraphs" }).click();
  await page.getByRole("button", { name: "child:child_ask, asks" }).waitFor();
  await page.getByRole("button", { name: "child:child_prepare, has run" }).waitFor();
  check("the view is a link", page.url().includes("deep=true"));
});

scenario("what runs is lit while it runs", async ({ server, open }) => {
  const { thread_id: id } = await server.client.threads.create({ graphId: "mail" });
  const page = await open(server, `#/thread/${id}/graph`);
  await page.getByRole("button", { name: "handbook", exact: true }).waitFor();
  await server.client.runs.create(id, "mail", { input: { from: "d@example.org", text: "late" }, streamMode: ["tasks", "updates"] });
  await page.getByRole("button", { name: "handbook, runs now" }).waitFor();
  await page.getByRole("button", { name: "review, asks" }).waitFor();
});

scenario("the state says who wrote each value, in which step", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: "who" });
  const page = await open(server, `#/thread/${id}/state`);
  const channel = (name) => page.locator(".channel", { has: page.locator("dt", { hasText: name }) });
  await channel("draft").getByText("by write in step 0").waitFor();
  await channel("topic").getByText("by the input in step -1").waitFor();
  await channel("draft").getByRole("link").click();
  await page.locator(".moment.open", { hasText: "write" }).waitFor();
});

scenario("two checkpoints stand side by side, and the comparison is a link", async ({ server, open }) => {
  const id = await server.thread("counter", { count: 10 });
  const page = await open(server, `#/thread/${id}/compare`);
  await page.getByRole("region", { name: "count" }).waitFor();
  const before = page.getByLabel("Before");
  await before.selectOption({ index: 4 });
  await page.getByRole("region", { name: "log" }).getByText("not there").or(page.getByRole("region", { name: "log" }).getByText("[]")).first().waitFor();
  const address = page.url();
  const other = await open(server, address.slice(address.indexOf("#")));
  await other.getByRole("region", { name: "log" }).waitFor();
  await other.getByRole("button", { name: "Swap" }).click();
  await other.getByRole("region", { name: "log" }).waitFor();
});

scenario("a fork with an edit begins a branch, and says that reducers apply", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: "old" });
  const page = await open(server, `#/thread/${id}`);
  await page.locator(".moment-head", { hasText: "write" }).last().click();
  await page.getByRole("link", { name: "Fork with an edit" }).click();
  await page.getByText("goes through the reducer of its channel").waitFor();
  await page.getByLabel("Channel").selectOption("topic");
  await page.getByLabel("Write, as JSON").fill('"new"');
  await page.getByRole("button", { name: "Begin the branch" }).click();
  await page.getByText("The branch begins at").waitFor();
  await page.getByRole("link", { name: "look at it and continue" }).click();
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await until("the branch went on", async () => (await state(server, id)).values.draft === "draft about new");
  await page.getByText("branch 1").first().waitFor();
});

scenario("an edit that is no JSON, or no value of its channel, is refused in words", async ({ server, open }) => {
  const id = await server.thread("counter", { count: 1 });
  const page = await open(server, `#/thread/${id}/state?fork=true`);
  await page.getByLabel("Channel").selectOption("count");
  await page.getByLabel("Write, as JSON").fill("{");
  await page.getByRole("button", { name: "Begin the branch" }).click();
  await page.getByText("This is not JSON").waitFor();
  await page.getByLabel("Write, as JSON").fill('"seven"');
  await page.getByRole("button", { name: "Begin the branch" }).click();
  await page.locator(".fork [role=alert]", { hasText: "count" }).waitFor();
});

scenario("run again from here is a branch, and the old line stays", async ({ server, open }) => {
  const id = await server.thread("counter", { count: 10 });
  const before = (await server.client.threads.getHistory(id, { limit: 100 })).length;
  const page = await open(server, `#/thread/${id}`);
  await page.locator(".moment-head", { hasText: "b wrote" }).click();
  await page.getByRole("link", { name: "State here" }).click();
  check("continue is another thing", await page.getByRole("button", { name: "Continue", exact: true }).isDisabled());
  await page.getByRole("button", { name: "Run again from here" }).click();
  await page.getByText("branch 1").first().waitFor();
  await until("it ran", async () => (await state(server, id)).next.length === 0);
  check("nothing is gone", (await server.client.threads.getHistory(id, { limit: 100 })).length > before);
});

scenario("a run that stops before a node goes on with Continue", async ({ server, open }) => {
  const page = await open(server, "#/try?graph=counter");
  await page.locator("summary", { hasText: "Options" }).click();
  await page.getByRole("checkbox", { name: "b", exact: true }).check();
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByText("next: b").or(page.locator(".moment-head", { hasText: "b not finished" })).first().waitFor();
  await page.getByRole("link", { name: "State", exact: true }).click();
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.locator(".moment-head", { hasText: "end" }).waitFor();
});

scenario("a run shows its events with their numbers, live and afterwards", async ({ server, open }) => {
  const page = await open(server, "#/try?graph=progress");
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByRole("link", { name: "Runs", exact: true }).click();
  await page.locator("a[data-row]").first().click();
  await page.getByText("That was all.").waitFor();
  const names = await page.locator(".event .mono").allTextContents();
  check("custom events", names.filter((name) => name === "custom").length === 3, names);
  await page.reload();
  await page.getByText("That was all.").waitFor();
  await page.locator(".event", { hasText: "custom" }).first().click();
  await page.getByText("progress").first().waitFor();
});

scenario("a run is cancelled, and another is rolled back", async ({ server, open }) => {
  const { thread_id: id } = await server.client.threads.create({ graphId: "slow" });
  const started = async () => (await server.client.runs.create(id, "slow", { input: { ticks: 1000, delay: 0.05 } })).run_id;
  const first = await started();
  const page = await open(server, `#/thread/${id}/run/${first}`);
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await until("it stopped", async () => (await server.client.runs.get(id, first)).status === "interrupted");
  await page.getByRole("button", { name: "Cancel", exact: true }).waitFor({ state: "detached" });
  const second = await started();
  await page.goto(`${server.url}/studio/#/thread/${id}/run/${second}`);
  await page.getByRole("button", { name: "Cancel and roll back" }).click();
  await until("it is gone", async () => (await server.client.runs.list(id)).length === 1);
});

scenario("an exported thread has its state and its checkpoints", async ({ server, open }) => {
  const id = await server.thread("counter", { count: 4 });
  const page = await open(server, `#/thread/${id}`);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
  const chunks = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk);
  const file = JSON.parse(Buffer.concat(chunks).toString());
  check("its name", download.suggestedFilename() === `thread-${id}.json`);
  check("its content", file.state.values.count === 7 && file.checkpoints.length === 5, file);
});

scenario("a thread is deleted only after a question", async ({ server, open }) => {
  const id = await server.thread("counter", {});
  const page = await open(server, `#/thread/${id}`);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Keep it" }).click();
  check("it is there", (await server.client.threads.get(id)).thread_id === id);
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "Threads" }).waitFor();
  check("it is gone", await server.client.threads.get(id).then(() => false, (error) => error.status === 404));
});

await play(async () => {
  const [server, many] = await Promise.all([Served.start(), Served.start()]);
  await Promise.all(Array.from({ length: 60 }, () => many.client.threads.create({ metadata: { batch: 1 } })));
  return { server, many };
});
