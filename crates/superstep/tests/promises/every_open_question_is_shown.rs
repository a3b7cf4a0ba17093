//! Whoever looks at a thread sees all its open questions, in the order of their tasks, under ids that stay the same until
//! they are answered.

use std::time::Duration;

use crate::world::{Log, World, asked, done, in_memory, log, look, questions, texts};
use superstep::Memory;
use superstep::func::Entrypoint;
use superstep::prelude::*;

/// F7: two calls of one workflow ask at the same time. The reference shows one of the questions and refuses a single answer
/// because there are two.
#[tokio::test(start_paused = true)]
async fn of_calls_at_the_same_time() {
    let flow = Entrypoint::new("flow", |(): (), task: Task| async move {
        let ask = |question: &'static str| {
            move |call: Task| async move { Ok::<String, NodeError>(call.interrupt(question).await) }
        };
        let a = task.call_with("a", ask("a?")).spawn();
        let b = task.call_with("b", ask("b?")).spawn();
        Ok::<_, NodeError>(vec![a.await?, b.await?])
    });
    let thread = in_memory(flow.compile(), &World::new()).thread("1");
    let open = questions(thread.start(()).await);
    assert_eq!(texts(&open), ["a?", "b?"]);
    let shown = thread.get_state().raw().await.expect("a look").info.interrupts;
    assert_eq!(shown, open, "the snapshot shows what the run returned");

    let left = questions(thread.resume_all([(open[1].id.clone(), "B")]).await);
    assert_eq!(left, open[..1], "the other one stays, under its id");
    let shown = thread.get_state().raw().await.expect("a look").info.interrupts;
    assert_eq!(shown, left);
    let answers = done(thread.resume("A").await);
    assert_eq!(answers, ["A", "B"]);
}

/// The node waits for a call that has stopped already when another one stops.
#[tokio::test(start_paused = true)]
async fn of_calls_that_ask_one_after_the_other() {
    let graph = StateGraph::<Log>::new()
        .add_node("node", |task: Task| async move {
            let ask = |call: Task| async move {
                let wait = if call.name() == "early" { 1 } else { 9 };
                tokio::time::sleep(Duration::from_secs(wait)).await;
                Ok::<String, NodeError>(call.interrupt(format!("{}?", call.name())).await)
            };
            let early = task.call_with("early", ask).spawn();
            let late = task.call_with("late", ask).spawn();
            let said = async { Ok::<_, NodeError>((early.await?, late.await?)) };
            // Waking up for something else, the node looks at the calls again.
            let said = tokio::time::timeout(Duration::from_secs(60), said).await?;
            let (early, late) = said?;
            Ok::<_, NodeError>(log(format!("{early} {late}")))
        })
        .add_edge(START, "node")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    let open = questions(thread.invoke(log("in")).await);
    let mut asked = texts(&open);
    asked.sort();
    assert_eq!(asked, ["early?", "late?"]);
    let answers = open.iter().map(|question| (question.id.clone(), "yes"));
    assert_eq!(done(thread.resume_all(answers).await).log, ["in", "yes yes"]);
}

/// F33: the reference returns questions in the order in which they arrive.
#[tokio::test(start_paused = true)]
async fn in_the_order_of_tasks() {
    let late = |seconds: u64, question: &'static str| {
        move |task: Task| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            log(task.interrupt::<String>(question).await)
        }
    };
    let graph = StateGraph::<Log>::new()
        .add_node("a", late(3, "a?"))
        .add_node("b", late(2, "b?"))
        .add_node("c", late(1, "c?"))
        .add_edge(START, "c")
        .add_edge(START, "b")
        .add_edge(START, "a")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    let open = questions(thread.invoke(log("in")).await);
    assert_eq!(texts(&open), ["a?", "b?", "c?"]);
    let answers = open.iter().map(|question| (question.id.clone(), question.value.clone()));
    assert_eq!(done(thread.resume_all(answers).await).log, ["in", "a?", "b?", "c?"]);
}

