//! The input of a run and the superstep that takes it in are stored in one operation: nothing happens between them that
//! is visible outside. They are stored before the first node runs, and wherever the run stops before that.

use crate::world::{Log, Watched, World, asked, done, log, look, next};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, Mode, RunControl};

/// One node, which notes what is stored when it runs.
fn app(checkpointer: &Watched, world: &World) -> CompiledGraph<Log> {
    let seen = checkpointer.clone();
    let graph = StateGraph::<Log>::new()
        .add_node("node", move |Ctx(world): Ctx<World>| {
            world.ran(format!("{:?}", seen.stored()));
            log("node")
        })
        .add_edge(START, "node")
        .compile()
        .expect("a graph");
    graph.with_checkpointer(checkpointer.clone()).with_context(world.clone())
}

#[tokio::test]
async fn in_one_operation() {
    for durability in [Durability::Sync, Durability::Async] {
        let (checkpointer, world) = (Watched::default(), World::new());
        let thread = app(&checkpointer, &world).thread("1");
        done(thread.invoke(log("in")).durability(durability).await);
        assert_eq!(world.take(), ["[[-1, 0]]"], "{durability:?}");
        assert_eq!(checkpointer.stored(), [vec![-1, 0], vec![1]]);

        done(thread.invoke(log("more")).durability(durability).await);
        assert_eq!(checkpointer.stored()[2..], [vec![2, 3], vec![4]]);
    }
}

/// Whoever is shown a checkpoint finds it.
#[tokio::test]
async fn one_by_one_for_a_stream_that_shows_them() {
    let (checkpointer, world) = (Watched::default(), World::new());
    let thread = app(&checkpointer, &world).thread("1");
    let mut run = thread.invoke(log("in")).stream([Mode::Checkpoints]);
    let mut shown = 0;
    while let Some(event) = run.next().await {
        if event.expect("an event").mode().is_none() {
            break;
        }
        shown += 1;
        assert!(checkpointer.stored().len() >= shown, "{:?}", checkpointer.stored());
    }
    assert_eq!(checkpointer.stored(), [vec![-1], vec![0], vec![1]]);
}

#[tokio::test]
async fn where_a_run_stops_before_its_first_node() {
    let (checkpointer, world) = (Watched::default(), World::new());
    let thread = app(&checkpointer, &world).thread("1");
    let stopped = thread.invoke(log("in")).interrupt_before(["node"]).await;
    assert!(asked(stopped).is_empty());
    assert_eq!(checkpointer.stored(), [[-1, 0]]);
    assert_eq!(done(thread.invoke(()).await).log, ["in", "node"]);
}

#[tokio::test]
async fn where_a_run_stops_before_it_takes_its_input_in() {
    let (checkpointer, world) = (Watched::default(), World::new());
    let thread = app(&checkpointer, &world).thread("1");
    let control = RunControl::new();
    control.request_drain("deploy");
    let drained = thread.invoke(log("in")).control(control).await;
    assert!(matches!(drained, Ok(Outcome::Drained(_))), "{drained:?}");
    assert_eq!(checkpointer.stored(), [[-1]]);
    assert_eq!(next(&look(&thread).await), ["__start__"]);
    assert_eq!(done(thread.invoke(()).await).log, ["in", "node"]);
}
