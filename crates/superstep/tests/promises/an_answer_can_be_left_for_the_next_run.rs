//! Somebody without the graph answers a question; the caller of the run next with no input takes
//! the answer up, wherever it was asked. Of several who answer at the same time one succeeds, and
//! what does not fit changes nothing.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use superstep::checkpoint::{AnyCheckpointer, InterruptId};
use superstep::prelude::*;
use superstep::{CompiledGraph, Memory, answer, replace_answer};

use crate::world::{Log, LogUpdate, asked, assert_says, done, failed, log, look, questions, texts};

fn checkpointer() -> AnyCheckpointer {
    AnyCheckpointer::new(MemorySaver::new())
}

fn one_node<M>(node: impl superstep::IntoNode<Log, M>) -> CompiledGraph<Log> {
    let graph = StateGraph::<Log>::new().add_node("ask", node).add_edge(START, "ask");
    graph.compile().expect("a graph")
}

async fn ask_twice(task: Task) -> LogUpdate {
    let first: String = task.interrupt("first?").await;
    let second: String = task.interrupt("second?").await;
    Log::update().log([first, second])
}

async fn left(checkpointer: &AnyCheckpointer, value: &str) -> String {
    let question = answer(checkpointer, "1", None, value).await.expect("an open question");
    question.value.as_str().expect("text").to_owned()
}

#[tokio::test(start_paused = true)]
async fn one_after_the_other() {
    let checkpointer = checkpointer();
    let thread = one_node(ask_twice).with_any_checkpointer(checkpointer.clone()).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["first?"]);
    assert_eq!(left(&checkpointer, "one").await, "first?");
    assert!(look(&thread).await.interrupts.is_empty(), "it is answered");
    let (_, text) = failed(answer(&checkpointer, "1", None, "again").await);
    assert_says(&text, &["no question is open"]);
    assert_eq!(asked(thread.invoke(()).await), ["second?"]);
    assert_eq!(left(&checkpointer, "two").await, "second?");
    assert_eq!(done(thread.invoke(()).await).log, ["in", "one", "two"]);
}

/// A thread whose graph asks inside of another one.
fn thread_of(checkpointer: &AnyCheckpointer, memory: Memory, id: &str) -> superstep::Thread<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("inner", one_node(ask_twice).with_memory(memory))
        .add_edge(START, "inner")
        .compile()
        .expect("a graph");
    graph.with_any_checkpointer(checkpointer.clone()).thread(id)
}

#[tokio::test(start_paused = true)]
async fn inside_graphs_and_calls() {
    for memory in [Memory::PerCall, Memory::PerThread, Memory::Nothing] {
        let checkpointer = checkpointer();
        let thread = thread_of(&checkpointer, memory, "1");
        assert_eq!(asked(thread.invoke(log("in")).await), ["first?"], "{memory:?}");
        left(&checkpointer, "one").await;
        assert_eq!(asked(thread.invoke(()).await), ["second?"], "{memory:?}");
        left(&checkpointer, "two").await;
        assert_eq!(done(thread.invoke(()).await).log.last().map(String::as_str), Some("two"));
        // The same with somebody who has the graph.
        let other = thread_of(&checkpointer, memory, "2");
        assert_eq!(asked(other.invoke(log("in")).await), ["first?"], "{memory:?}");
        assert_eq!(asked(other.resume("one").await), ["second?"], "{memory:?}");
        assert_eq!(done(other.resume("two").await).log.last().map(String::as_str), Some("two"));
    }
    let checkpointer = checkpointer();
    let calls = one_node(|task: Task| async move {
        let call = task.call_with("c", |task| async move {
            Ok::<String, NodeError>(task.interrupt("from a call?").await)
        });
        Ok::<_, NodeError>(log(call.await?))
    });
    let thread = calls.with_any_checkpointer(checkpointer.clone()).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["from a call?"]);
    left(&checkpointer, "yes").await;
    assert_eq!(done(thread.invoke(()).await).log, ["in", "yes"]);
}

