// What must not break the page: hostile values, wrong addresses, keys, a server that goes away, and how it looks and is operated.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { check, play, scenario, Served, until } from "./harness.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>"><svg onload=alert(3)>{{7*7}}${alert(4)}javascript:alert(5)';
const screens = (id) => [
  "#/inbox", "#/threads", "#/try", "#/graphs", "#/graphs/nested", "#/assistants", "#/store", "#/crons", "#/operations", "#/help", "#/components",
  `#/thread/${id}`, `#/thread/${id}/graph?deep=true`, `#/thread/${id}/state?fork=true`, `#/thread/${id}/compare`, `#/thread/${id}/runs`, `#/thread/${id}/try`,
];
const settled = (page) => until("everything is there", () => page.evaluate(() => location.hash.includes("components") || !document.querySelector("[aria-busy]")));
const show = async (page, server, hash) => {
  await page.goto(`${server.url}/studio/${hash}`);
  await page.locator("main :is(h1, .tabs)").first().waitFor();
  await settled(page);
};

scenario("HTML and script in every string are shown, and never run", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: HOSTILE }, { note: HOSTILE });
  await server.client.store.putItem(["<b>bold</b>"], HOSTILE.slice(0, 40), { [HOSTILE]: HOSTILE });
  await server.client.assistants.create({ graphId: "configured", name: HOSTILE, context: { model_name: HOSTILE } });
  const page = await open(server);
  for (const hash of screens(id)) {
    await show(page, server, hash);
    check("no element was made of it", (await page.locator('img[src="x"], [onerror], [onload], main script').count()) === 0, hash);
  }
  await show(page, server, `#/thread/${id}/state`);
  await page.locator(".channel").getByText('<img src=x onerror="alert(1)">').first().waitFor();
});

scenario("the policy of the page lets no other script in", async ({ server, open }) => {
  const page = await open(server);
  const blocked = await page.evaluate(async () => {
    const heard = new Promise((resolve) => addEventListener("securitypolicyviolation", () => resolve(true), { once: true }));
    const script = document.createElement("script");
    try {
      script.textContent = "window.intruder = true";
    } catch {
      return true;
    }
    document.body.append(script);
    return heard;
  });
  check("it was blocked", blocked && !(await page.evaluate(() => window.intruder)));
  // What this scenario did on purpose is no fault of the page.
  page.problems = [];
  await page.evaluate(() => (window.violations = []));
});

scenario("the page talks to its own server and to nobody else", async ({ server, thread, open }) => {
  const page = await open(server);
  const others = [];
  page.on("request", (request) => {
    if (!request.url().startsWith(server.url) && !request.url().startsWith("data:")) others.push(request.url());
  });
  for (const hash of screens(thread)) await show(page, server, hash);
  check("nobody else", others.length === 0, others);
});

scenario("addresses that name nothing are answered in words", async ({ server, thread, open }) => {
  const page = await open(server, "#/nowhere");
  await page.getByText("There is no such page").waitFor();
  for (const [hash, text] of [
    ["#/thread/00000000-0000-0000-0000-000000000000", "there is no thread"],
    ["#/thread/abc", "is not a UUID"],
    [`#/thread/${thread}/run/00000000-0000-0000-0000-000000000000`, "has no run"],
    ["#/assistant/00000000-0000-0000-0000-000000000000", "there is no assistant"],
    ["#/graphs/nothing", "nothing"],
    [`#/thread/${thread}/state?at=nonsense`, "nonsense"],
    ["#/inbox?q=gone", "not open any more"],
    ["#/%E0%A4%A", "There is no such page"],
    ["#/store?ns=%7Bbad", "New item"],
    ["#/threads?offset=-5&status=none", "Threads"],
  ]) {
    await page.goto(`${server.url}/studio/${hash}`);
    await page.locator("main").getByText(text).first().waitFor();
  }
});

