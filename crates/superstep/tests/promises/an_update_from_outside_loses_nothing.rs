//! Changing the state of a thread takes the place of one task. What other tasks have done, and what they still have to do,
//! stays.

use crate::world;

use std::time::Duration;

use crate::world::{Log, World, done, failed, in_memory, log, look, next};
use superstep::prelude::*;
use superstep::{StateUpdate, Thread};

/// `a`, then `b` and `c` side by side, then `d` when both are done. `c` is slower, and can break.
fn thread(world: &World) -> Thread<Log> {
    let note = |name: &'static str| {
        move |Ctx(world): Ctx<World>| {
            world.ran(name);
            log(name)
        }
    };
    let graph = StateGraph::<Log>::new()
        .add_node("a", note("a"))
        .add_node("b", note("b"))
        .add_node("c", |Ctx(world): Ctx<World>| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            world.ran("c");
            if world.is_broken() { Err("no") } else { Ok(log("c")) }
        })
        .add_node("d", note("d"))
        .add_edge(START, "a")
        .add_edge("a", "b")
        .add_edge("a", "c")
        .add_edge(["b", "c"], "d")
        .compile()
        .expect("a graph");
    in_memory(graph, world).thread("1")
}

/// F13: in the reference the other node that was to run is dropped, and the join waits for ever.
#[tokio::test(start_paused = true)]
async fn a_node_that_is_still_to_run_runs() {
    let world = World::new();
    let thread = thread(&world);
    thread.invoke(log("in")).interrupt_before(["b"]).await.expect("a breakpoint");
    assert_eq!(next(&look(&thread).await), ["b", "c"]);
    thread.update_state(log("instead of b")).as_node("b").await.expect("an update");
    assert_eq!(next(&look(&thread).await), ["c"]);
    assert_eq!(done(thread.invoke(()).await).log, ["in", "a", "instead of b", "c", "d"]);
    assert_eq!(world.take(), ["a", "c", "d"]);
}

/// F13, for dispatches that are still to run.
#[tokio::test(start_paused = true)]
async fn dispatches_that_are_still_to_run_run() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("fan", || [1_i64, 2].map(|n| Dispatch::new("each", n)).to_vec())
        .destinations(["each"])
        .add_node("each", |Arg(n): Arg<i64>| log(format!("each {n}")))
        .add_node("beside", || log("beside"))
        .add_edge(START, "fan")
        .add_edge("fan", "beside")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    thread.invoke(log("in")).interrupt_before(["beside"]).await.expect("a breakpoint");
    thread.update_state(log("instead")).as_node("beside").await.expect("an update");
    assert_eq!(next(&look(&thread).await), ["each", "each"]);
    assert_eq!(done(thread.invoke(()).await).log, ["in", "instead", "each 1", "each 2"]);
}

/// F14: in the reference what `b` had written is lost, and the join waits for ever.
#[tokio::test(start_paused = true)]
async fn what_had_finished_is_kept() {
    let world = World::broken();
    let thread = thread(&world);
    failed(thread.invoke(log("in")).await);
    assert_eq!(look(&thread).await.state().log, ["in", "a", "b"]);
    thread.update_state(log("instead of c")).as_node("c").await.expect("an update");
    let state = look(&thread).await;
    assert_eq!(state.state().log, ["in", "a", "b", "instead of c"]);
    assert_eq!(next(&state), ["d"]);
    assert_eq!(done(thread.invoke(()).await).log, ["in", "a", "b", "instead of c", "d"]);
    assert_eq!(world.take(), ["a", "b", "c", "d"]);
}

/// F14: an update as an earlier node begins its successors anew, with what had finished.
#[tokio::test(start_paused = true)]
async fn what_had_finished_is_kept_beside_an_update_of_another_node() {
    let world = World::broken();
    let thread = thread(&world);
    failed(thread.invoke(log("in")).await);
    world.mend();
    world.take();
    thread.update_state(log("as a")).as_node("a").await.expect("an update");
    let state = look(&thread).await;
    assert_eq!(state.state().log, ["in", "a", "b", "as a"]);
    assert_eq!(next(&state), ["b", "c"]);
    let log = done(thread.invoke(()).await).log;
    assert_eq!(log[..4], ["in", "a", "b", "as a"]);
    assert_eq!(log.last().map(String::as_str), Some("d"));
}

/// F38: in the reference a node with an edge and a join that fired together is ambiguous with itself.
#[tokio::test(start_paused = true)]
async fn a_node_with_two_triggers_is_found() {
    let graph = StateGraph::<Log>::new()
        .add_node("b", || log("b"))
        .add_node("c", || log("c"))
        .add_node("d", || log("d"))
        .add_node("e", || log("e"))
        .add_edge(START, "b")
        .add_edge(START, "c")
        .add_edge("c", "d")
        .add_edge(["b", "c"], "d")
        .add_edge("d", "e")
        .interrupt_before(["e"])
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    thread.invoke(log("in")).await.expect("a breakpoint");
    assert_eq!(next(&look(&thread).await), ["e"]);
    thread.update_state(Log::update().n(5)).await.expect("it is `d` that ran last");
    let state = look(&thread).await;
    assert_eq!((state.state().n, next(&state)), (5, vec!["e".to_owned()]));
    assert_eq!(done(thread.invoke(()).await).log, ["in", "b", "c", "d", "e"]);
}

/// Two nodes that ran together stay ambiguous, and the error says what to add.
#[tokio::test(start_paused = true)]
async fn two_nodes_that_ran_last_are_not_guessed_between() {
    let thread = thread(&World::new());
    thread.invoke(log("in")).interrupt_before(["d"]).await.expect("a breakpoint");
    let (_, text) = failed(thread.update_state(log("who?")).await);
    world::assert_says(&text, &["which node", "`as_node`"]);
    assert_eq!(look(&thread).await.state().log, ["in", "a", "b", "c"]);
}

/// F26: an unknown node or channel is refused with the nearest name, and nothing changes.
#[tokio::test(start_paused = true)]
async fn and_unknown_names_are_refused() {
    let thread = thread(&World::new());
    done(thread.invoke(log("in")).await);
    let made = world::checkpoints(&thread).await;
    let (_, text) = failed(thread.update_state(log("x")).as_node("bb").await);
    world::assert_says(&text, &["`bb`", "did you mean `b`?"]);
    let update = StateUpdate::data(serde_json::json!({ "logg": ["x"] })).as_node("b");
    let (_, text) = failed(thread.bulk_update_state([vec![update]]).await);
    world::assert_says(&text, &["`logg`", "did you mean `log`?"]);
    assert_eq!(world::checkpoints(&thread).await, made);
}
