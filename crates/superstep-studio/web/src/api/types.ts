// What the endpoints answer that the stock client does not know. The OpenAPI document has the same under the same names.

/** A value, cut by the server: what is missing is asked for when it is wanted. */
export type Outline =
  | { type: "null" }
  | { type: "boolean"; value: boolean }
  | { type: "number"; value: number | string }
  | { type: "string"; value: string; length: number }
  | { type: "list"; length: number; offset: number; items: Outline[] }
  | { type: "object"; length: number; offset: number; keys: string[]; items: Outline[] };

export type TaskSeen = {
  id: string;
  name: string;
  error: string | null;
  questions: number;
  /** The channels it wrote; null while it has not finished. */
  wrote: string[] | null;
  namespace: string | null;
};

export type Moment = {
  checkpoint_id: string;
  parent_checkpoint_id: string | null;
  step: number;
  source: string;
  created_at: string;
  run_id: string | null;
  next: string[];
  tasks: TaskSeen[];
};

export type Timeline = { checkpoints: Moment[]; before: string | null };

export type Change = {
  channel: string;
  kind: "added" | "removed" | "changed" | "appended";
  before: Outline | null;
  after: Outline | null;
  writers: { task: string; node: string }[];
};

export type Changes = { from: string | null; to: string; changes: Change[] };

export type Box = { x: number; y: number; width: number; height: number };
export type PlacedNode = Box & { id: string; label: string; subgraph: boolean };
export type PlacedGroup = Box & { id: string; label: string };
export type PlacedEdge = {
  source: string;
  target: string;
  conditional: boolean;
  label: string | null;
  back: boolean;
  points: [number, number][];
};
export type Layout = {
  width: number;
  height: number;
  nodes: PlacedNode[];
  groups: PlacedGroup[];
  edges: PlacedEdge[];
};

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Schema = { [key: string]: unknown };
