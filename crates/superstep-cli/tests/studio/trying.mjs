// Starting runs, and everything around threads: assistants, the store, crons, operations.

import { execFileSync } from "node:child_process";
import { check, play, scenario, Served, until } from "./harness.mjs";

scenario("a graph is started from a form for its input, and the input is offered again", async ({ server, open }) => {
  const page = await open(server, "#/try?graph=approval");
  await page.getByLabel(/Topic/).fill("bees");
  await page.getByRole("button", { name: "Start the run" }).click();
  await page.getByRole("heading", { name: "approval" }).waitFor();
  await page.getByRole("link", { name: "State", exact: true }).click();
  await page.locator(".channel").getByText("draft about bees").first().waitFor();
  await page.goto(`${server.url}/studio/#/try?graph=approval`);
  await page.getByLabel("Previous inputs").selectOption({ index: 1 });
  await until("it is filled in", async () => (await page.getByLabel(/Topic/).inputValue()) === "bees");
});

scenario("a graph whose state has messages is a chat", async ({ server, open }) => {
  const page = await open(server, "#/try?graph=chat");
  await page.getByRole("textbox", { name: "Message" }).fill("hello there");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("You said: hello there").waitFor();
  check("in order", (await page.locator(".message .said").allTextContents()).join("|") === "hello there|You said: hello there");
});

scenario("tool calls are shown in a chat", async ({ server, open }) => {
  const page = await open(server, "#/try?graph=agent");
  await page.getByRole("textbox", { name: "Message" }).fill("weather");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText('lookup({"query":"weather"})').waitFor();
  await page.getByText("Answer: result for weather").waitFor();
});

