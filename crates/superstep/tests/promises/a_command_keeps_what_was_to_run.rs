//! Shows that a command given to a thread that has stopped in the middle of a superstep leaves the
//! tasks of the superstep as they are: what has finished does not run again and is not lost, and
//! what the command leads to runs next to it.
//!
//! It could break because dispatches are kept in one list, which a superstep replaces.

use crate::world::{Log, World, asked, done, in_memory, log, look};
use superstep::CompiledGraph;
use superstep::prelude::*;

/// A graph in which `first` dispatches to `part` twice, beside `ask`.
fn parts(world: &World) -> CompiledGraph<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("first", || {
            Command::<Log>::new().goto([Dispatch::new("part", 1), Dispatch::new("part", 2)])
        })
        .destinations(["part"])
        .add_node("part", |Arg(part): Arg<u64>, Ctx(world): Ctx<World>| {
            world.ran(format!("part {part}"));
            log(format!("part {part}"))
        })
        .add_node("ask", |task: Task| async move {
            let answer: String = task.interrupt("well?").await;
            log(answer)
        })
        .add_edge(START, "first")
        .add_edge("first", "ask")
        .compile()
        .expect("a graph");
    in_memory(graph, world)
}

/// In the reference the new dispatch takes the place of the others: what they have done is lost, and the new one is taken for
/// the first of them, which has finished, so it never runs.
#[tokio::test(start_paused = true)]
async fn a_dispatch_runs_beside_those_that_have_finished() {
    let world = World::new();
    let thread = parts(&world).thread("1");
    asked(thread.invoke(log("in")).await);
    let mut ran = world.take();
    ran.sort();
    assert_eq!(ran, ["part 1", "part 2"]);
    asked(thread.invoke(Command::<Log>::new().goto(Dispatch::new("part", 3))).await);
    assert_eq!(world.take(), ["part 3"]);
    assert_eq!(look(&thread).await.state().log, ["in", "part 1", "part 2", "part 3"]);
    let state = done(thread.resume("fine").await);
    assert_eq!(state.log, ["in", "fine", "part 1", "part 2", "part 3"]);
    assert_eq!(world.take(), Vec::<String>::new(), "nothing runs again");
}

/// In the reference a deferred node that is led to again waits again, and what it has done is lost.
#[tokio::test(start_paused = true)]
async fn a_deferred_node_that_has_finished_is_not_put_off() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("first", || log("first"))
        .add_node("late", |Ctx(world): Ctx<World>| {
            world.ran("late");
            log("late")
        })
        .defer()
        .add_node("ask", |task: Task| async move {
            let answer: String = task.interrupt("well?").await;
            log(answer)
        })
        .defer()
        .add_edge(START, "first")
        .add_edge("first", "late")
        .add_edge("first", "ask")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    asked(thread.invoke(log("in")).await);
    assert_eq!(world.take(), ["late"]);
    asked(thread.invoke(Command::<Log>::new().goto("late")).await);
    assert_eq!(look(&thread).await.state().log, ["in", "first", "late"]);
    assert_eq!(done(thread.resume("fine").await).log, ["in", "first", "fine", "late"]);
    assert_eq!(world.take(), Vec::<String>::new(), "it does not run again");
}
