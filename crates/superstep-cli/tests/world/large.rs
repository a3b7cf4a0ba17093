//! A server with graphs that are larger than those of the demo.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use superstep::checkpoint::{Ext, Foreign, Value};
use superstep::prelude::*;
use superstep::{AnyGraph, CompileError};
use superstep_server::{Database, Server};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

#[derive(State, Clone, Default)]
struct Wide {
    #[channel(reduce = Sum)]
    count: i64,
}

/// So many nodes in a layer, and so many layers.
const NODES: usize = 20;
const LAYERS: usize = 15;

/// 300 nodes, each with edges to two of the layer below.
fn wide() -> Result<AnyGraph, CompileError> {
    let name = |layer: usize, node: usize| format!("node_{layer}_{node}");
    let mut graph = StateGraph::<Wide>::new();
    for layer in 0..LAYERS {
        for node in 0..NODES {
            graph = graph.add_node(name(layer, node), || async { Wide::update().count(1) });
            if layer == 0 {
                graph = graph.add_edge(START, name(layer, node));
                continue;
            }
            for above in [node, (node * 7 + layer) % NODES] {
                graph = graph.add_edge(name(layer - 1, above), name(layer, node));
            }
        }
    }
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Loop {
    rounds: Option<i64>,
    #[channel(reduce = Sum)]
    done: i64,
}

/// As many supersteps as it is told to.
fn rounds() -> Result<AnyGraph, CompileError> {
    let again = |state: &Loop| if state.done < state.rounds.unwrap_or(1) { "round" } else { END };
    let graph = StateGraph::<Loop>::new()
        .add_node("round", || async { Loop::update().done(1) })
        .add_edge(START, "round")
        .add_conditional_edges("round", ["round", END], again);
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Flood {
    events: Option<i64>,
}

/// Events at the pace of 1,000 for each second.
async fn flood(state: Arc<Flood>, task: Task) -> FloodUpdate {
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    for event in 0..state.events.unwrap_or(0) {
        if event % 10 == 0 {
            pace.tick().await;
        }
        task.emit(
            json!({ "event": event, "text": "as long as the line of a log that somebody reads" }),
        );
    }
    Flood::update()
}

fn flooding() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Flood>::new().add_node("flood", flood).add_edge(START, "flood");
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Heavy {
    megabytes: Option<usize>,
    text: Option<String>,
    odd: Option<Value>,
}

/// A text of as many megabytes, and a value of a type that nobody knows.
async fn heavy(state: Arc<Heavy>) -> HeavyUpdate {
    let text = "0123456789abcdef".repeat(state.megabytes.unwrap_or(1) << 16);
    let odd = Value::from(Ext::Foreign(Foreign::new(77, [0xc1, 0xff, 0x00])));
    Heavy::update().text(text).odd(odd)
}

fn heavily() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Heavy>::new().add_node("heavy", heavy).add_edge(START, "heavy");
    Ok(graph.compile()?.into())
}

/// The server, in a thread of this process.
pub(crate) struct Large {
    pub(crate) url: String,
    _runtime: Runtime,
}

impl Large {
    pub(crate) fn start(dir: &Path) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let file = dir.join("large.db");
        let url = runtime.block_on(async move {
            let server = Server::new()
                .graph("wide", wide().expect("a graph"))
                .graph("rounds", rounds().expect("a graph"))
                .graph("flood", flooding().expect("a graph"))
                .graph("heavy", heavily().expect("a graph"))
                .database(Database::Sqlite(file));
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
            let url = format!("http://{}", listener.local_addr().expect("an address"));
            let running = server.start().await.expect("a server");
            tokio::spawn(running.serve(listener, std::future::pending(), Duration::ZERO));
            url
        });
        Self { url, _runtime: runtime }
    }
}
