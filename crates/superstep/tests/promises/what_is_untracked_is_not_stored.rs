//! A value in an untracked channel is there while the run is. It is in no checkpoint and in no stored write.

use crate::world::done;
use serde_json::json;
use superstep::checkpoint::{AnyCheckpointer, Query};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, Input};

const SECRET: &str = "hunter2";

#[derive(State, Clone, Default, Debug, serde::Serialize, serde::Deserialize)]
struct Session {
    #[channel(reduce = Append)]
    log: Vec<String>,
    #[channel(untracked)]
    password: String,
}

fn app(checkpointer: &MemorySaver) -> CompiledGraph<Session> {
    let graph = StateGraph::<Session>::new()
        .add_node("login", |session: Arc<Session>| {
            Session::update().log([format!("{} letters", session.password.len())])
        })
        .add_node("renew", |session: Arc<Session>| {
            Session::update().password(format!("{}!", session.password))
        })
        .add_node("check", |session: Arc<Session>| {
            Session::update().log([format!("{} letters", session.password.len())])
        })
        .add_edge(START, "login")
        .add_edge("login", "renew")
        .add_edge("renew", "check")
        .compile()
        .expect("a graph");
    graph.with_checkpointer(checkpointer.clone())
}

/// Everything that is stored, as text.
async fn stored(checkpointer: &MemorySaver) -> Vec<String> {
    let all =
        AnyCheckpointer::new(checkpointer.clone()).list(Query::default()).await.expect("a list");
    let mut texts = Vec::new();
    for stored in all {
        let values = stored.checkpoint.channel_values.iter();
        let writes = stored.writes.iter().map(|write| (&write.channel, &write.value));
        for (name, blob) in values.chain(writes) {
            texts.push(format!("{name} = {:?}", blob.to_value().expect("a value")));
        }
    }
    texts
}

async fn keeps_the_secret(input: impl Fn() -> Input) {
    for durability in [Durability::Sync, Durability::Exit] {
        let checkpointer = MemorySaver::new();
        let run = app(&checkpointer).thread("1").invoke(input()).durability(durability);
        assert_eq!(done(run.await).log, ["in", "7 letters", "8 letters"], "nodes see it");
        let stored = stored(&checkpointer).await;
        assert!(stored.iter().any(|text| text.contains("7 letters")), "the rest is stored");
        for text in stored {
            assert!(!text.contains(SECRET), "stored: {text}");
        }
    }
}

/// F19: the reference stores the input as it is in the input checkpoint.
#[tokio::test(start_paused = true)]
async fn as_part_of_an_input() {
    let update = || Session::update().log(["in".to_owned()]).password(SECRET);
    keeps_the_secret(|| superstep::IntoInput::<Session>::into_input(update())).await;
}

/// F19, for an input that is data.
#[tokio::test(start_paused = true)]
async fn as_part_of_an_input_that_is_data() {
    keeps_the_secret(|| Input::value(json!({ "log": ["in"], "password": SECRET }).into())).await;
}

/// F19, for a command that begins a thread, and for one that waits with a checkpoint.
#[tokio::test(start_paused = true)]
async fn as_part_of_a_command() {
    let checkpointer = MemorySaver::new();
    let thread = app(&checkpointer).thread("1");
    let command = || Command::<Session>::update(Session::update().password(SECRET));
    done(thread.invoke(command()).await);
    done(thread.invoke(command()).await);
    for text in stored(&checkpointer).await {
        assert!(!text.contains(SECRET), "stored: {text}");
    }
}

/// F19, for an update from outside.
#[tokio::test(start_paused = true)]
async fn as_part_of_an_update() {
    let checkpointer = MemorySaver::new();
    let thread = app(&checkpointer).thread("1");
    let update = Session::update().log(["in".to_owned()]).password(SECRET);
    thread.update_state(update).as_node("login").await.expect("an update");
    for text in stored(&checkpointer).await {
        assert!(!text.contains(SECRET), "stored: {text}");
    }
}

/// The reference does this right: what a dispatch carries is stored without untracked keys.
#[tokio::test(start_paused = true)]
async fn as_part_of_what_a_dispatch_carries() {
    let checkpointer = MemorySaver::new();
    let graph = StateGraph::<Session>::new()
        .add_node("fan", |session: Arc<Session>| Dispatch::new("each", (*session).clone()))
        .destinations(["each"])
        .add_node("each", |Arg(session): Arg<Session>| {
            Session::update().log([format!("{} letters", session.password.len())])
        })
        .add_edge(START, "fan")
        .compile()
        .expect("a graph");
    let thread = graph.with_checkpointer(checkpointer.clone()).thread("1");
    let state = done(thread.invoke(Session::update().password(SECRET)).await);
    assert_eq!(state.log, ["7 letters"], "the task sees it");
    for text in stored(&checkpointer).await {
        assert!(!text.contains(SECRET), "stored: {text}");
    }
}
