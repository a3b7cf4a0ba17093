// A request as others would write it, and a thread as a file.

import { client, own, server } from "../api/client.ts";
import type { Json, Timeline } from "../api/types.ts";

export type Started = { thread: string | null; assistant: string; body: Record<string, Json> };

const NOTE = "# with a key: ";

/** The request that starts a run, for a shell. No key is put into it. */
export function curl({ thread, assistant, body }: Started): string {
  const path = thread ? `/threads/${thread}/runs/stream` : "/runs/stream";
  const json = JSON.stringify({ assistant_id: assistant, ...body }, null, 2).replaceAll("'", "'\\''");
  return `${NOTE}add -H "x-api-key: $KEY"\ncurl -N ${server}${path} \\\n  -H 'content-type: application/json' \\\n  -d '${json}'\n`;
}

/** A JSON value as Python writes it. */
function python(value: Json): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    return `{${Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${python(one)}`).join(", ")}}`;
  }
  return JSON.stringify(value);
}

export function pythonSdk({ thread, assistant, body }: Started): string {
  const options = Object.entries(body).map(([name, value]) => `        ${name}=${python(value)},\n`).join("");
  return [
    "import asyncio",
    "from langgraph_sdk import get_client",
    "",
    "async def main():",
    `    client = get_client(url=${JSON.stringify(server)})  ${NOTE}api_key=...`,
    "    async for part in client.runs.stream(",
    `        ${thread ? JSON.stringify(thread) : "None"},`,
    `        ${JSON.stringify(assistant)},`,
    `${options}    ):`,
    "        print(part.event, part.data)",
    "",
    "asyncio.run(main())",
    "",
  ].join("\n");
}

function camel(name: string): string {
  return name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

export function javascriptSdk({ thread, assistant, body }: Started): string {
  const options = Object.fromEntries(Object.entries(body).map(([name, value]) => [camel(name), value]));
  return [
    'import { Client } from "@langchain/langgraph-sdk";',
    "",
    `const client = new Client({ apiUrl: ${JSON.stringify(server)} }); // with a key: apiKey`,
    `const run = client.runs.stream(${thread ? JSON.stringify(thread) : "null"}, ${JSON.stringify(assistant)}, ${JSON.stringify(options, null, 2)});`,
    "for await (const part of run) console.log(part.event, part.data);",
    "",
  ].join("\n");
}

/** Saves what the API shows of a thread: its state now, and the line of its checkpoints. */
export async function exported(id: string, info: unknown): Promise<void> {
  const state = await client.value.threads.getState(id, undefined, { subgraphs: true });
  const checkpoints = [];
  let before: string | undefined;
  do {
    const page: Timeline = await own<Timeline>(`/threads/${id}/timeline`, { before, limit: 1000 });
    checkpoints.push(...page.checkpoints);
    before = page.before ?? undefined;
  } while (before);
  const text = JSON.stringify({ thread: info, state, checkpoints }, null, 1);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  link.download = `thread-${id}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
