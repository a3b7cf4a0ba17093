// What can be done here, and with which keys.

import { KEYS } from "../lib/keys.ts";
import { href } from "../route.ts";
import { Panel, Title } from "../ui/basic.tsx";

const PATHS: [string, string, string][] = [
  ["inbox", "Inbox", "answer the questions that graphs ask"],
  ["threads", "Threads", "find a thread, by its state or its metadata"],
  ["try", "Playground", "start a graph on a new thread"],
  ["graphs", "Graphs", "look at a graph and its schemas"],
  ["assistants", "Assistants", "change the settings of a graph, and go back to older ones"],
  ["store", "Store", "look into long-term memory"],
  ["crons", "Crons", "schedule runs"],
  ["operations", "Operations", "see the queue, and try failed threads again"],
];

export function Help() {
  return (
    <>
      <Title about="The studio shows what any client of this server can see with the same key.">Help</Title>
      <Panel title="Screens" name="Screens">
        <dl class="facts">
          {PATHS.map(([path, name, about]) => (
            <>
              <dt key={`t${path}`}><a href={href([path])}>{name}</a></dt>
              <dd key={`d${path}`}>{about}</dd>
            </>
          ))}
        </dl>
      </Panel>
      <Panel title="On a thread" name="On a thread">
        <dl class="facts">
          <dt>Timeline</dt><dd>why the thread is where it is: each superstep, its tasks, what they wrote, failures</dd>
          <dt>Graph</dt><dd>where in its graph it is; what runs is lit while it runs</dd>
          <dt>State</dt><dd>the values at a checkpoint, who wrote them, and three ways on: continue, run again from here, fork with an edit</dd>
          <dt>Compare</dt><dd>two checkpoints side by side</dd>
          <dt>Runs</dt><dd>each run with its events; cancel it, or roll it back</dd>
          <dt>Continue</dt><dd>another run: as a chat if the state has messages</dd>
        </dl>
      </Panel>
      <Panel title="Keys" name="Keys">
        <dl class="facts">
          {KEYS.map(([key, about]) => (
            <>
              <dt key={`k${key}`}><kbd>{key}</kbd></dt>
              <dd key={`a${key}`}>{about}</dd>
            </>
          ))}
        </dl>
      </Panel>
      <p class="dim">The parts of which every screen is made are on <a href={href(["components"])}>one page</a>. The API is described at <a href="../docs">/docs</a>.</p>
    </>
  );
}