/// F33, for dispatches: by position, also beyond the ninth.
#[tokio::test(start_paused = true)]
async fn in_the_order_of_dispatches() {
    let graph = StateGraph::<Log>::new()
        .add_node("fan", || (0..12_u64).map(|n| Dispatch::new("ask", n)).collect::<Vec<_>>())
        .destinations(["ask"])
        .add_node("ask", |Arg(n): Arg<u64>, task: Task| async move {
            tokio::time::sleep(Duration::from_secs(20 - n)).await;
            log(task.interrupt::<String>(format!("{n}?")).await)
        })
        .add_edge(START, "fan")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    let open = questions(thread.invoke(log("in")).await);
    let expected: Vec<_> = (0..12).map(|n| format!("{n}?")).collect();
    assert_eq!(texts(&open), expected);
    assert_eq!(texts(&look(&thread).await.interrupts), expected);
}

/// F16: a question of an error handler is missing from the reference's snapshots.
#[tokio::test(start_paused = true)]
async fn of_an_error_handler() {
    let graph = StateGraph::<Log>::new()
        .add_node("work", || Err::<(), _>("no"))
        .on_error(|failure: Failure, task: Task| async move {
            let answer: String =
                task.interrupt(format!("`{}` failed, and now?", failure.node)).await;
            log(answer)
        })
        .add_edge(START, "work")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    let open = questions(thread.invoke(log("in")).await);
    assert_eq!(texts(&open), ["`work` failed, and now?"]);
    assert_eq!(look(&thread).await.interrupts, open);
    assert_eq!(done(thread.resume("never mind").await).log, ["in", "never mind"]);
    assert!(look(&thread).await.interrupts.is_empty());
}

/// F29: a subgraph that stores nothing starts over when its node does. In the reference its
/// questions then have other ids, so that an answer by id never arrives.
#[tokio::test(start_paused = true)]
async fn of_a_subgraph_without_memory_under_the_same_id() {
    let inner = StateGraph::<Log>::new()
        .add_node("first", || log("first"))
        .add_node("ask", |task: Task| async move { log(task.interrupt::<String>("go?").await) })
        .add_edge(START, "first")
        .add_edge("first", "ask")
        .memory(Memory::Nothing)
        .compile()
        .expect("a graph");
    let leave = |inner: Log| Log::update().log(inner.log);
    let graph = StateGraph::<Log>::new()
        .add_node("sub", inner.as_node(|_: &Log| Log::update(), leave))
        .add_edge(START, "sub")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    let open = questions(thread.invoke(log("in")).await);
    assert_eq!(questions(thread.invoke(()).await), open, "asked again, it is the same question");
    assert_eq!(look(&thread).await.interrupts, open);
    let log = done(thread.resume_all([(open[0].id.clone(), "yes")]).await).log;
    assert_eq!(log, ["in", "first", "yes"]);
}

/// Two subgraphs of one superstep ask; both are shown, and each answer finds its own.
#[tokio::test(start_paused = true)]
async fn of_subgraphs_side_by_side() {
    let inner = |question: &'static str| {
        let ask = move |task: Task| async move { log(task.interrupt::<String>(question).await) };
        let graph = StateGraph::<Log>::new().add_node("ask", ask).add_edge(START, "ask");
        let graph = graph.compile().expect("a graph");
        graph.as_node(|_: &Log| Log::update(), |inner: Log| Log::update().log(inner.log))
    };
    let graph = StateGraph::<Log>::new()
        .add_node("a", inner("a?"))
        .add_node("b", inner("b?"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    let open = questions(thread.invoke(log("in")).await);
    assert_eq!(texts(&open), ["a?", "b?"]);
    assert_eq!(look(&thread).await.interrupts, open);
    assert_eq!(asked(thread.resume_all([(open[1].id.clone(), "B")]).await), ["a?"]);
    assert_eq!(done(thread.resume("A").await).log, ["in", "A", "B"]);
}
