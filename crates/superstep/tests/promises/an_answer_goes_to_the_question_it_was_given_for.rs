//! An answer is bound to one question when it is given. It is never kept for a later question, taken by another task, or
//! replaced by an older answer; if there is nothing it could be for, it is refused and nothing changes.

use std::time::Duration;

use crate::world::{
    Log, LogUpdate, World, asked, assert_says, checkpoints, done, failed, in_memory, log, look,
    next, questions, texts,
};
use superstep::prelude::*;
use superstep::{CompiledGraph, Thread};

async fn ask(Ctx(world): Ctx<World>, log: Arc<Log>, task: Task) -> Result<LogUpdate, NodeError> {
    world.ran("ask");
    let answer: String = task.interrupt(format!("n is {}, ok?", log.n)).await;
    world.ran(format!("heard {answer}"));
    if world.is_broken() {
        return Err("the line went dead".into());
    }
    Ok(Log::update().log([answer]))
}

async fn ask_twice(task: Task) -> LogUpdate {
    let first: String = task.interrupt("first?").await;
    let second: String = task.interrupt("second?").await;
    Log::update().log([first, second])
}

fn one_node<M>(node: impl superstep::IntoNode<Log, M>, world: &World) -> CompiledGraph<Log> {
    let graph = StateGraph::<Log>::new().add_node("ask", node).add_edge(START, "ask");
    in_memory(graph.compile().expect("a graph"), world)
}

/// Asserts that an answer is refused, and that the thread is as it was.
async fn refused(thread: &Thread<Log>, answer: &str, says: &[&str]) -> Vec<String> {
    let before = look(thread).await;
    let (error, text) = failed(thread.resume(answer).await);
    assert_says(&text, says);
    let after = look(thread).await;
    assert_eq!(after.config, before.config);
    assert_eq!(after.state(), before.state());
    assert_eq!(next(&after), next(&before));
    match error {
        RunError::Resume { pending, .. } => texts(&pending),
        other => panic!("not refused as an answer: {other:?}"),
    }
}

/// F3: the reference keeps the answer to the first question, and a run without input gives it to the second.
#[tokio::test(start_paused = true)]
async fn an_answer_is_not_used_again_for_the_next_question() {
    let thread = one_node(ask_twice, &World::new()).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["first?"]);
    assert_eq!(asked(thread.resume("one").await), ["second?"]);
    assert_eq!(asked(thread.invoke(()).await), ["second?"], "nobody has answered it");
    assert_eq!(texts(&look(&thread).await.interrupts), ["second?"]);
    assert_eq!(done(thread.resume("two").await).log, ["in", "one", "two"]);
}

/// F3, for answers by id.
#[tokio::test(start_paused = true)]
async fn an_answer_by_id_is_not_used_again_either() {
    let thread = one_node(ask_twice, &World::new()).thread("1");
    let first = questions(thread.invoke(log("in")).await).remove(0);
    let second = questions(thread.resume_all([(first.id, "one")]).await).remove(0);
    assert_eq!(asked(thread.invoke(()).await), ["second?"]);
    assert_eq!(done(thread.resume_all([(second.id, "two")]).await).log, ["in", "one", "two"]);
}

/// F4: in the reference the answer goes to whichever task first reaches a question without one, here a sibling that failed
/// in the first run and comes before the task that asked.
#[tokio::test(start_paused = true)]
async fn an_answer_is_not_taken_by_a_sibling() {
    let world = World::broken();
    let graph = StateGraph::<Log>::new()
        .add_node("a_thief", |Ctx(world): Ctx<World>, task: Task| async move {
            if world.is_broken() {
                tokio::time::sleep(Duration::from_secs(1)).await;
                return Err("too early");
            }
            let answer: String = task.interrupt("thief?").await;
            Ok(log(format!("thief heard {answer}")))
        })
        .add_node("b_asks", |task: Task| async move {
            let answer: String = task.interrupt("mine?").await;
            log(format!("asker heard {answer}"))
        })
        .add_edge(START, "a_thief")
        .add_edge(START, "b_asks")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    failed(thread.invoke(log("in")).await);
    assert_eq!(texts(&look(&thread).await.interrupts), ["mine?"], "the question stays recorded");

    world.mend();
    assert_eq!(asked(thread.resume("for the asker").await), ["thief?"]);
    let log = done(thread.resume("for the thief").await).log;
    assert_eq!(log, ["in", "thief heard for the thief", "asker heard for the asker"]);
}

