//! A name that means nothing is an error which says the name and the nearest one that does, and
//! nothing changes. The reference logs a line, at most, and continues.

use crate::world::{
    Log, World, assert_says, checkpoints, done, failed, in_memory, log, look, next, questions,
};
use serde_json::json;
use superstep::checkpoint::InterruptId;
use superstep::prelude::*;
use superstep::state::{Fold, Schema, Table, TableChannel};
use superstep::{CompiledGraph, IntoNode, Thread};

/// `plan`, which goes where it likes, and `review`.
fn thread<M>(plan: impl IntoNode<Log, M>, world: &World) -> Thread<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("plan", plan)
        .destinations(["review"])
        .add_node("review", |Ctx(world): Ctx<World>| {
            world.ran("review");
            log("review")
        })
        .add_edge(START, "plan")
        .compile()
        .expect("a graph");
    in_memory(graph, world).thread("1")
}

/// The node fails as a whole, and can be tried again.
async fn fails_whole<S: State + std::fmt::Debug>(
    thread: &Thread<S>,
    run: superstep::Run<S>,
    says: &[&str],
) {
    let (error, text) = failed(run.await.map(drop));
    assert!(matches!(error, RunError::Node { .. }), "{error:?}");
    assert_says(&text, says);
    assert_eq!(next(&look(thread).await), ["plan"]);
}

/// F26.
#[tokio::test(start_paused = true)]
async fn of_a_node_to_go_to() {
    let world = World::broken();
    let plan = |Ctx(world): Ctx<World>| {
        let to = if world.is_broken() { "reviw" } else { "review" };
        Command::<Log>::update(log("plan")).goto(to)
    };
    let thread = thread(plan, &world);
    let says = ["`plan`", "unknown node `reviw`", "did you mean `review`?"];
    fails_whole(&thread, thread.invoke(log("in")), &says).await;
    assert_eq!(look(&thread).await.state().log, ["in"], "its update is not kept");
    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "plan", "review"]);
}

/// F26.
#[tokio::test(start_paused = true)]
async fn of_a_node_to_dispatch_to() {
    let world = World::broken();
    let plan = |Ctx(world): Ctx<World>| {
        Dispatch::new(if world.is_broken() { "Review" } else { "review" }, 1_i64)
    };
    let thread = thread(plan, &world);
    let says = ["`plan`", "unknown node `Review`", "did you mean `review`?"];
    fails_whole(&thread, thread.invoke(log("in")), &says).await;
    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "review"]);
}

/// F26: in the reference a bad place to go to is stored with the checkpoint, and every later load
/// warns of it.
#[tokio::test(start_paused = true)]
async fn of_a_node_that_a_command_from_outside_goes_to() {
    let world = World::new();
    let thread = thread(|| log("plan"), &world);
    done(thread.invoke(log("in")).await);
    let made = checkpoints(&thread).await;
    for command in [
        Command::<Log>::update(Log::update().n(7)).goto("reviw"),
        Command::<Log>::update(Log::update().n(7)).goto(Dispatch::new("reviw", 1_i64)),
    ] {
        let (_, text) = failed(thread.invoke(command).await);
        assert_says(&text, &["the command", "unknown node `reviw`", "did you mean `review`?"]);
    }
    assert_eq!(look(&thread).await.state().n, 0, "the update of the command is not kept");
    assert_eq!(checkpoints(&thread).await, made);
    assert_eq!(done(thread.invoke(()).await).log, ["in", "plan"]);
    assert!(world.take().is_empty());
}

fn table(world: &World) -> CompiledGraph<Table> {
    let mut schema = Schema::<Table>::default();
    schema.table("topic", TableChannel::last());
    schema.table("notes", TableChannel::folded(Fold::Append, Some(Value::List(Vec::new()))));
    let graph = StateGraph::with_schema(schema)
        .add_node("plan", |Ctx(world): Ctx<World>| {
            let key = if world.is_broken() { "note" } else { "notes" };
            Value::from(json!({ "topic": "x", key: ["a note"] }))
        })
        .add_edge(START, "plan")
        .compile()
        .expect("a graph");
    in_memory(graph, world)
}

/// F26: an update that is data.
#[tokio::test(start_paused = true)]
async fn of_a_channel_that_a_node_writes() {
    let world = World::broken();
    let thread = table(&world).thread("1");
    let says = ["`plan`", "unknown channel `note`", "did you mean `notes`?"];
    fails_whole(&thread, thread.invoke(json!({ "notes": ["in"] })), &says).await;
    assert_eq!(look(&thread).await.state().get("topic"), None);
    world.mend();
    let state = done(thread.invoke(()).await);
    assert_eq!(state.get("notes"), Some(&Value::from(json!(["in", "a note"]))));
}

/// F26: an input that is data.
#[tokio::test(start_paused = true)]
async fn of_a_channel_in_the_input() {
    let world = World::new();
    let thread = table(&world).thread("1");
    let (_, text) = failed(thread.invoke(json!({ "topic": "x", "note": ["in"] })).await);
    assert_says(&text, &["unknown key `note`", "did you mean `notes`?"]);
    assert_eq!(checkpoints(&thread).await, 0);
}

/// F26: an answer under an id that is none. See `an_answer_goes_to_the_question_it_was_given_for.rs` for the rest.
#[tokio::test(start_paused = true)]
async fn of_a_question() {
    let world = World::new();
    let plan = |task: Task| async move { log(task.interrupt::<String>("go?").await) };
    let thread = thread(plan, &world);
    let open = questions(thread.invoke(log("in")).await);
    let id = InterruptId::from("0123456789abcdef0123456789abcdef");
    let (_, text) = failed(thread.resume_all([(id, "yes")]).await);
    assert_says(&text, &["`0123456789abcdef0123456789abcdef`", &format!("`{}`", open[0].id)]);
    assert_eq!(look(&thread).await.interrupts, open);
}

/// F26: breakpoints at nodes that do not exist, given at the call.
#[tokio::test(start_paused = true)]
async fn of_a_node_to_stop_at() {
    let world = World::new();
    let thread = thread(|| log("plan"), &world);
    let (_, text) = failed(thread.invoke(log("in")).interrupt_before(["reviw"]).await);
    assert_says(&text, &["`reviw`", "did you mean `review`?"]);
    assert_eq!(checkpoints(&thread).await, 0);
}

/// The same graph, told to be lenient, does what the reference does.
#[tokio::test(start_paused = true)]
async fn unless_the_graph_is_lenient() {
    let graph = StateGraph::<Log>::new()
        .add_node("plan", || Command::<Log>::update(log("plan")).goto("reviw"))
        .add_edge(START, "plan")
        .lenient()
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "plan"]);
}