scenario("a run copied as curl does the same from a shell", async ({ server, open }) => {
  const page = await open(server, "#/try?graph=counter", { permissions: ["clipboard-read", "clipboard-write"] });
  await page.locator("summary", { hasText: "Options" }).click();
  await page.getByRole("button", { name: "curl" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  const command = await page.evaluate(() => navigator.clipboard.readText());
  check("no key in it", !command.includes("x-api-key: s"));
  const said = execFileSync("bash", ["-c", command], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  check("it streams", said.includes("event: metadata") && said.includes('"count":3'), said);
  await page.getByRole("button", { name: "Copied" }).waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Python" }).click();
  await until("Python", async () => (await page.evaluate(() => navigator.clipboard.readText())).includes("from langgraph_sdk import get_client"));
  await page.getByRole("button", { name: "JavaScript" }).click();
  await until("JavaScript", async () => (await page.evaluate(() => navigator.clipboard.readText())).includes("client.runs.stream(null"));
});

scenario("an assistant gets settings as a new version, and goes back to an older one", async ({ server, open }) => {
  const page = await open(server, "#/assistants");
  await page.getByRole("button", { name: "New assistant" }).click();
  await page.getByLabel("Name").fill("careful");
  await page.getByRole("dialog").getByLabel("Graph").selectOption("configured");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "careful" }).waitFor();
  const settings = page.getByLabel("Settings of its runs, as JSON");
  await settings.fill("{nonsense");
  await page.getByRole("button", { name: "Save as a new version" }).click();
  await page.getByText("This is not JSON").waitFor();
  await settings.fill('{"model_name": "m2"}');
  await page.getByRole("button", { name: "Save as a new version" }).click();
  await page.getByText("Saved as version 2.").waitFor();
  await page.getByRole("button", { name: "Use this version" }).click();
  await page.getByText("Version 1 is used from now on.").waitFor();
  const [made] = (await server.client.assistants.search({ graphId: "configured", limit: 10 })).filter((one) => one.name === "careful");
  check("the server agrees", made.version === 1, made);
});

scenario("graphs are listed, drawn and described", async ({ server, open }) => {
  const page = await open(server, "#/graphs");
  await page.getByRole("link", { name: "goto" }).click();
  await page.getByRole("button", { name: "router" }).click();
  await page.getByRole("region", { name: "Node" }).getByText("if its router says so").first().waitFor();
  await page.getByRole("region", { name: "Schemas" }).waitFor();
});

scenario("the store is browsed, searched and changed", async ({ server, open }) => {
  await server.client.runs.wait(null, "memory", { input: { note: "bread" } });
  const page = await open(server, "#/store");
  await page.getByRole("group", { name: "Below" }).getByRole("button", { name: "notes" }).click();
  await page.getByRole("button", { name: "Edit bread" }).click();
  await page.getByLabel("Value, as JSON").fill('{"text": "rye bread"}');
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("rye bread").waitFor();
  await page.getByRole("button", { name: "New item" }).click();
  await page.getByRole("textbox", { name: "Namespace" }).fill("notes/demo");
  await page.getByRole("textbox", { name: "Key" }).fill("milk");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByRole("button", { name: "Edit milk" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Edit milk" }).waitFor({ state: "detached" });
  check("what was written is there", (await server.client.store.getItem(["notes", "demo"], "bread")).value.text === "rye bread");
});

scenario("a cron shows its next five firings, is paused and deleted", async ({ server, open }) => {
  const page = await open(server, "#/crons");
  await page.getByText("No run is scheduled").waitFor();
  await page.getByRole("button", { name: "New cron" }).click();
  await page.getByLabel("Schedule").fill("nonsense");
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.getByLabel("Schedule").fill("30 9 * * 1-5");
  await page.getByLabel("Time zone").fill("Europe/Berlin");
  await page.getByRole("button", { name: "Create" }).click();
  const firings = page.getByRole("list", { name: "Next firings" }).locator("time");
  await until("five", async () => (await firings.count()) === 5);
  const times = await firings.evaluateAll((all) => all.map((one) => one.dateTime));
  for (const time of times) {
    const parts = new Intl.DateTimeFormat("en-GB", { timeZone: "Europe/Berlin", weekday: "short", hour: "2-digit", minute: "2-digit" }).format(new Date(time));
    check("a working day at half past nine", /09:30/.test(parts) && !/Sat|Sun/.test(parts), parts);
  }
  check("one after the other", new Set(times).size === 5 && [...times].sort().join() === times.join(), times);
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByText("paused").waitFor();
  await page.getByRole("button", { name: /Delete the cron/ }).click();
  await page.getByText("No run is scheduled").waitFor();
});

scenario("operations show the queue, and a failed thread is tried again", async ({ server, open }) => {
  const id = await server.thread("failing", {});
  const page = await open(server, "#/operations");
  await page.locator(".figure", { hasText: "running" }).waitFor();
  const row = page.getByRole("region", { name: "Failed threads" }).locator("li", { hasText: "boom happened" });
  await row.first().waitFor();
  await server.client.threads.updateState(id, { values: { mode: "pass" }, asNode: "ok_step" });
  // The change of the state took the failure away; the node waits to run.
  const other = await server.thread("failing", {});
  await page.locator(`a[href="#/thread/${other}"]`).waitFor();
  const before = (await server.client.runs.list(other)).length;
  await page.locator("li", { has: page.locator(`a[href="#/thread/${other}"]`) }).getByRole("button", { name: "Try again" }).click();
  await until("a second run", async () => (await server.client.runs.list(other)).length === before + 1);
});

scenario("help and the page of components show what there is", async ({ server, open }) => {
  const page = await open(server, "#/help");
  await page.getByText("next or previous row").waitFor();
  await page.getByRole("link", { name: "one page" }).click();
  for (const name of ["Buttons", "Badges", "Notices", "Tabs", "Fields", "Values", "Graphs"]) {
    await page.getByRole("region", { name, exact: true }).waitFor();
  }
  await page.getByRole("button", { name: "approve" }).click();
  check("a button is pressed", (await page.getByRole("button", { name: "approve" }).getAttribute("aria-pressed")) === "true");
});

await play(async () => ({ server: await Served.start() }));