scenario("a list of 100,000 items and a text of 5 MB open at their beginning, and go on when asked", async ({ server, open }) => {
  const items = Array.from({ length: 100_000 }, (_, at) => `item ${at}`);
  const { thread_id: id } = await server.client.threads.create({ graphId: "fanout" });
  await server.client.runs.wait(id, "fanout", { input: { items: [] } });
  await server.client.threads.updateState(id, { values: { items, summary: "ü".repeat(2_500_000) }, asNode: "collect" });
  const page = await open(server, `#/thread/${id}/state`);
  await page.getByRole("button", { name: /100,000 items/ }).first().waitFor();
  const more = page.getByRole("button", { name: "… 99,900 more" }).first();
  await more.click();
  await page.getByText("item 199", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "… 2,498,000 more characters" }).first().click();
  await page.getByRole("button", { name: /… 2,482,000 more characters/ }).first().waitFor();
  check("the page stays small", (await page.evaluate(() => document.querySelectorAll("*").length)) < 4000);
});

scenario("a server that goes away is seen, and its return needs nobody", async ({ mortal, open }) => {
  const id = await mortal.thread("approval", { topic: "before" });
  const page = await open(mortal, `#/thread/${id}`);
  await page.locator(".moment").first().waitFor();
  await mortal.stop();
  await page.getByText("The server does not answer.").waitFor();
  check("what was shown stays", (await page.locator(".moment").count()) === 3);
  await mortal.start();
  await page.getByText("The server does not answer.").waitFor({ state: "detached" });
  await mortal.client.runs.wait(id, "approval", { command: { resume: "yes" } });
  await page.locator(".moment-head", { hasText: "publish" }).waitFor();
  page.problems = page.problems.filter((text) => !text.includes("ERR_"));
});

scenario("an answer to a server that is away is not lost from the form", async ({ mortal, open }) => {
  const id = await mortal.thread("approval", { topic: "kept" });
  const page = await open(mortal, `#/thread/${id}`);
  await page.locator("summary", { hasText: "approve?" }).click();
  await page.getByLabel("Your answer").fill('"yes"');
  await mortal.stop();
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await page.getByText("The answer could not be sent").waitFor();
  await mortal.start();
  await page.getByText("The server does not answer.").waitFor({ state: "detached" });
  check("it is still there", (await page.getByLabel("Your answer").inputValue()) === '"yes"');
  await page.getByRole("button", { name: "Answer", exact: true }).click();
  await until("it was taken", async () => (await mortal.client.threads.getState(id)).next.length === 0);
  page.problems = page.problems.filter((text) => !text.includes("ERR_"));
});

scenario("a key is asked for where the server wants one, and kept in the tab only", async ({ locked, open }) => {
  const page = await open(locked, "#/threads");
  const dialog = page.getByRole("dialog", { name: "This server wants a key" });
  await dialog.getByLabel("API key").fill("wrong");
  await page.keyboard.press("Enter");
  await dialog.getByText("The server refuses the key").waitFor();
  await dialog.getByLabel("API key").fill("secret-one");
  await dialog.getByRole("button", { name: "Open" }).click();
  await page.locator("a[data-row]").first().waitFor();
  const kept = await page.evaluate(() => ({ session: { ...sessionStorage }, local: JSON.stringify({ ...localStorage }), cookie: document.cookie, address: location.href }));
  check("in the tab", Object.values(kept.session).includes("secret-one"));
  check("and nowhere else", !`${kept.local}${kept.cookie}${kept.address}`.includes("secret-one"));
  await page.reload();
  await page.locator("a[data-row]").first().waitFor();
  check("the page itself is public", (await fetch(`${locked.url}/studio/`)).ok && (await fetch(`${locked.url}/threads/count`, { method: "POST" })).status === 401);
});

scenario("a key that is revoked while the page is open is asked for again", async ({ locked, open }) => {
  const page = await open(locked, "#/threads");
  await page.getByLabel("API key").fill("secret-one");
  await page.keyboard.press("Enter");
  await page.locator("a[data-row]").first().waitFor();
  locked.keys = ["secret-two"];
  await locked.stop();
  await locked.start();
  await page.getByText("it is wrong, or was revoked").waitFor();
  await page.getByLabel("API key").fill("secret-two");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.locator("a[data-row]").first().waitFor();
  page.problems = page.problems.filter((text) => !text.includes("ERR_"));
});