/// F10, first half: at an older checkpoint the reference uses the answer that is stored there and ignores the new one.
#[tokio::test(start_paused = true)]
async fn a_new_answer_at_an_older_checkpoint_wins() {
    let thread = one_node(ask, &World::new()).thread("1");
    thread.invoke(log("in")).await.expect("a question");
    let then = look(&thread).await;
    assert_eq!(done(thread.resume("first").await).log, ["in", "first"]);
    assert_eq!(done(thread.at(&then).resume("other").await).log, ["in", "other"]);
    assert_eq!(look(&thread).await.state().log, ["in", "other"], "the branch is the head now");
}

/// F10, first half, for the second question of a node: answers before the one that is given again stay.
#[tokio::test(start_paused = true)]
async fn answers_before_the_one_that_is_given_again_stay() {
    let thread = one_node(ask_twice, &World::new()).thread("1");
    thread.invoke(log("in")).await.expect("a question");
    thread.resume("one").await.expect("a question");
    let then = look(&thread).await;
    assert_eq!(done(thread.resume("two").await).log, ["in", "one", "two"]);
    assert_eq!(done(thread.at(&then).resume("other").await).log, ["in", "one", "other"]);
}

/// F10, second half: a node fails after its question was answered. The reference still shows the question as open and then
/// ignores what is answered.
#[tokio::test(start_paused = true)]
async fn a_question_that_was_answered_is_not_open_after_a_failure() {
    let world = World::broken();
    let thread = one_node(ask, &world).thread("1");
    thread.invoke(log("in")).await.expect("a question");
    failed(thread.resume("first").await);
    assert_eq!(next(&look(&thread).await), ["ask"]);
    assert!(look(&thread).await.interrupts.is_empty(), "it was answered");
    let pending = refused(&thread, "second", &["no open question", "with no input"]).await;
    assert!(pending.is_empty());

    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "first"], "the answer was kept");
}

/// F40: the reference lets an answer pass a breakpoint, and it then answers the first question behind it, which nobody has
/// seen.
#[tokio::test(start_paused = true)]
async fn an_answer_does_not_pass_a_breakpoint() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .interrupt_before(["ask"])
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert!(asked(thread.invoke(log("in")).await).is_empty(), "a breakpoint asks nothing");
    let made = checkpoints(&thread).await;
    refused(&thread, "yes", &["no open question", "with no input"]).await;
    assert_eq!(checkpoints(&thread).await, made);
    assert!(world.take().is_empty());

    assert_eq!(asked(thread.invoke(()).await), ["n is 0, ok?"]);
    assert_eq!(done(thread.resume("yes").await).log, ["in", "yes"]);
}

/// F40: a breakpoint inside a subgraph is none to answer either.
#[tokio::test(start_paused = true)]
async fn an_answer_does_not_pass_a_breakpoint_of_a_subgraph() {
    let world = World::new();
    let inner = StateGraph::<Log>::new()
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .interrupt_before(["ask"])
        .compile()
        .expect("a graph");
    let app = one_node(
        inner.as_node(|_: &Log| Log::update(), |inner: Log| Log::update().log(inner.log)),
        &world,
    );
    let thread = app.thread("1");
    assert!(asked(thread.invoke(log("in")).await).is_empty());
    refused(&thread, "yes", &["no open question"]).await;
    assert_eq!(asked(thread.invoke(()).await), ["n is 0, ok?"]);
    assert_eq!(done(thread.resume("yes").await).log, ["in", "yes"]);
}

