// Servers, browsers and scenarios. A file of scenarios is run by: node FILE PROGRAM BROWSER DIRECTORY

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { Client } from "@langchain/langgraph-sdk";
import { chromium } from "playwright-core";

const [program, executablePath, directory] = process.argv.slice(2);
export const dir = directory;
/** Longer than anything takes on a busy machine; nothing waits so long unless it fails. */
const PATIENCE = 20_000;

/** A server as a process. `stop` kills it, and `start` starts it on the same address and the same file. */
export class Served {
  static async start({ name = `s${Math.random().toString(36).slice(2)}`, keys = [] } = {}) {
    const served = new Served();
    served.file = `${directory}/${name}.db`;
    served.keys = keys;
    served.address = `127.0.0.1:${await freePort()}`;
    await served.start();
    return served;
  }

  async start() {
    const args = ["--db", `sqlite:${this.file}`, "serve", "--listen", this.address];
    for (const key of this.keys) args.push("--api-key", key);
    this.process = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"] });
    const lines = createInterface({ input: this.process.stdout });
    const [first] = await once(lines, "line");
    this.url = /http:\/\/[^\s]*?:\d+/.exec(first)[0];
    this.client = new Client({ apiUrl: this.url, apiKey: this.keys[0] ?? null, callerOptions: { maxRetries: 0 } });
  }

  async stop() {
    if (this.process.exitCode !== null) return;
    this.process.kill("SIGKILL");
    await once(this.process, "exit");
  }

  /** A thread of a graph, driven until its run ends or stops. */
  async thread(graph, input, metadata = {}) {
    const { thread_id: id } = await this.client.threads.create({ metadata });
    await this.client.runs.wait(id, graph, { input, raiseError: false });
    return id;
  }
}

/** A server that somebody else has started. */
export class Named {
  constructor(url) {
    this.url = url;
    this.client = new Client({ apiUrl: url, apiKey: null, callerOptions: { maxRetries: 0 } });
  }

  thread(graph, input, metadata) {
    return Served.prototype.thread.call(this, graph, input, metadata);
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

const scenarios = [];

/** What a person wants, and how they get it. */
export function scenario(name, play, options = {}) {
  scenarios.push({ name, play, options });
}

/** A page that remembers what went wrong in it. */
export async function open(browser, served, hash = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  if (process.env.DIST) await context.route("**/studio/*.*", replaced);
  const page = await context.newPage();
  await watch(page);
  await page.goto(`${served.url}/studio/${hash}`);
  await page.locator("#app > .frame").waitFor();
  return page;
}

/** A newer build of the page than the one in the program, under the same policy: for work on the page. */
async function replaced(route) {
  const response = await route.fetch();
  const name = new URL(route.request().url()).pathname.split("/").pop();
  await route.fulfill({ response, path: `${process.env.DIST}/${name}` });
}

async function watch(page) {
  page.setDefaultTimeout(PATIENCE);
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // A browser reports refused and failed requests there, which some scenarios are about.
    const text = message.text();
    if (message.type() === "error" && !text.startsWith("Failed to load resource")) page.problems.push(text);
  });
  page.on("dialog", (dialog) => {
    page.problems.push(`a value opened a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  await page.addInitScript(() => {
    window.violations = [];
    addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
}

/** Nothing went wrong in a page, and its policy was kept. */
export async function healthy(page) {
  const violations = await page.evaluate(() => window.violations).catch(() => []);
  check("nothing went wrong in the page", [...page.problems, ...violations].length === 0, page.problems, violations);
}

export function check(what, condition, ...rest) {
  if (!condition) throw new Error(`${what}: ${rest.map((one) => JSON.stringify(one)).join(" ")}`);
}

/** Waits until something is so. */
export async function until(what, condition) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const now = await condition();
    if (now) return now;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

/** Plays all scenarios with one browser. The first that fails ends it. */
export async function play(setUp) {
  mkdirSync(directory, { recursive: true });
  const only = process.env.ONLY;
  const browser = await chromium.launch({ executablePath, args: FLAGS });
  const world = { browser, ...(await setUp(browser)) };
  const servers = Object.values(world).filter((one) => one instanceof Served);
  let failed = false;
  for (const { name, play } of scenarios) {
    if (only && !name.includes(only)) continue;
    const begun = Date.now();
    const pages = [];
    const openOne = async (served, hash, options) => {
      const page = await open(browser, served, hash, options);
      pages.push(page);
      return page;
    };
    try {
      await play({ ...world, open: openOne });
      for (const page of pages) await healthy(page);
      console.log(`ok ${name} (${Date.now() - begun} ms)`);
    } catch (error) {
      failed = true;
      console.log(`FAILED ${name}: ${error.stack}`);
      for (const page of pages) {
        console.log("  in the page:", page.url(), JSON.stringify(page.problems));
        console.log(`  ${(await page.locator("body").innerText().catch(() => "")).slice(0, 1500).replaceAll("\n", "\n  ")}`);
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/failed.png` }).catch(() => undefined);
      }
    }
    for (const page of pages) await page.context().close();
    if (failed && !process.env.ALL) break;
  }
  await browser.close();
  for (const served of servers) await served.stop();
  process.exit(failed ? 1 : 0);
}
