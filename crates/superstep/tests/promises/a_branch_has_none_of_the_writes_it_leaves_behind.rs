//! A branch begins at a checkpoint with which the tasks of the other branch have stored their
//! writes. A channel that stores writes is rebuilt from those of its ancestors, so a branch must
//! keep these out, also of a channel that had not been written when it began.

use futures_util::TryStreamExt;

use crate::world::{Log, World, done, in_memory, log, look, next};
use superstep::prelude::*;
use superstep::{Snapshot, StateUpdate, Thread};

/// `a` writes the list for the first time, `b` adds to it.
fn thread(world: &World) -> Thread<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("a", |Ctx(world): Ctx<World>| {
            let old = world.take().is_empty();
            world.ran("a");
            if world.is_broken() { Err("no") } else { Ok(log(if old { "old" } else { "new" })) }
        })
        .add_node("b", || log("b"))
        .add_edge(START, "a")
        .add_edge("a", "b")
        .compile()
        .expect("a graph");
    in_memory(graph, world).thread("1")
}

async fn before_a(thread: &Thread<Log>) -> Snapshot<Log> {
    let past: Vec<_> = thread.get_state_history().try_collect().await.expect("a history");
    past.into_iter().find(|snapshot| next(snapshot) == ["a"]).expect("a checkpoint before `a`")
}

/// The branch runs `a`, stops, and is loaded again.
async fn goes_on(thread: &Thread<Log>) {
    thread.invoke(()).interrupt_before(["b"]).await.expect("a breakpoint");
    assert_eq!(look(thread).await.state().log, ["new"]);
    assert_eq!(done(thread.invoke(()).await).log, ["new", "b"]);
}

/// The branch begins with an update that does not touch the list.
#[tokio::test]
async fn an_update_of_an_older_checkpoint() {
    let world = World::new();
    let thread = thread(&world);
    assert_eq!(done(thread.invoke(Log::update().n(1)).await).log, ["old", "b"]);
    let past = before_a(&thread).await;
    thread.at(&past).update_state(Log::update().n(2)).as_node(START).await.expect("an update");
    assert_eq!(look(&thread).await.state().log, [""; 0]);
    goes_on(&thread).await;
}

/// The branch begins with a run that fails before anything has written the list, and another run
/// continues.
#[tokio::test]
async fn a_run_from_an_older_checkpoint_that_fails() {
    let world = World::new();
    let thread = thread(&world);
    done(thread.invoke(Log::update().n(1)).await);
    let past = before_a(&thread).await;
    world.break_again();
    thread.at(&past).invoke(()).await.expect_err("`a` fails");
    world.mend();
    goes_on(&thread).await;
}

/// A copy of an older checkpoint has the same ancestors as the checkpoint, and none of its writes.
#[tokio::test]
async fn a_copy_of_an_older_checkpoint() {
    let world = World::new();
    let thread = thread(&world);
    done(thread.invoke(Log::update().n(1)).await);
    let past = before_a(&thread).await;
    let copy = StateUpdate::nothing().as_node("__copy__");
    thread.at(&past).bulk_update_state([vec![copy]]).await.expect("a copy");
    goes_on(&thread).await;
}

/// New input drops what a superstep that failed had finished.
#[tokio::test]
async fn input_after_a_superstep_that_failed() {
    let world = World::broken();
    let graph = StateGraph::<Log>::new()
        .add_node("a", || log("a"))
        .add_node("b", |Ctx(world): Ctx<World>| async move {
            tokio::task::yield_now().await;
            if world.is_broken() { Err("no") } else { Ok(()) }
        })
        .add_node("c", || ())
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge("a", "c")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    thread.invoke(Log::update().n(1)).await.expect_err("`b` fails");
    world.mend();
    thread.invoke(Log::update().n(2)).interrupt_before(["a"]).await.expect("a breakpoint");
    assert_eq!(look(&thread).await.state().log, [""; 0]);
    thread.invoke(()).interrupt_before(["c"]).await.expect("a breakpoint");
    assert_eq!(look(&thread).await.state().log, ["a"]);
}
