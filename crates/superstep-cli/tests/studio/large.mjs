// Large things: as quick to look at as small ones. The figures are printed, not judged: how long something takes depends on the machine.

import { check, Named, play, scenario, until } from "./harness.mjs";

const figure = (name, value) => console.log(`figure: ${name}: ${Math.round(value)} ms`);

/** How long it takes, in the page, from a change of the address until something is painted. */
const opened = (page, hash, selector, count = 1) =>
  page.evaluate(([hash, selector, count]) => new Promise((resolve) => {
    const begun = performance.now();
    const look = () => {
      if (document.querySelectorAll(selector).length >= count) {
        requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun), 0));
      } else {
        requestAnimationFrame(look);
      }
    };
    location.hash = hash;
    requestAnimationFrame(look);
  }), [hash, selector, count]);

/** The longest task of the page from now on. */
async function watchTasks(page) {
  await page.evaluate(() => {
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
    }).observe({ type: "longtask" });
  });
}

scenario("a thread of 10,000 checkpoints opens at its newest ones, and goes back page by page", async ({ large, open }) => {
  const { thread_id: id } = await large.client.threads.create();
  await large.client.runs.wait(id, "rounds", { input: { rounds: 10_000 }, config: { recursion_limit: 10_100 }, durability: "async" });
  const page = await open(large, "#/threads");
  await page.locator("a[data-row]").first().waitFor();
  figure("a thread of 10,000 checkpoints opens", await opened(page, `#/thread/${id}`, ".moment", 100));
  check("a page of them", (await page.locator(".moment").count()) === 100);
  await page.getByRole("button", { name: "Older supersteps" }).click();
  await until("more", async () => (await page.locator(".moment").count()) === 600);
  figure("its graph opens", await opened(page, `#/thread/${id}/graph`, ".node", 3));
  figure("its state opens", await opened(page, `#/thread/${id}/state`, ".channel", 2));
});

scenario("a graph of 300 nodes is drawn, and a click on a node is answered", async ({ large, open }) => {
  const page = await open(large, "#/graphs");
  await page.locator("a[data-row]").first().waitFor();
  figure("a graph of 300 nodes is drawn", await opened(page, "#/graphs/wide", ".node", 302));
  const took = await page.evaluate(() => new Promise((resolve) => {
    const begun = performance.now();
    const node = [...document.querySelectorAll(".node[role=button]")].find((one) => one.textContent.includes("node_7_7"));
    node.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    const look = () => (document.querySelector("[aria-label=Node]") ? resolve(performance.now() - begun) : requestAnimationFrame(look));
    look();
  }));
  figure("a click on a node is answered", took);
  await page.getByRole("region", { name: "Node" }).getByText("node_8_7").first().waitFor();
  const boxes = await page.locator(".node rect").evaluateAll((all) => all.map((one) => [one.x.baseVal.value, one.y.baseVal.value, one.width.baseVal.value, one.height.baseVal.value]));
  const overlap = boxes.some(([x, y, w, h], at) => boxes.slice(at + 1).some(([a, b, c, d]) => x < a + c && a < x + w && y < b + d && b < y + h));
  check("no node lies on another", !overlap);
});

scenario("a value of 5 MB is shown, and one of 50 MB, too", async ({ large, open }) => {
  const page = await open(large, "#/threads");
  for (const megabytes of [5, 50]) {
    const { thread_id: id } = await large.client.threads.create();
    const { run_id: run } = await large.client.runs.create(id, "heavy", { input: { megabytes }, streamMode: "tasks" });
    await until("it is done", async () => (await large.client.runs.get(id, run)).status === "success");
    figure(`a value of ${megabytes} MB is shown`, await opened(page, `#/thread/${id}/state`, ".channel .more"));
    await page.getByRole("button", { name: new RegExp("more characters") }).first().click();
    const letters = await page.evaluate(() => document.body.innerText.length);
    check("a part of it", letters < 100_000, letters);
    await page.goto(`${large.url}/studio/#/thread/${id}`);
    await page.locator(".moment-head", { hasText: "end" }).click();
    await page.locator(".moment-body .side.added").first().waitFor();
    await page.goto(`${large.url}/studio/#/threads`);
    await page.locator("a[data-row]").first().waitFor();
  }
});

scenario("a value of a type that nobody knows is shown as what it is made of", async ({ large, open }) => {
  const id = await large.thread("heavy", { megabytes: 0 });
  const page = await open(large, `#/thread/${id}/state`);
  await page.locator(".channel", { hasText: "odd" }).waitFor();
});

scenario("1,000 events for each second stream in, and the page stays quick", async ({ large, open }) => {
  const { thread_id: id } = await large.client.threads.create({ graphId: "flood" });
  const page = await open(large, `#/thread/${id}`);
  await page.getByText("Live").waitFor();
  await watchTasks(page);
  await large.client.runs.create(id, "flood", { input: { events: 4000 }, streamMode: ["custom", "tasks"] });
  await until("all of them were counted", async () => /4,?\d\d\d events/.test((await page.locator(".live-line").textContent()) ?? ""));
  figure("the longest task while 4,000 events came", await page.evaluate(() => window.longest));
});

await play(async () => ({ large: new Named(process.env.OTHER_SERVER) }));
