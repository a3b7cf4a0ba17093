// The pictures of the guide and the README, of the real page: what a newcomer sees on the way that the guide describes.

import { mkdirSync } from "node:fs";
import { check, dir, play, scenario, Served, until } from "./harness.mjs";

const place = process.env.SUPERSTEP_PICTURES ?? `${dir}/pictures`;
mkdirSync(place, { recursive: true });

// Ages and times are the same in each picture.
const steady = (page) =>
  page.evaluate(() => {
    document.activeElement?.blur();
    for (const time of document.querySelectorAll("time")) time.textContent = time.textContent.replace(/\d+ (second|minute)s? ago|now/, "1 minute ago");
  });

const picture = async (page, name, height) => {
  await until("everything is there", () => page.evaluate(() => !document.querySelector("[aria-busy]")));
  if (height) await page.setViewportSize({ width: page.viewportSize().width, height });
  await steady(page);
  const bytes = await page.screenshot({ path: `${place}/${name}.png`, animations: "disabled" });
  check("a picture", bytes.length > 5_000, name);
};

const size = (width, height) => ({ viewport: { width, height }, reducedMotion: "reduce" });

scenario("a newcomer answers the mail's question, finds who wrote a value, and forks with an edit", async ({ server, open }) => {
  const page = await open(server, "", size(1280, 560));
  await page.locator("a[data-row]").first().click();
  await page.getByRole("button", { name: "edit", exact: true }).waitFor();
  await picture(page, "studio-inbox");
  await page.getByRole("button", { name: "approve" }).click();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByRole("link", { name: "See the thread" }).click();
  await page.locator(".moment-head", { hasText: "send" }).waitFor();
  await page.locator(".moment-head", { hasText: "orders" }).click();
  await page.getByText("written by").first().waitFor();
  await picture(page, "studio-timeline", 900);
  await page.getByRole("link", { name: "State", exact: true }).click();
  const facts = page.locator(".channel", { has: page.locator("dt", { hasText: "facts" }) });
  await facts.getByText(/by (handbook, orders|orders, handbook) in step 1/).waitFor();
  await picture(page, "studio-state", 760);
  await page.getByRole("link", { name: "Timeline", exact: true }).click();
  await page.locator(".moment-head", { hasText: "draft" }).first().click();
  await page.getByRole("link", { name: "Fork with an edit" }).click();
  await page.getByLabel("Channel").selectOption("from");
  await page.getByLabel("Write, as JSON").fill('"grace@example.org"');
  await page.locator(".fork").scrollIntoViewIfNeeded();
  await picture(page, "studio-fork", 700);
  await page.getByRole("button", { name: "Begin the branch" }).click();
  await page.getByRole("link", { name: "look at it and continue" }).click();
  await page.getByRole("button", { name: "Continue", exact: true }).click();
  await page.locator("details.ask summary").first().waitFor();
  await page.getByText("branch 1").first().waitFor();
  const [thread] = await server.client.threads.search({ limit: 1 });
  const state = await server.client.threads.getState(thread.thread_id);
  check("the branch is about the other writer", state.values.draft.startsWith("Dear grace"), state.values);
});

scenario("the graph of a thread, in the dark", async ({ server, open }) => {
  const id = await server.thread("mail", { from: "ada@example.org", text: "Where is my order?" });
  const page = await open(server, `#/thread/${id}/graph`, { ...size(1280, 900), colorScheme: "dark" });
  await page.getByRole("button", { name: "review, asks" }).waitFor();
  await picture(page, "studio-graph");
});

scenario("the inbox on a phone", async ({ server, open }) => {
  const page = await open(server, "", { ...size(390, 760), colorScheme: "dark" });
  await page.locator("a[data-row]").first().click();
  await page.getByRole("button", { name: "approve" }).waitFor();
  await picture(page, "studio-phone");
});

await play(async () => {
  const server = await Served.start();
  await until("a question", async () => (await server.client.threads.search({ status: "interrupted" })).length === 1);
  return { server };
});
