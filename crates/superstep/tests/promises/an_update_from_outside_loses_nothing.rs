//! Changing the state of a thread takes the place of one task. What other tasks have done, and what they still have to do,
//! stays.

use crate::world;

use std::time::Duration;

use crate::world::{Log, LogUpdate, World, done, failed, in_memory, log, look, next};
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

/// F13: in the reference the other node that was to run is dropped, and the join waits forever.
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

/// F14: in the reference what `b` had written is lost, and the join waits forever.
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

/// F14: an update as an earlier node begins its successors again, with what had finished.
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

/// F14: in the reference what the siblings of the same name had finished is lost.
#[tokio::test(start_paused = true)]
async fn what_dispatches_of_the_same_node_had_finished_is_kept() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("fan", || [0_i64, 1, 2, 3].map(|n| Dispatch::new("each", n)).to_vec())
        .destinations(["each"])
        .add_node("each", |Arg(n): Arg<i64>, Ctx(world): Ctx<World>, task: Task| async move {
            if n % 2 == 1 {
                let _: bool = task.interrupt(format!("each {n}?")).await;
            }
            world.ran(format!("each {n}"));
            log(format!("each {n}"))
        })
        .add_node("after", || log("after"))
        .add_edge(START, "fan")
        .add_edge("each", "after")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert_eq!(world::asked(thread.invoke(log("in")).await), ["each 1?", "each 3?"]);
    thread.update_state(log("instead of 1")).as_node("each").await.expect("an update");
    let state = look(&thread).await;
    assert_eq!(state.state().log, ["in", "each 0", "each 2", "instead of 1"]);
    // F13: the other one that asks is still to run, beside what those that have finished lead to.
    assert_eq!(next(&state), ["each", "after"]);
    assert_eq!(world::asked(thread.invoke(()).await), ["each 3?"]);
    let log = done(thread.resume(true).await).log;
    assert_eq!(log[4..], ["after", "each 3", "after"]);
    assert_eq!(world.take(), ["each 0", "each 2", "each 3"]);
}

/// F14, F16: in the reference a node whose error handler had finished runs again, and so does its handler.
#[tokio::test(start_paused = true)]
async fn what_an_error_handler_had_finished_is_kept() {
    let world = World::new();
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
        .add_node("after", || log("after"))
        .add_edge(START, "bad")
        .add_edge(START, "ask")
        .add_edge("ask", "after")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert_eq!(world::asked(thread.invoke(log("in")).await), ["well?"]);
    thread.update_state(log("instead")).as_node("ask").await.expect("an update");
    let state = look(&thread).await;
    assert_eq!(
        (state.state().log.clone(), next(&state)),
        (["in", "handled", "instead"].map(str::to_owned).to_vec(), vec!["after".to_owned()],)
    );
    assert_eq!(done(thread.invoke(()).await).log, ["in", "handled", "instead", "after"]);
    assert_eq!(world.take(), ["bad", "handler"]);
}

/// In the reference the update of a command that no run has taken up is dropped by the next change of the state.
#[tokio::test(start_paused = true)]
async fn what_a_command_has_left_is_kept() {
    let changes: [(StateUpdate, &[&str]); 4] = [
        (StateUpdate::new(log("as d")).as_node("d"), &["command", "as d"]),
        (StateUpdate::nothing().as_node(END), &["command"]),
        (StateUpdate::nothing().as_node("__copy__"), &["command"]),
        (StateUpdate::new(log("again")).as_node("__input__"), &["command"]),
    ];
    for (change, expected) in changes {
        let thread = thread(&World::new());
        done(thread.invoke(log("in")).await);
        done(thread.invoke(Command::update(log("command"))).await);
        let what = format!("{change:?}");
        let before = look(&thread).await.state().log.clone();
        assert_eq!(before[before.len() - 1], "command");
        thread.bulk_update_state([vec![change]]).await.expect("a change");
        let state = look(&thread).await;
        assert_eq!(state.state().log[5..], *expected, "{what}");
    }
}

/// At an older checkpoint a change is made to what the history shows there: with what commands have left, and with all tasks
/// still to run.
#[tokio::test(start_paused = true)]
async fn an_older_checkpoint_is_changed_as_the_history_shows_it() {
    let world = World::broken();
    let thread = thread(&world);
    failed(thread.invoke(log("in")).await);
    world.mend();
    let open = look(&thread).await;
    let run = thread.invoke(Command::update(log("command"))).await;
    assert_eq!(done(run).log, ["in", "a", "command", "b", "c", "d"]);
    world.take();
    let past = thread.at(&open);
    let shown = past.get_state().await.expect("the checkpoint");
    assert_eq!(shown.state().log, ["in", "a", "command"]);
    assert_eq!(next(&shown), ["b", "c"]);
    past.update_state(log("instead of c")).as_node("c").await.expect("an update");
    let state = look(&thread).await;
    assert_eq!(state.state().log, ["in", "a", "command", "instead of c"]);
    assert_eq!(next(&state), ["b"]);
    let log = done(thread.invoke(()).await).log;
    assert_eq!(log, ["in", "a", "command", "instead of c", "b", "d"]);
}

/// A copy that was given values it cannot take is refused: in the reference it is made without them.
#[tokio::test(start_paused = true)]
async fn values_that_a_copy_cannot_take_are_refused() {
    let thread = thread(&World::new());
    done(thread.invoke(log("in")).await);
    let made = world::checkpoints(&thread).await;
    let (_, text) = failed(thread.update_state(log("x")).as_node("__copy__").await);
    world::assert_says(&text, &["a copy takes a list of updates", "update the copy"]);
    assert_eq!(world::checkpoints(&thread).await, made);
    let values = serde_json::json!([[{ "log": ["x"] }, "d"]]);
    let copy = StateUpdate::data(values).as_node("__copy__");
    thread.bulk_update_state([vec![copy]]).await.expect("a copy and its update");
    assert_eq!(look(&thread).await.state().log, ["in", "a", "b", "c", "d", "x"]);
}

/// Where a command goes is not dropped: as a node it is followed, as input it is refused.
#[tokio::test(start_paused = true)]
async fn where_a_command_goes_is_followed_or_refused() {
    let world = World::new();
    let thread = thread(&world);
    thread.invoke(log("in")).interrupt_before(["b"]).await.expect("a breakpoint");
    let made = world::checkpoints(&thread).await;
    let command = || Command::<Log>::update(log("up")).goto("d");
    let (_, text) = failed(thread.update_state(command()).as_node("__input__").await);
    world::assert_says(&text, &["input goes nowhere by itself", "update as a node"]);
    assert_eq!(world::checkpoints(&thread).await, made);
    thread.update_state(command()).as_node("a").await.expect("an update");
    let state = look(&thread).await;
    assert_eq!(next(&state), ["b", "c", "d"]);
    assert_eq!(state.state().log, ["in", "a", "up"]);
}