/// The answer is kept for the task and for its subgraphs. A subgraph that asks must not find the
/// answer of the task.
#[tokio::test(start_paused = true)]
async fn an_answer_is_taken_once() {
    let checkpointer = checkpointer();
    let inner = one_node(|task: Task| async move { log(task.interrupt::<String>("inner?").await) });
    let inner = inner.with_memory(Memory::Nothing);
    let node = move |task: Task| {
        let inner = inner.clone();
        async move {
            let own: String = task.interrupt("outer?").await;
            let found = task.invoke(&inner, log(own)).await?;
            Ok::<_, NodeError>(Log::update().log(found.log))
        }
    };
    let thread = one_node(node).with_any_checkpointer(checkpointer.clone()).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["outer?"]);
    left(&checkpointer, "one").await;
    assert_eq!(asked(thread.invoke(()).await), ["inner?"]);
    left(&checkpointer, "two").await;
    assert_eq!(done(thread.invoke(()).await).log, ["in", "one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_fit_changes_nothing() {
    let checkpointer = checkpointer();
    let node = |task: Task| async move {
        let schema = json!({ "type": "string", "enum": ["yes", "no"] });
        log(task.interrupt::<String>("ok?").schema(schema).await)
    };
    let thread = one_node(node).with_any_checkpointer(checkpointer.clone()).thread("1");
    let question = questions(thread.invoke(log("in")).await).remove(0);
    let writes =
        async || checkpointer.get("1", "", None).await.expect("read").expect("a head").writes;
    let before = writes().await;
    let (_, text) = failed(answer(&checkpointer, "1", None, 7).await);
    assert_says(&text, &["does not fit", "expected string"]);
    let (_, text) = failed(answer(&checkpointer, "1", None, "perhaps").await);
    assert_says(&text, &["\"yes\", \"no\""]);
    let unknown = InterruptId::new("ffff");
    let (error, text) = failed(answer(&checkpointer, "1", Some(&unknown), "yes").await);
    assert_says(&text, &["`ffff`", question.id.as_str()]);
    assert!(matches!(error, RunError::Resume { pending, .. } if texts(&pending) == ["ok?"]));
    let (_, text) = failed(answer(&checkpointer, "nobody", None, "yes").await);
    assert_says(&text, &["no thread `nobody`"]);
    assert_eq!(writes().await, before);
    answer(&checkpointer, "1", Some(&question.id), "yes").await.expect("it fits");
    assert_eq!(done(thread.invoke(()).await).log, ["in", "yes"]);
}

/// The schema said nothing, and only the node knows the type.
#[tokio::test(start_paused = true)]
async fn what_the_node_cannot_take_opens_the_question_again() {
    let checkpointer = checkpointer();
    let node = |task: Task| async move { log(task.interrupt::<u8>("how many?").await.to_string()) };
    let thread = one_node(node).with_any_checkpointer(checkpointer.clone()).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["how many?"]);
    left(&checkpointer, "many").await;
    let (error, text) = failed(thread.invoke(()).await);
    assert_says(&text, &["does not fit"]);
    assert!(matches!(error, RunError::Resume { pending, .. } if texts(&pending) == ["how many?"]));
    assert_eq!(texts(&look(&thread).await.interrupts), ["how many?"]);
    answer(&checkpointer, "1", None, 3).await.expect("still open");
    assert_eq!(done(thread.invoke(()).await).log, ["in", "3"]);
}

/// Both have looked before either has stored.
#[tokio::test(start_paused = true)]
async fn of_two_who_answer_at_once_one_succeeds() {
    let checkpointer = checkpointer();
    let thread = one_node(ask_twice).with_any_checkpointer(checkpointer.clone()).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["first?"]);
    let head = checkpointer.get("1", "", None).await.expect("read").expect("a head");
    left(&checkpointer, "one").await;
    // What the other one would store, having seen the same.
    let stale = superstep::checkpoint::TaskWrites::new(
        superstep::checkpoint::TaskId::CLAIM,
        "",
        vec![("__resume__".into(), superstep::checkpoint::Blob::null())],
    );
    let stale = stale.expecting("__resume__", None);
    let put = checkpointer.put_writes("1", "", head.checkpoint.id, vec![stale]).await;
    assert!(matches!(put, Err(superstep::checkpoint::Error::Overtaken { .. })), "{put:?}");
    assert_eq!(asked(thread.invoke(()).await), ["second?"]);
    assert_eq!(done(thread.resume("two").await).log, ["in", "one", "two"]);
}

