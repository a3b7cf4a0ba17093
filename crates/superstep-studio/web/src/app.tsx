// The frame around every screen: where one can go, whether the server is there, and the key that it wants.

import type { ComponentChild } from "preact";
import { useEffect, useState } from "preact/hooks";
import { client, epoch, key, locked, online, unlock } from "./api/client.ts";
import { useKeys } from "./lib/keys.ts";
import { useEvery, useLoad } from "./lib/load.ts";
import { nextScheme, scheme } from "./lib/scheme.ts";
import { href, route } from "./route.ts";
import { Button, Count, Dialog, Empty, Field } from "./ui/basic.tsx";
import { Assistant, Assistants } from "./screens/assistants.tsx";
import { Components } from "./screens/components.tsx";
import { Crons } from "./screens/crons.tsx";
import { Graphs } from "./screens/graphs.tsx";
import { Help } from "./screens/help.tsx";
import { Inbox } from "./screens/inbox.tsx";
import { Operations } from "./screens/operations.tsx";
import { Playground } from "./screens/playground.tsx";
import { StoreBrowser } from "./screens/store.tsx";
import { Thread } from "./screens/thread.tsx";
import { Threads } from "./screens/threads.tsx";

const PLACES: [string, string, string][] = [
  ["inbox", "Inbox", "◉"],
  ["threads", "Threads", "≡"],
  ["try", "Playground", "▷"],
  ["graphs", "Graphs", "⌥"],
  ["assistants", "Assistants", "⚙"],
  ["store", "Store", "▤"],
  ["crons", "Crons", "◷"],
  ["operations", "Operations", "∿"],
];

export function App() {
  useKeys(() => {
    epoch.value += 1;
  });
  const { path, query } = route.value;
  const place = path[0] ?? "inbox";
  const where = path.slice(0, 2).join("/");
  useEffect(() => {
    scrollTo(0, 0);
  }, [where]);
  return (
    <div class="frame">
      <a class="skip" href="#content" onClick={skip}>Skip to the content</a>
      <Menu place={place === "thread" ? "threads" : place === "assistant" ? "assistants" : place} />
      <main id="content" tabIndex={-1}>
        <Connection />
        <div class="screen" key={place}>{screen(place, path.slice(1), query)}</div>
      </main>
      {locked.value && <KeyDialog />}
    </div>
  );
}

function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("content")?.focus();
}

function screen(place: string, rest: string[], query: URLSearchParams): ComponentChild {
  const [id = "", view = ""] = rest;
  switch (place) {
    case "inbox":
      return <Inbox chosen={query.get("q") ?? ""} />;
    case "threads":
      return <Threads query={query} />;
    case "thread":
      return <Thread key={id} id={id} view={view || "timeline"} more={rest[2] ?? ""} query={query} />;
    case "try":
      return <Playground graph={query.get("graph") ?? ""} />;
    case "graphs":
      return <Graphs name={id} />;
    case "assistants":
      return <Assistants />;
    case "assistant":
      return <Assistant key={id} id={id} />;
    case "store":
      return <StoreBrowser query={query} />;
    case "crons":
      return <Crons />;
    case "operations":
      return <Operations />;
    case "components":
      return <Components />;
    case "help":
      return <Help />;
    default:
      return <Empty title="There is no such page">The address names a view that the studio does not have.</Empty>;
  }
}

function Menu({ place }: { place: string }) {
  const waiting = useLoad("waiting", () => client.value.threads.count({ status: "interrupted" }));
  useEvery(5000, () => {
    if (online.peek() && !locked.peek()) waiting.again();
  });
  useEffect(() => {
    const name = PLACES.find(([id]) => id === place)?.[1] ?? "studio";
    const count = waiting.data ? `(${waiting.data}) ` : "";
    document.title = `${count}${name} · superstep studio`;
  }, [place, waiting.data]);
  return (
    <nav class="menu" aria-label="Screens">
      <a class="brand" href={href(["inbox"])} aria-label="superstep, to the inbox">
        <img src="icon.svg" alt="" width="24" height="24" />
        <span>superstep</span>
      </a>
      <ul>
        {PLACES.map(([id, name, sign]) => (
          <li key={id}>
            <a href={href([id])} aria-current={id === place ? "page" : undefined}>
              <span class="sign" aria-hidden="true">{sign}</span>
              <span>{name}</span>
              {id === "inbox" && waiting.data ? <Count of={waiting.data} /> : null}
            </a>
          </li>
        ))}
      </ul>
      <div class="menu-end">
        <Button kind="quiet" label={`Colours: ${scheme.value}`} title="Light, dark, or as the system says" onClick={nextScheme}>
          {scheme.value === "dark" ? "☾ dark" : scheme.value === "light" ? "☼ light" : "◐ system"}
        </Button>
        <a class="button quiet" href={href(["help"])}>Help <kbd>?</kbd></a>
      </div>
    </nav>
  );
}

/** One line of fixed height, so that nothing moves when it changes. */
function Connection() {
  const [lostOnce, remember] = useState(false);
  useEffect(() => {
    if (!online.value) remember(true);
  }, [online.value]);
  if (online.value) {
    return <div class="connection" role="status">{lostOnce ? <span class="visually-hidden">The server is back.</span> : null}</div>;
  }
  return (
    <div class="connection lost" role="status">
      The server does not answer. What you see is from before; the page tries again by itself.
    </div>
  );
}

function KeyDialog() {
  const [given, write] = useState("");
  const refused = locked.value === "refused";
  const submit = (event: Event) => {
    event.preventDefault();
    if (given.trim()) unlock(given.trim());
  };
  return (
    <Dialog title="This server wants a key">
      <form class="stack" onSubmit={submit}>
        {refused && <p class="notice bad" role="alert">The server refuses the key that this tab has: it is wrong, or was revoked.</p>}
        <Field label="API key" hint="Kept for this tab only, until it is closed.">
          <input type="password" autocomplete="off" value={given} onInput={(event) => write(event.currentTarget.value)} />
        </Field>
        <div class="row end">
          <Button kind="main" submit disabled={!given.trim()}>Open</Button>
        </div>
        {key.value && !refused ? <p class="hint">A key is set.</p> : null}
      </form>
    </Dialog>
  );
}
