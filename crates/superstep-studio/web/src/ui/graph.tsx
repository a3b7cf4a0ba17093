// A graph as the server has laid it out, with what happens in it.

import { useState } from "preact/hooks";
import type { Layout, PlacedEdge } from "../api/types.ts";
import { Button } from "./basic.tsx";

export type NodeState = "done" | "running" | "next" | "asks" | "failed";

const WORDS: Record<NodeState, string> = {
  done: "has run",
  running: "runs now",
  next: "runs next",
  asks: "asks",
  failed: "failed",
};

/** A line through points, rounded where it turns. */
function path({ points }: PlacedEdge): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let text = `M${first[0]} ${first[1]}`;
  let [x, y] = first;
  for (const [nextX, nextY] of rest) {
    const half = (nextY - y) / 2;
    text += `C${x} ${y + half} ${nextX} ${nextY - half} ${nextX} ${nextY}`;
    [x, y] = [nextX, nextY];
  }
  return text;
}

const ZOOMS = [0.25, 0.4, 0.6, 0.8, 1, 1.25, 1.6, 2];

export function GraphView({ layout, states, chosen, choose }: {
  layout: Layout;
  states?: Map<string, NodeState>;
  chosen?: string | null;
  choose?: (id: string) => void;
}) {
  const [zoom, set] = useState(1);
  const [fit, fitted] = useState(layout.width <= 1400);
  const step = (by: number) => {
    fitted(false);
    const at = ZOOMS.findIndex((one) => one >= zoom);
    set(ZOOMS[Math.min(Math.max(at + by, 0), ZOOMS.length - 1)] ?? 1);
  };
  const size = fit ? {} : { width: layout.width * zoom, height: layout.height * zoom };
  return (
    <figure class="graph">
      <div class="row graph-tools">
        <Button kind="quiet" label="Smaller" onClick={() => step(-1)}>−</Button>
        <Button kind="quiet" label="Larger" onClick={() => step(1)}>+</Button>
        <Button kind="quiet" pressed={fit} onClick={() => fitted(!fit)}>Fit</Button>
        {states && states.size > 0 && (
          <ul class="legend" aria-label="Legend">
            {[...new Set(states.values())].map((one) => <li key={one} class={one}>{WORDS[one]}</li>)}
          </ul>
        )}
      </div>
      <div class="graph-scroll" tabIndex={0} role="group" aria-label="Graph, can be scrolled">
        <svg
          class={fit ? "fit" : ""}
          viewBox={`0 0 ${layout.width} ${layout.height}`}
          style={fit ? { maxWidth: layout.width } : size}
          role="group"
          aria-label="Nodes and edges"
        >
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M0 0.5L7.5 4L0 7.5z" class="arrow" />
            </marker>
          </defs>
          {layout.groups.map((group) => (
            <g key={group.id} class="group">
              <rect x={group.x} y={group.y} width={group.width} height={group.height} rx="10" />
              <text x={group.x + 10} y={group.y + 17}>{group.label}</text>
            </g>
          ))}
          {layout.edges.map((edge, at) => (
            <g key={at} class={`edge${edge.conditional ? " conditional" : ""}${lit(edge, states) ? " lit" : ""}`}>
              <path d={path(edge)} marker-end="url(#arrow)" />
              {edge.label && <text {...middle(edge)}>{edge.label}</text>}
            </g>
          ))}
          {layout.nodes.map((node) => {
            const state = states?.get(node.id);
            const end = node.id === "__start__" || node.id === "__end__";
            const press = choose && !end ? () => choose(node.id) : undefined;
            return (
              <g
                key={node.id}
                class={`node ${state ?? ""}${end ? " end" : ""}${chosen === node.id ? " chosen" : ""}${node.subgraph ? " subgraph" : ""}`}
                {...(press
                  ? {
                    role: "button",
                    tabIndex: 0,
                    "aria-label": `${node.id}${state ? `, ${WORDS[state]}` : ""}`,
                    "aria-pressed": chosen === node.id,
                    onClick: press,
                    onKeyDown: (event: KeyboardEvent) => {
                      if (event.key !== "Enter" && event.key !== " ") return;
                      event.preventDefault();
                      press();
                    },
                  }
                  : {})}
              >
                <rect x={node.x} y={node.y} width={node.width} height={node.height} rx={end ? node.height / 2 : 7} />
                <text x={node.x + node.width / 2} y={node.y + node.height / 2 + 4}>{node.label}</text>
                <title>{node.id}{state ? `: ${WORDS[state]}` : ""}</title>
              </g>
            );
          })}
        </svg>
      </div>
    </figure>
  );
}

function lit(edge: PlacedEdge, states: Map<string, NodeState> | undefined): boolean {
  if (!states) return false;
  const reached = (id: string) => id === "__start__" || id === "__end__" || states.has(id);
  return reached(edge.source) && states.has(edge.target) && states.get(edge.source) !== "next";
}

function middle({ points }: PlacedEdge): { x: number; y: number } {
  const at = points.length >> 1;
  const [a, b] = [points[at - 1] ?? points[0], points[at] ?? points[0]];
  return { x: ((a?.[0] ?? 0) + (b?.[0] ?? 0)) / 2, y: ((a?.[1] ?? 0) + (b?.[1] ?? 0)) / 2 - 2 };
}
