//! Nodes one after the other, in a loop, and side by side.

use std::time::Instant;

use superstep::CompiledGraph;
use superstep::prelude::*;

use crate::failure::Failure;
use crate::protocol::Measured;
use crate::setting::{Setting, done, nanos};

#[derive(State, Clone, Default)]
pub(super) struct Count {
    pub(super) n: u64,
}

#[derive(State, Clone, Default)]
struct Fan {
    #[channel(reduce = Sum)]
    total: u64,
}

#[derive(State, Clone, Default)]
struct Part {
    n: u64,
}

fn chain(nodes: usize) -> StateGraph<Count> {
    (0..nodes).fold(StateGraph::new(), |graph, at| {
        let from = if at == 0 { START.to_owned() } else { format!("n{:04}", at - 1) };
        graph.add_node(format!("n{at:04}"), || ()).add_edge(from, format!("n{at:04}"))
    })
}

/// Nodes that do nothing, one after the other.
pub(super) async fn sequence(setting: &mut Setting, nodes: usize) -> Result<Measured, Failure> {
    let graph = setting.equip(chain(nodes).compile()?);
    let mut measured = Measured { units: nodes as u64, ..Measured::default() };
    for _ in 0..setting.rounds {
        let began = setting.start().await?;
        done(setting.invoke(&graph, Count::update().n(1)).await?)?;
        measured.nanos.push(nanos(began.elapsed()));
    }
    Ok(measured)
}

/// Declaring and checking a graph.
pub(super) async fn compile(setting: &mut Setting, nodes: usize) -> Result<Measured, Failure> {
    let mut measured = Measured { units: 1, ..Measured::default() };
    for _ in 0..setting.rounds {
        let began = setting.start().await?;
        chain(nodes).compile()?;
        measured.nanos.push(nanos(began.elapsed()));
    }
    Ok(measured)
}

/// Three nodes in a circle, the last of which is followed by a router.
pub(super) fn circle(supersteps: u64) -> Result<CompiledGraph<Count>, CompileError> {
    let step = |count: Arc<Count>| Count::update().n(count.n + 1);
    StateGraph::<Count>::new()
        .add_node("a", step)
        .add_node("b", step)
        .add_node("c", step)
        .add_edge(START, "a")
        .add_edge("a", "b")
        .add_edge("b", "c")
        .add_conditional_edges(
            "c",
            ["a", END],
            move |count: &Count| {
                if count.n < supersteps { "a" } else { END }
            },
        )
        .compile()
}

/// What the circle really does: it ends only after its third node.
pub(super) fn in_circles(supersteps: usize) -> u64 {
    supersteps.div_ceil(3) as u64 * 3
}

/// A loop of three nodes.
pub(super) async fn looped(setting: &mut Setting, size: usize) -> Result<Measured, Failure> {
    let supersteps = in_circles(size);
    let graph = setting.equip(circle(supersteps)?);
    let mut measured = Measured { units: supersteps, ..Measured::default() };
    for _ in 0..setting.rounds {
        let began = setting.start().await?;
        let count = done(setting.invoke(&graph, Count::update().n(0)).await?)?;
        measured.nanos.push(nanos(began.elapsed()));
        assert_eq!(count.n, supersteps, "the loop is as long as it says");
    }
    Ok(measured)
}

/// The same while a subscriber is set that takes nothing.
pub(super) async fn looped_untraced(
    setting: &mut Setting,
    size: usize,
) -> Result<Measured, Failure> {
    let subscriber = tracing::subscriber::NoSubscriber::default();
    let _set = tracing::subscriber::set_default(subscriber);
    looped(setting, size).await
}

/// A dispatch to many tasks and a join.
pub(super) async fn fan(setting: &mut Setting, tasks: usize) -> Result<Measured, Failure> {
    let tasks = tasks as u64;
    let graph = StateGraph::<Fan>::new()
        .add_node("worker", |Arg(n): Arg<u64>| Fan::update().total(n))
        .add_node("join", || ())
        .add_conditional_edges(START, ["worker"], move |_: &Fan| {
            (0..tasks).map(|n| Dispatch::new("worker", n)).collect::<Vec<_>>()
        })
        .add_edge("worker", "join")
        .compile()?;
    fan_out(setting, setting.equip(graph), tasks).await
}

/// The same, each task a graph of two nodes.
pub(super) async fn subgraphs(setting: &mut Setting, tasks: usize) -> Result<Measured, Failure> {
    let tasks = tasks as u64;
    let part = StateGraph::<Part>::new()
        .add_node("first", |part: Arc<Part>| Part::update().n(part.n + 1))
        .add_node("second", |part: Arc<Part>| Part::update().n(part.n - 1))
        .add_edge(START, "first")
        .add_edge("first", "second")
        .compile()?;
    let inner = part.clone();
    let graph = StateGraph::<Fan>::new()
        .add_node("worker", move |Arg(n): Arg<u64>, task: Task| {
            let inner = inner.clone();
            async move {
                let part = task.invoke(&inner, Part::update().n(n)).await?;
                Ok::<_, NodeError>(Fan::update().total(part.n))
            }
        })
        .calls(&part)
        .add_node("join", || ())
        .add_conditional_edges(START, ["worker"], move |_: &Fan| {
            (0..tasks).map(|n| Dispatch::new("worker", n)).collect::<Vec<_>>()
        })
        .add_edge("worker", "join")
        .compile()?;
    fan_out(setting, setting.equip(graph), tasks).await
}

async fn fan_out(
    setting: &mut Setting,
    graph: CompiledGraph<Fan>,
    tasks: u64,
) -> Result<Measured, Failure> {
    let mut measured = Measured { units: tasks, ..Measured::default() };
    for _ in 0..setting.rounds {
        let began: Instant = setting.start().await?;
        let fan = done(setting.invoke(&graph, Fan::update().total(0u64)).await?)?;
        measured.nanos.push(nanos(began.elapsed()));
        assert_eq!(fan.total, tasks * (tasks - 1) / 2, "every task has run once");
    }
    Ok(measured)
}
