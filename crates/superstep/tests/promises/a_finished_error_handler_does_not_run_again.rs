//! Shows that an error handler that has finished in a superstep that has not is kept like any task: a snapshot shows what it
//! wrote, and it does not run again.
//!
//! It could break because the task it ran in place of has failed, and looks as if it were still to run.

use crate::world::{Log, LogUpdate, World, asked, done, in_memory, log, look, next};
use superstep::Thread;
use superstep::prelude::*;

fn thread(world: &World) -> Thread<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("bad", |Ctx(world): Ctx<World>| {
            world.ran("bad");
            Err::<LogUpdate, _>("no")
        })
        .on_error(|Ctx(world): Ctx<World>| {
            world.ran("handler");
            log("handled")
        })
        .add_node("ask", |task: Task| async move { log(task.interrupt::<String>("well?").await) })
        .add_edge(START, "bad")
        .add_edge(START, "ask")
        .compile()
        .expect("a graph");
    in_memory(graph, world).thread("1")
}

/// F16: in the reference it runs again when the question next to it is answered.
#[tokio::test(start_paused = true)]
async fn when_the_thread_goes_on() {
    let world = World::new();
    let thread = thread(&world);
    assert_eq!(asked(thread.invoke(log("in")).await), ["well?"]);
    // Writes are folded in the order of paths, and the question's task comes first.
    assert_eq!(done(thread.resume("fine").await).log, ["in", "fine", "handled"]);
    assert_eq!(world.take(), ["bad", "handler"]);
}

/// F16: in the reference the failed node is shown as if it were still to run.
#[tokio::test(start_paused = true)]
async fn and_is_shown_meanwhile() {
    let thread = thread(&World::new());
    asked(thread.invoke(log("in")).await);
    let state = look(&thread).await;
    assert_eq!(next(&state), ["ask"]);
    assert_eq!(state.state().log, ["in", "handled"]);
    let bad = state.tasks.iter().find(|task| &*task.name == "bad").expect("the task");
    assert!(bad.error.as_deref().is_some_and(|error| error.contains("no")), "{bad:?}");
    let result = bad.result.as_ref().map(ToString::to_string);
    assert_eq!(result.as_deref(), Some(r#"{"log":["handled"]}"#));
}
