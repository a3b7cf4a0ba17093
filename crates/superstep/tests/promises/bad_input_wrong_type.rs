//! Shows that data of the wrong type for a channel is refused where it comes in, with the channel and what was found, and
//! changes nothing. It would break if data were decoded only when a node looks at it.

use crate::common::{Counter, Notes, done, kept, line, says};
use serde_json::json;
use superstep::prelude::*;

fn graph(ran: &Counter) -> StateGraph<Notes> {
    let ran = ran.clone();
    StateGraph::new()
        .add_node("node", move || {
            ran.add();
            line("node")
        })
        .add_edge(START, "node")
}

#[tokio::test]
async fn in_the_input() {
    let ran = Counter::default();
    let thread = kept(graph(&ran)).thread("t");
    let before = done(thread.invoke(line("x")).await);
    let cases = [
        (json!({ "lines": 7 }), "`lines`"),
        (json!({ "lines": [7] }), "`lines`"),
        (json!({ "total": "many" }), "`total`"),
        (json!({ "total": 1.5 }), "`total`"),
        (json!({ "last": { "a": 1 } }), "`last`"),
    ];
    for (input, channel) in cases {
        let error = thread.invoke(input.clone()).await.expect_err("the wrong type");
        assert!(matches!(error, RunError::InvalidUpdate { .. }), "{input}: {error:?}");
        says(&error, &["channel", channel]);
        let snapshot = thread.get_state().await.expect("a look");
        assert_eq!(**snapshot.state(), before, "{input} changed nothing");
    }
    assert_eq!(ran.get(), 1);
    assert_eq!(done(thread.invoke(json!({ "total": 2 })).await).total, 2);
}

#[tokio::test]
async fn in_an_update_of_the_state() {
    let thread = kept(graph(&Counter::default())).thread("t");
    let before = done(thread.invoke(line("x")).await);
    let update = superstep::StateUpdate::data(json!({ "total": "many" })).as_node("node");
    let error = thread.bulk_update_state([vec![update]]).await.expect_err("the wrong type");
    says(&error, &["`total`"]);
    assert_eq!(**thread.get_state().await.expect("a look").state(), before);
}

#[tokio::test]
async fn in_what_a_dispatch_carries() {
    let tries = Counter::default();
    let tried = tries.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("spread", move || match tried.add() {
            0 => Dispatch::new("work", "seven"),
            _ => Dispatch::new("work", 7_i64),
        })
        .destinations(["work"])
        .add_node("work", |Arg(n): Arg<i64>| Notes::update().total(n))
        .add_edge(START, "spread");
    let thread = kept(graph).thread("t");
    let error = thread.invoke(Notes::update()).await.expect_err("the wrong type");
    says(&error, &["`work`", "i64"]);
    assert_eq!(thread.get_state().await.expect("a look").state().total, 0);
    assert_eq!(done(thread.invoke(Notes::update()).await).total, 7);
}

#[tokio::test]
async fn a_node_that_takes_an_argument_and_gets_none() {
    let graph = StateGraph::<Notes>::new()
        .add_node("work", |Arg(n): Arg<i64>| Notes::update().total(n))
        .add_edge(START, "work")
        .compile()
        .expect("a graph that compiles");
    let error = graph.invoke(Notes::update()).await.expect_err("no argument");
    says(&error, &["`work`", "`Dispatch`"]);
}
