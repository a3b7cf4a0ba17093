//! What a dispatch carries reaches its node in the type the node asks for, in the run that dispatched it and in one that reads
//! it from storage alike.

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::CompiledGraph;
use superstep::checkpoint::{AnyCheckpointer, MemorySaver};
use superstep::prelude::*;

use crate::world::{Log, asked, assert_says, done, failed, log};

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Page {
    title: String,
    words: u16,
}

/// A graph whose first node dispatches `arg` to a second that takes a `T`.
fn graph<A, T>(arg: A) -> CompiledGraph<Log>
where
    A: Serialize + Clone + Send + Sync + 'static,
    T: std::fmt::Debug + Clone + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    StateGraph::<Log>::new()
        .add_node("send", move || Command::<Log>::new().goto(Dispatch::new("take", arg.clone())))
        .destinations(["take"])
        .add_node("take", |Arg(value): Arg<T>| log(format!("{value:?}")))
        .add_edge(START, "send")
        .compile()
        .expect("a graph")
        .with_any_checkpointer(AnyCheckpointer::new(MemorySaver::new()))
}

/// What the node took: live, and after a stop in between, which makes it come from storage.
async fn taken<T>(arg: impl Serialize + Clone + Send + Sync + 'static) -> [String; 2]
where
    T: std::fmt::Debug + Clone + serde::de::DeserializeOwned + Send + Sync + 'static,
{
    let graph = graph::<_, T>(arg);
    let live = done(graph.thread("live").invoke(log("in")).await);
    let thread = graph.thread("stored");
    let stopped = thread.invoke(log("in")).interrupt_before(["take"]).await;
    assert!(asked(stopped).is_empty(), "it stops between the two");
    let stored = done(thread.invoke(()).await);
    [live, stored].map(|log| log.log[1].clone())
}

#[tokio::test]
async fn numbers() {
    assert_eq!(taken::<u64>(3).await, ["3", "3"]);
    assert_eq!(taken::<u64>(3_usize).await, ["3", "3"]);
    assert_eq!(taken::<f64>(3).await, ["3.0", "3.0"]);
    assert_eq!(taken::<Option<i8>>(3_u64).await, ["Some(3)", "Some(3)"]);
}

#[tokio::test]
async fn texts() {
    assert_eq!(taken::<String>("page").await, ["\"page\"", "\"page\""]);
}

#[tokio::test]
async fn json_to_a_struct() {
    let page = r#"Page { title: "a", words: 7 }"#;
    assert_eq!(taken::<Page>(json!({ "title": "a", "words": 7 })).await, [page, page]);
    assert_eq!(taken::<Page>(Page { title: "a".into(), words: 7 }).await, [page, page]);
}

/// What does not fit fails the node in both cases, and says what was sent and what was wanted.
#[tokio::test]
async fn or_says_both_types() {
    let graph = graph::<_, u8>("three");
    let (_, live) = failed(graph.thread("live").invoke(log("in")).await);
    assert_says(&live, &["node `take`", "`&str`", "`u8`", "three"]);
    let thread = graph.thread("stored");
    let stopped = thread.invoke(log("in")).interrupt_before(["take"]).await;
    assert!(asked(stopped).is_empty(), "it stops between the two");
    let (_, stored) = failed(thread.invoke(()).await);
    assert_says(&stored, &["node `take`", "three", "`u8`"]);
}