scenario("everything can be reached and answered with the keyboard", async ({ server, open }) => {
  const id = await server.thread("approval", { topic: "keys" });
  const page = await open(server, "#/threads");
  await page.locator("a[data-row]").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  check("the first row has the focus", await page.locator("a[data-row]").first().evaluate((row) => row === document.activeElement));
  await page.keyboard.press("Enter");
  await page.locator(".tabs").waitFor();
  for (const [key, heading] of [["t", "Threads"], ["p", "Playground"], ["g", "Graphs"], ["a", "Assistants"], ["s", "Store"], ["c", "Crons"], ["o", "Operations"], ["i", "Inbox"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.getByRole("heading", { level: 1, name: heading }).waitFor();
  }
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Help" }).waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await page.getByRole("heading", { name: "Threads" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type(id);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await until("it is found", async () => (await page.locator("a[data-row]").count()) === 1);
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator("summary").waitFor();
  await page.locator("summary").focus();
  await page.keyboard.press("Enter");
  await page.getByLabel("Your answer").waitFor();
  await until("the form has the focus", async () => {
    await page.keyboard.press("Tab");
    return page.getByLabel("Your answer").evaluate((field) => field === document.activeElement);
  });
  await page.keyboard.type('"yes"');
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await until("it was answered", async () => (await server.client.threads.getState(id)).next.length === 0);
});

scenario("the first press of Tab leads past the menu", async ({ server, open }) => {
  const page = await open(server, "#/threads");
  await page.locator("a[data-row]").first().waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  check("to the content", await page.evaluate(() => document.activeElement.id === "content"));
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 390]) {
    scenario(`every screen is accessible, ${colorScheme}, ${width} pixels wide`, async ({ server, thread, open }) => {
      const page = await open(server, "", { colorScheme, viewport: { width, height: 860 }, bypassCSP: true, reducedMotion: "reduce" });
      const found = [];
      for (const hash of screens(thread)) {
        await show(page, server, hash);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        for (const one of violations) {
          if (["serious", "critical"].includes(one.impact)) found.push([hash, one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160))]);
        }
        const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (over > 0) found.push([hash, `${over} pixels too wide`]);
      }
      check("no serious finding", found.length === 0, ...found);
    });
  }
}

scenario("the colours follow the system, or what the reader chose", async ({ server, open }) => {
  const page = await open(server, "#/threads", { colorScheme: "dark" });
  const dark = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const first = await dark();
  await page.getByRole("button", { name: /^Colours/ }).click();
  await until("light", async () => (await dark()) !== first);
  await page.reload();
  await page.locator("a[data-row]").first().waitFor();
  check("it is remembered", (await dark()) !== first);
  await page.getByRole("button", { name: /^Colours/ }).click();
  await until("dark again", async () => (await dark()) === first);
});

scenario("times are in the reader's zone, and the exact one is a touch away", async ({ server, open }) => {
  const id = await server.thread("counter", {});
  const [newest] = await server.client.threads.getHistory(id, { limit: 1 });
  const page = await open(server, `#/thread/${id}`, { timezoneId: "Asia/Tokyo" });
  const time = page.locator(".moment-head time").first();
  const there = new Intl.DateTimeFormat("en", { timeZone: "Asia/Tokyo", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" }).format(new Date(newest.created_at));
  check("the clock of Tokyo", (await time.textContent()) === there, await time.textContent(), there);
  check("with the exact one", (await time.getAttribute("title")).includes(newest.created_at));
});

scenario("nothing moves while events stream in", async ({ server, open }) => {
  const { thread_id: id } = await server.client.threads.create({ graphId: "slow" });
  await server.client.runs.wait(id, "slow", { input: { ticks: 40, delay: 0 }, config: { recursion_limit: 100 } });
  const page = await open(server, `#/thread/${id}`);
  await page.locator(".moment").nth(30).waitFor();
  await settled(page);
  await page.evaluate(() => {
    window.shifted = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
    }).observe({ type: "layout-shift" });
  });
  const head = () => page.locator(".tabs").evaluate((tabs) => tabs.getBoundingClientRect().top);
  const before = await head();
  const rows = await page.locator(".moment").count();
  await server.client.runs.wait(id, "slow", { input: { ticks: 80, delay: 0.01 }, config: { recursion_limit: 200 }, streamMode: ["tasks"] });
  await until("new supersteps are there", async () => (await page.locator(".moment").count()) > rows);
  check("the head stands where it stood", (await head()) === before, before, await head());
});

await play(async () => {
  const [server, mortal, locked] = await Promise.all([Served.start(), Served.start(), Served.start({ keys: ["secret-one"] })]);
  const thread = await server.thread("nested", { topic: "everywhere" });
  await server.thread("failing", {});
  await locked.thread("counter", {});
  return { server, mortal, locked, thread };
});
