//! Shows that an answer either reaches the question it is for, or is refused and changes nothing: whatever policies the
//! asking node has, wherever it is, and whichever checkpoint the answer was given at.
//!
//! It could break where an answer passes through machinery that was made for something else: errors of nodes, command
//! inputs, branches.

use crate::common;

use crate::common::{Notes, NotesUpdate, kept, line};
use futures_util::TryStreamExt;
use superstep::checkpoint::InterruptId;
use superstep::prelude::*;

async fn ask_twice(task: Task) -> NotesUpdate {
    let first: i64 = task.interrupt("first?").await;
    let second: i64 = task.interrupt("second?").await;
    line(format!("{first}, {second}"))
}

fn asking() -> StateGraph<Notes> {
    StateGraph::new().add_node("ask", ask_twice).add_edge(START, "ask")
}

fn questions(outcome: Result<Outcome<Notes>, RunError>) -> Vec<String> {
    let asked = outcome.expect("a run").interrupted().expect("a question");
    asked.iter().filter_map(|question| question.value.as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn what_does_not_fit_is_refused_and_the_question_stays_open() {
    let thread = kept(asking()).thread("t");
    for question in ["first?", "second?"] {
        let asked = match question {
            "first?" => thread.invoke(Notes::update()).await,
            _ => thread.resume(1).await,
        };
        assert_eq!(questions(asked), [question]);
        thread.resume("one").await.expect_err("no number");
        let open = thread.get_state().await.expect("a state").interrupts.clone();
        assert_eq!(open.len(), 1, "{question} is open after a refused answer");
        assert_eq!(open[0].value, question.into());
    }
    assert_eq!(common::done(thread.resume(2).await).lines, ["1, 2"]);
}

#[tokio::test]
async fn no_error_handler_takes_an_answer_that_does_not_fit() {
    let handled = asking().on_error(|| line("handled"));
    let thread = kept(handled).thread("t");
    assert_eq!(questions(thread.invoke(Notes::update()).await), ["first?"]);
    thread.resume("one").await.expect_err("no number");
    assert_eq!(thread.get_state().await.expect("a state").interrupts.len(), 1);
}

#[tokio::test]
async fn no_answers_at_all_are_no_input() {
    let thread = kept(asking()).thread("t");
    let nothing: [(InterruptId, i64); 0] = [];
    thread.resume_all(nothing).await.expect_err("nothing is asked");
    assert_eq!(thread.get_state().await.expect("a state").metadata, None, "nothing has begun");
}

async fn answered_in_the_past(app: superstep::CompiledGraph<Notes>) {
    let thread = app.thread("t");
    assert_eq!(questions(thread.invoke(Notes::update()).await), ["first?"]);
    assert_eq!(questions(thread.resume(1).await), ["second?"]);
    assert_eq!(common::done(thread.resume(2).await).lines, ["1, 2"]);
    let history: Vec<_> = thread.get_state_history().try_collect().await.expect("a history");
    assert_eq!(history[1].interrupts[0].value, "second?".into());
    let branch = thread.at(&history[1]).resume(3).await;
    assert_eq!(common::done(branch).lines, ["1, 3"]);
}

#[tokio::test]
async fn an_answer_in_the_past_begins_a_branch_with_the_answers_before_it() {
    answered_in_the_past(kept(asking())).await;
}

/// A branch has tasks of its own, so the subgraph starts over, and its question is not the one that
/// was asked.
#[tokio::test]
async fn an_answer_in_the_past_to_a_graph_inside_is_refused() {
    let inner = asking().compile().expect("a graph");
    let leave = |inner: Notes| Notes::update().lines(inner.lines);
    let outer = StateGraph::new()
        .add_node("inner", inner.as_node(|_: &Notes| Notes::update(), leave))
        .add_edge(START, "inner");
    let thread = kept(outer).thread("t");
    assert_eq!(questions(thread.invoke(Notes::update()).await), ["first?"]);
    assert_eq!(questions(thread.resume(1).await), ["second?"]);
    assert_eq!(common::done(thread.resume(2).await).lines, ["1, 2"]);
    let history: Vec<_> = thread.get_state_history().try_collect().await.expect("a history");
    let refused = thread.at(&history[1]).resume(3).await.expect_err("another question");
    common::says(refused, &["inside", "no input"]);
    let head = thread.get_state().await.expect("a state");
    assert_eq!(head.config, history[0].config, "nothing has changed");
    assert_eq!(questions(thread.at(&history[1]).invoke(()).await), ["first?"]);
    assert_eq!(questions(thread.resume(1).await), ["second?"]);
    assert_eq!(common::done(thread.resume(3).await).lines, ["1, 3"]);
}

/// The call is known by its place in the node, which is the same on the branch.
#[tokio::test]
async fn an_answer_in_the_past_reaches_a_question_of_a_recorded_call() {
    let node = |task: Task| async move {
        let call = task.call_with("ask", |task| async move {
            let first: i64 = task.interrupt("first?").await;
            let second: i64 = task.interrupt("second?").await;
            Ok::<_, NodeError>(format!("{first}, {second}"))
        });
        call.await.map(line)
    };
    let graph = StateGraph::new().add_node("ask", node).add_edge(START, "ask");
    answered_in_the_past(kept(graph)).await;
}

/// F10: in the reference a question whose answer was accepted is shown as open until a node has taken it.
#[tokio::test]
async fn what_was_accepted_is_not_open_any_more() {
    let thread = kept(asking()).thread("t");
    assert_eq!(questions(thread.invoke(Notes::update()).await), ["first?"]);
    let control = superstep::RunControl::new();
    control.request_drain("before the node runs");
    let run = thread.resume(1).control(control).await.expect("a run");
    assert!(matches!(run, Outcome::Drained(_)), "{run:?}");
    assert!(thread.get_state().await.expect("a state").interrupts.is_empty());
    assert_eq!(questions(thread.invoke(()).await), ["second?"]);
    assert_eq!(common::done(thread.resume(2).await).lines, ["1, 2"]);
}

/// An answer that was refused is not tried again when the thread is continued.
#[tokio::test]
async fn what_was_refused_is_forgotten() {
    let thread = kept(asking()).thread("t");
    assert_eq!(questions(thread.invoke(Notes::update()).await), ["first?"]);
    thread.resume("one").await.expect_err("no number");
    assert_eq!(questions(thread.invoke(()).await), ["first?"]);
}

/// An answer that its own question takes does not run anything if another answer, given with it, does not fit.
#[tokio::test]
async fn answers_given_together_are_all_checked_before_anything_runs() {
    let ask = |task: Task| async move {
        let schema = serde_json::json!({ "type": "integer", "enum": [1, 2] });
        let answer: i64 = task.interrupt(task.name()).schema(schema).await;
        line(format!("{} {answer}", task.name()))
    };
    let graph = StateGraph::new().add_node("a", ask).add_node("b", ask);
    let thread = kept(graph.add_edge(START, "a").add_edge(START, "b")).thread("t");
    let asked = thread.invoke(Notes::update()).await.expect("a run").interrupted().expect("two");
    let ids = [asked[0].id.clone(), asked[1].id.clone()];
    let refused = thread.resume_all(ids.clone().into_iter().zip([1, 3])).await;
    let refused = refused.expect_err("the second does not fit").to_string();
    assert!(refused.contains("expected one of 1, 2"), "{refused}");
    let looked = thread.get_state().await.expect("a state");
    assert!(looked.tasks.iter().all(|task| task.result.is_none()), "{:?}", looked.tasks);
    let notes = common::done(thread.resume_all(ids.into_iter().zip([1, 2])).await);
    assert_eq!(notes.lines, ["a 1", "b 2"]);
}