/// F40: when the state was changed since, the question that was asked is not the one that would be answered.
#[tokio::test(start_paused = true)]
async fn after_a_change_of_the_state_the_question_is_asked_again() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("before", || log("before"))
        .add_node("ask", ask)
        .add_edge(START, "before")
        .add_edge("before", "ask");
    let thread = in_memory(graph.compile().expect("a graph"), &world).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["n is 0, ok?"]);
    thread.update_state(Log::update().n(5)).await.expect("an update");
    assert_eq!(next(&look(&thread).await), ["ask"]);
    assert!(look(&thread).await.interrupts.is_empty());
    world.take();
    refused(&thread, "to the old question", &["no open question"]).await;
    assert!(world.take().is_empty(), "nothing ran");

    assert_eq!(asked(thread.invoke(()).await), ["n is 5, ok?"]);
    assert_eq!(done(thread.resume("yes").await).log, ["in", "before", "yes"]);
}

/// F40: on a finished thread the reference takes the answer and does nothing.
#[tokio::test(start_paused = true)]
async fn an_answer_on_a_finished_thread_is_refused() {
    let thread = one_node(ask, &World::new()).thread("1");
    thread.invoke(log("in")).await.expect("a question");
    done(thread.resume("yes").await);
    refused(&thread, "again", &["no open question"]).await;
    assert_eq!(look(&thread).await.state().log, ["in", "yes"]);
}

/// F22: on a new thread the reference takes a command for input and loses its answer.
#[tokio::test(start_paused = true)]
async fn an_answer_on_a_new_thread_is_refused() {
    let world = World::new();
    let thread = one_node(ask, &world).thread("1");
    refused(&thread, "yes", &["no open question"]).await;
    assert_eq!(checkpoints(&thread).await, 0);
    assert!(world.take().is_empty());
}

/// F26: an id that names no question is ignored in the reference, and everything is asked again.
#[tokio::test(start_paused = true)]
async fn an_answer_to_an_unknown_question_is_refused() {
    let world = World::new();
    let app = one_node(ask, &world);
    let other = questions(app.thread("other").invoke(log("in")).await).remove(0);
    let thread = app.thread("1");
    let open = questions(thread.invoke(log("in")).await).remove(0);
    world.take();
    let (error, text) = failed(thread.resume_all([(other.id.clone(), "yes")]).await);
    assert_says(
        &text,
        &["no open question", &format!("`{}`", other.id), &format!("`{}`", open.id)],
    );
    assert!(matches!(error, RunError::Resume { pending, .. } if pending == [open.clone()]));
    assert!(world.take().is_empty(), "nothing ran");

    let (_, text) =
        failed(thread.resume_all([(open.id.clone(), "yes"), (other.id.clone(), "no")]).await);
    assert_says(&text, &[&format!("`{}`", other.id)]);
    assert_eq!(texts(&look(&thread).await.interrupts), ["n is 0, ok?"], "all or none");
    assert_eq!(done(thread.resume_all([(open.id, "yes")]).await).log, ["in", "yes"]);
}

/// F26: in the reference the id of a task's first question answers whichever later one is open.
#[tokio::test(start_paused = true)]
async fn the_id_of_an_answered_question_answers_no_other() {
    let thread = one_node(ask_twice, &World::new()).thread("1");
    let first = questions(thread.invoke(log("in")).await).remove(0);
    let second = questions(thread.resume_all([(first.id.clone(), "one")]).await).remove(0);
    assert_ne!(first.id, second.id);
    let (_, text) = failed(thread.resume_all([(first.id.clone(), "again")]).await);
    assert_says(&text, &[&format!("`{}`", first.id), &format!("`{}`", second.id)]);
    assert_eq!(texts(&look(&thread).await.interrupts), ["second?"]);
    assert_eq!(done(thread.resume_all([(second.id, "two")]).await).log, ["in", "one", "two"]);
}

/// An answer that is not what the node takes: the caller that gave it is told, and the question
/// stays open.
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_refused() {
    let node = |task: Task| async move {
        let ok: bool = task.interrupt("sure?").await;
        log(ok.to_string())
    };
    let thread = one_node(node, &World::new()).thread("1");
    thread.invoke(log("in")).await.expect("a question");
    let (_, text) = failed(thread.resume("perhaps").await);
    assert_says(&text, &["`ask`", "does not fit"]);
    assert_eq!(texts(&look(&thread).await.interrupts), ["sure?"]);
    assert_eq!(done(thread.resume(true).await).log, ["in", "true"]);
}
