// What waits for me: the inbox, and every way in which an answer can go.

import { check, play, scenario, Served, until } from "./harness.mjs";

const state = (server, id) => server.client.threads.getState(id);

scenario("a question is answered in the inbox, and the thread goes on", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: "the harvest" });
  const page = await open(server, "#/inbox");
  await page.getByRole("link", { name: /approve\?/ }).first().click();
  await page.getByText("draft about the harvest").waitFor();
  await page.getByLabel("Your answer").fill('"yes"');
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByText("Your answer was taken").waitFor();
  await page.getByRole("link", { name: "See the thread" }).click();
  await page.getByRole("button", { name: /publish/ }).waitFor();
  await until("the thread is done", async () => (await state(server, id)).next.length === 0);
  check("the answer arrived", (await state(server, id)).values.decision === "yes");
});

await play(async () => ({ server: await Served.start() }));