/// The answer of a task itself and that of a subgraph are stored in different places.
#[tokio::test(start_paused = true)]
async fn what_was_left_can_be_replaced_until_a_run_takes_it() {
    let checkpointer = checkpointer();
    let plain = one_node(ask_twice).with_any_checkpointer(checkpointer.clone()).thread("1");
    for thread in [plain, thread_of(&checkpointer, Memory::PerCall, "1")] {
        assert_eq!(asked(thread.invoke(log("in")).await), ["first?"]);
        let (_, text) = failed(replace_answer(&checkpointer, "1", None, "too soon").await);
        assert_says(&text, &["no answer was left that no run has taken"]);
        left(&checkpointer, "wrong").await;
        replace_answer(&checkpointer, "1", None, "one").await.expect("nobody has taken it");
        assert_eq!(asked(thread.invoke(()).await), ["second?"]);
        failed(replace_answer(&checkpointer, "1", None, "too late").await);
        left(&checkpointer, "wrong").await;
        let other = InterruptId::new("no such question");
        failed(replace_answer(&checkpointer, "1", Some(&other), "of no use").await);
        let question =
            replace_answer(&checkpointer, "1", None, "wrong again").await.expect("replaced");
        replace_answer(&checkpointer, "1", Some(&question.id), "two").await.expect("replaced");
        let ended = done(thread.invoke(()).await).log;
        assert!(ended.ends_with(&["one".to_owned(), "two".to_owned()]), "{ended:?}");
        checkpointer.delete_thread("1").await.expect("deleted");
    }
}

/// A task that has its answer works with it, so that another one would come too late.
#[tokio::test(start_paused = true)]
async fn an_answer_that_a_live_run_has_taken_is_not_replaced() {
    let checkpointer = checkpointer();
    let (work, taken) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let node = {
        let taken = taken.clone();
        move |task: Task| {
            let taken = taken.clone();
            async move {
                let answer: String = task.interrupt("which?").await;
                taken.notify_one();
                std::future::pending::<()>().await;
                log(answer)
            }
        }
    };
    let sibling = {
        let work = work.clone();
        move || {
            let work = work.clone();
            async move {
                work.notified().await;
                log("worked")
            }
        }
    };
    let graph = StateGraph::<Log>::new()
        .add_node("ask", node)
        .add_node("work", sibling)
        .add_edge(START, "ask")
        .add_edge(START, "work");
    let graph = graph.compile().expect("a graph").with_any_checkpointer(checkpointer.clone());
    let thread = graph.thread("1");
    let run = tokio::spawn(thread.invoke(log("in")));
    while checkpointer
        .get("1", "", None)
        .await
        .expect("read")
        .is_none_or(|head| head.open_questions().expect("questions").is_empty())
    {
        tokio::task::yield_now().await;
    }
    // Left while the run works; it takes the answer when its superstep stops.
    left(&checkpointer, "wrong").await;
    replace_answer(&checkpointer, "1", None, "right").await.expect("the run has not taken it");
    work.notify_one();
    taken.notified().await;
    let (_, text) = failed(replace_answer(&checkpointer, "1", None, "too late").await);
    assert_says(&text, &["no answer was left that no run has taken"]);
    run.abort();
}

#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Verdict {
    approved: bool,
    why: String,
}

/// Whoever has a checkpointer has what it takes, and an answer is a type as it is for `resume`.
#[tokio::test]
async fn with_any_checkpointer_and_any_answer() {
    let checkpointer = MemorySaver::new();
    let graph = one_node(|task: Task| async move {
        let Verdict { approved, why } = task.interrupt("well?").await;
        log(format!("{approved}: {why}"))
    });
    let thread = graph.with_checkpointer(checkpointer.clone()).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["well?"]);
    let (error, text) = failed(answer(&checkpointer, "1", None, u128::MAX).await);
    assert!(matches!(error, RunError::Resume { .. }), "{error:?}");
    assert_says(&text, &["the answer cannot be serialized"]);
    let verdict = Verdict { approved: true, why: "it is good".to_owned() };
    answer(&checkpointer, "1", None, &verdict).await.expect("an open question");
    assert_eq!(done(thread.invoke(()).await).log, ["in", "true: it is good"]);
    let (_, text) = failed(answer(AnyCheckpointer::new(checkpointer), "1", None, verdict).await);
    assert_says(&text, &["no question is open"]);
}
