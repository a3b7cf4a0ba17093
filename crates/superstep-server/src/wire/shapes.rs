//! The forms of what the engine writes, for the OpenAPI document.
#![expect(dead_code, reason = "the engine writes these as JSON")]

use schemars::JsonSchema;
use serde_json::Value as Json;

use super::Object;

/// The state of a thread at a checkpoint. Without a checkpoint most of it is null.
#[derive(JsonSchema)]
#[schemars(rename = "ThreadState")]
pub(crate) struct StateObject {
    values: Json,
    /// The nodes that run next.
    next: Vec<String>,
    tasks: Vec<TaskObject>,
    metadata: Option<Object>,
    created_at: Option<String>,
    checkpoint: Option<CheckpointObject>,
    parent_checkpoint: Option<CheckpointObject>,
    interrupts: Vec<InterruptObject>,
    checkpoint_id: Option<String>,
    parent_checkpoint_id: Option<String>,
}

/// A task of the next superstep, or of the one that followed.
#[derive(JsonSchema)]
#[schemars(rename = "Task")]
pub(crate) struct TaskObject {
    id: String,
    name: String,
    path: Json,
    error: Option<Json>,
    interrupts: Vec<InterruptObject>,
    /// Where the checkpoints of the task are, if it is a subgraph.
    checkpoint: Option<Object>,
    /// The state of the subgraph, if it was asked for.
    state: Option<Object>,
    result: Option<Json>,
}

/// The place of a checkpoint.
#[derive(JsonSchema)]
#[schemars(rename = "Checkpoint")]
pub(crate) struct CheckpointObject {
    thread_id: String,
    checkpoint_ns: String,
    #[schemars(skip_serializing_if = "Option::is_none")]
    checkpoint_id: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    checkpoint_map: Option<Object>,
}

/// A question that waits for an answer.
#[derive(JsonSchema)]
#[schemars(rename = "Interrupt")]
pub(crate) struct InterruptObject {
    value: Json,
    id: String,
}

/// The nodes and edges of a graph.
#[derive(JsonSchema)]
pub(crate) struct Drawing {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

#[derive(JsonSchema)]
struct Node {
    id: String,
    #[schemars(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    data: Option<Json>,
}

#[derive(JsonSchema)]
struct Edge {
    source: String,
    target: String,
    /// Taken only if a router says so.
    #[schemars(skip_serializing_if = "Option::is_none")]
    conditional: Option<bool>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
}

/// A graph with positions, in pixels from the upper left corner.
#[derive(JsonSchema)]
#[schemars(rename = "Layout")]
pub(crate) struct LayoutObject {
    width: f64,
    height: f64,
    nodes: Vec<LayoutNode>,
    /// The boxes around subgraphs that are unfolded.
    groups: Vec<LayoutGroup>,
    edges: Vec<LayoutEdge>,
}

#[derive(JsonSchema)]
struct LayoutNode {
    id: String,
    label: String,
    /// It is a subgraph that can be unfolded.
    subgraph: bool,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

#[derive(JsonSchema)]
struct LayoutGroup {
    id: String,
    label: String,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

#[derive(JsonSchema)]
struct LayoutEdge {
    source: String,
    target: String,
    conditional: bool,
    label: Option<String>,
    /// It leads to an earlier layer.
    back: bool,
    points: Vec<(f64, f64)>,
}

/// An event of a stream. The data are JSON.
#[derive(JsonSchema)]
#[schemars(rename = "Event")]
pub(crate) struct EventObject {
    event: String,
    data: String,
    /// Only if the events of the run can be had again.
    #[schemars(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
}
