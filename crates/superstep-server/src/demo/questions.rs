//! Graphs that ask.

use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep::{AnyGraph, CompileError};

/// An answer as text: a text as it is, anything else as JSON.
fn as_text(answer: &Json) -> String {
    answer.as_str().map_or_else(|| answer.to_string(), str::to_owned)
}

#[derive(State, Clone, Default)]
struct Approval {
    topic: Option<String>,
    draft: Option<String>,
    decision: Option<Json>,
    #[channel(reduce = Append)]
    log: Vec<String>,
}

async fn write(state: Arc<Approval>) -> ApprovalUpdate {
    let topic = state.topic.as_deref().unwrap_or("nothing");
    Approval::update().draft(format!("draft about {topic}")).log(["write".to_owned()])
}

async fn review(state: Arc<Approval>, task: Task) -> ApprovalUpdate {
    let question = json!({ "question": "approve?", "draft": state.draft });
    let decision: Json = task.interrupt(question).await;
    Approval::update().decision(decision).log(["review".to_owned()])
}

fn verdict(state: &Approval) -> &'static str {
    match &state.decision {
        Some(Json::String(yes)) if yes == "yes" => "publish",
        _ => "discard",
    }
}

fn logged(word: &str, state: &Approval) -> ApprovalUpdate {
    let decision = state.decision.as_ref().map(as_text).unwrap_or_default();
    Approval::update().log([format!("{word}:{decision}")])
}

pub(super) fn approval() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Approval>::new()
        .add_node("write", write)
        .add_node("review", review)
        .add_node("publish", |state: Arc<Approval>| async move { logged("publish", &state) })
        .add_node("discard", |state: Arc<Approval>| async move { logged("discard", &state) })
        .add_edge(START, "write")
        .add_edge("write", "review")
        .add_conditional_edges("review", ["publish", "discard"], verdict);
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Parallel {
    #[channel(reduce = Append)]
    answers: Vec<String>,
    merged: Option<String>,
}

async fn ask(task: Task, who: &'static str) -> ParallelUpdate {
    let answer: Json = task.interrupt(json!({ "ask": who })).await;
    Parallel::update().answers([format!("{who}={}", as_text(&answer))])
}

async fn merge(state: Arc<Parallel>) -> ParallelUpdate {
    let mut answers = state.answers.clone();
    answers.sort();
    Parallel::update().merged(answers.join("|"))
}

pub(super) fn parallel() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Parallel>::new()
        .add_node("ask_a", |task: Task| ask(task, "a"))
        .add_node("ask_b", |task: Task| ask(task, "b"))
        .add_node("merge", merge)
        .add_edge(START, "ask_a")
        .add_edge(START, "ask_b")
        .add_edge(["ask_a", "ask_b"], "merge");
    Ok(graph.compile()?.into())
}

#[derive(State, Clone, Default)]
struct Parent {
    topic: Option<String>,
    note: Option<String>,
    #[channel(reduce = Append)]
    log: Vec<String>,
}

#[derive(State, Clone, Default)]
struct Child {
    topic: Option<String>,
    note: Option<String>,
    #[channel(reduce = Append)]
    child_log: Vec<String>,
}

async fn child_ask(child: Arc<Child>, task: Task) -> ChildUpdate {
    let topic = child.topic.clone().unwrap_or_default();
    let answer: Json = task.interrupt(json!({ "child_question": topic })).await;
    Child::update().note(as_text(&answer)).child_log(["child_ask".to_owned()])
}

pub(super) fn nested() -> Result<AnyGraph, CompileError> {
    let child = StateGraph::<Child>::new()
        .add_node("child_prepare", || async {
            Child::update().child_log(["child_prepare".to_owned()])
        })
        .add_node("child_ask", child_ask)
        .add_edge(START, "child_prepare")
        .add_edge("child_prepare", "child_ask")
        .compile()?;
    let enter = |parent: &Parent| {
        let update = Child::update();
        let update = match &parent.topic {
            Some(topic) => update.topic(topic.clone()),
            None => update,
        };
        match &parent.note {
            Some(note) => update.note(note.clone()),
            None => update,
        }
    };
    let leave = |child: Child| {
        let update = Parent::update();
        let update = match &child.topic {
            Some(topic) => update.topic(topic.clone()),
            None => update,
        };
        match &child.note {
            Some(note) => update.note(note.clone()),
            None => update,
        }
    };
    let graph = StateGraph::<Parent>::new()
        .add_node("before", || async { Parent::update().log(["before".to_owned()]) })
        .add_node("child", child.as_node(enter, leave))
        .add_node("after", |parent: Arc<Parent>| async move {
            Parent::update().log([format!("after:{}", parent.note.clone().unwrap_or_default())])
        })
        .add_edge(START, "before")
        .add_edge("before", "child")
        .add_edge("child", "after");
    Ok(graph.compile()?.into())
}
