//! Shows that lists of messages are folded as LangGraph's `add_messages` does it, that pieces of a message are put together
//! as LangChain does it, and that what was removed is gone for good.

use std::process::Command;

use serde::Deserialize;
use superstep::checkpoint::{Blob, Checkpointer, Ext, Tag};
use superstep::prelude::*;
use superstep::state::{MessageUpdate, Role};

#[derive(Deserialize)]
struct Cases {
    folds: Vec<Fold>,
    merges: Vec<Merge>,
}

#[derive(Debug, Deserialize)]
struct Fold {
    left: Vec<Message>,
    right: Vec<Message>,
    /// Nothing if it is refused.
    result: Option<Vec<Message>>,
}

#[derive(Debug, Deserialize)]
struct Merge {
    pieces: Vec<Message>,
    merged: Option<Message>,
    message: Option<Message>,
}

fn cases(seed: u64) -> Option<Cases> {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/promises/python/messages.py");
    let output =
        Command::new(python).arg(script).args([&seed.to_string(), "400"]).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(Blob::new(Tag::Msgpack, output.stdout).decode().expect("cases"))
}

fn fold(mut list: Vec<Message>, update: Vec<Message>) -> Option<Vec<Message>> {
    let update = MessageUpdate::from(update);
    Messages::check(&list, &update).ok()?;
    Messages::reduce(&mut list, update);
    Some(list)
}

fn merge(pieces: &[Message]) -> Option<Message> {
    let (first, others) = pieces.split_first()?;
    let mut whole = first.clone();
    others.iter().try_for_each(|piece| whole.merge(piece.clone())).ok()?;
    Some(whole)
}

#[test]
fn lists_are_folded_as_add_messages_does_it() {
    for seed in 0..3 {
        let Some(cases) = cases(seed) else { return };
        let refused = cases.folds.iter().filter(|case| case.result.is_none()).count();
        assert!(refused > 0 && refused < cases.folds.len(), "some are refused and some are not");
        for (nth, case) in cases.folds.into_iter().enumerate() {
            let shown = format!("seed {seed}, case {nth}: {case:#?}");
            assert_eq!(fold(case.left, case.right), case.result, "{shown}");
        }
    }
}

#[test]
fn pieces_are_put_together_as_langchain_does_it() {
    for seed in 0..3 {
        let Some(cases) = cases(seed) else { return };
        let refused = cases.merges.iter().filter(|case| case.merged.is_none()).count();
        assert!(refused > 0 && refused < cases.merges.len(), "some are refused and some are not");
        for (nth, case) in cases.merges.into_iter().enumerate() {
            let shown = format!("seed {seed}, case {nth}: {case:#?}");
            let merged = merge(&case.pieces);
            assert_eq!(merged, case.merged, "{shown}");
            assert_eq!(merged.map(Message::into_message), case.message, "{shown}");
        }
    }
}

#[derive(State, Clone, Debug, Default)]
struct Chat {
    #[channel(reduce = Messages)]
    added: Vec<Message>,
    #[channel(reduce = Messages, delta = false)]
    whole: Vec<Message>,
}

fn said(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.text().into_owned()).collect()
}

fn graph(
    write: impl Fn() -> Vec<Message> + Send + Sync + 'static,
) -> superstep::CompiledGraph<Chat> {
    let node = move || {
        let written = write();
        Chat::update().added(written.clone()).whole(written)
    };
    let graph = StateGraph::<Chat>::new().add_node("node", node).add_edge(START, "node");
    graph.compile().expect("a graph")
}

fn input(text: &str) -> ChatUpdate {
    let said = Message::human(text).with_id(text);
    Chat::update().added([said.clone()]).whole([said])
}

#[tokio::test]
async fn messages_that_were_all_removed_do_not_come_back() {
    let checkpointer = MemorySaver::new();
    let graph = graph(|| vec![Message::ai("x"), Message::remove_all(), Message::ai("anew")])
        .with_checkpointer(checkpointer.clone());
    let thread = graph.thread("1");
    for text in ["one", "two"] {
        let chat = thread.invoke(input(text)).await.expect("a run").done().expect("an end");
        assert_eq!(
            (said(&chat.added), said(&chat.whole)),
            (vec!["anew".into()], vec!["anew".into()])
        );
        let loaded = thread.get_state().await.expect("a state").state().clone();
        assert_eq!((&loaded.added, &loaded.whole), (&chat.added, &chat.whole));
    }
    // LangGraph's reducer for such a channel does not know the request, so the value is stored whole.
    let head = checkpointer.get("1", "", None).await.expect("a head").expect("a head");
    let stored = head.checkpoint.channel_values.get("added").expect("a whole value").to_value();
    let Ok(Value::Ext(stored)) = stored else { panic!("no snapshot: {stored:?}") };
    assert!(matches!(*stored, Ext::Snapshot(Value::List(items)) if items.len() == 1));
}

#[tokio::test]
async fn what_is_not_there_cannot_be_removed() {
    let graph = graph(|| vec![Message::remove("gone")]).with_checkpointer(MemorySaver::new());
    let error = graph.thread("1").invoke(input("one")).await.expect_err("nothing to remove");
    let text = error.to_string();
    assert!(text.contains("`added`") && text.contains("no message has the id `gone`"), "{text}");
}

#[tokio::test]
async fn pieces_that_a_node_writes_are_messages_in_the_list() {
    let graph = graph(|| vec![Message::ai_chunk("so far").with_id("m1")]);
    let chat = graph.invoke(input("one")).await.expect("a run").done().expect("an end");
    assert_eq!(chat.added[1], Message::ai("so far").with_id("m1"));
    assert_eq!(chat.added[1].role, Role::Ai);
}
