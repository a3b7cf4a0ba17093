//! A thread of messages that grows by one with each superstep is stored at the cost of the messages and of a small
//! skeleton for each checkpoint. The other engine writes the whole list each time.

mod common;

use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Chat {
    #[channel(reduce = Append)]
    messages: Vec<String>,
}

fn message(nth: usize) -> String {
    format!("{nth:0>200}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_messages_take_little_more_than_they_are() {
    let database = common::Database::new().await;
    let graph = StateGraph::<Chat>::new()
        .add_node("say", |chat: Arc<Chat>| Chat::update().messages([message(chat.messages.len())]))
        .add_edge(START, "say")
        .add_conditional_edges("say", ["say", END], |chat: &Chat| {
            if chat.messages.len() < 1000 { "say" } else { END }
        });
    let graph = graph.compile().expect("a graph").with_checkpointer(database.saver().await);
    let run = graph.thread("t").invoke(Chat::update()).recursion_limit(1005);
    let done = run.await.expect("a run").done().expect("nothing stops the run");
    assert_eq!(done.messages.len(), 1000);
    // What one has to read and send, and not what pages and indexes make of it.
    let sum = "SELECT (SELECT sum(length(checkpoint::text) + length(metadata::text)) FROM checkpoints)::bigint, \
               (SELECT coalesce(sum(length(blob)), 0) FROM checkpoint_blobs)::bigint, \
               (SELECT sum(length(blob)) FROM checkpoint_writes)::bigint";
    let row = database.client().await.query_one(sum, &[]).await.expect("sums");
    let [checkpoints, blobs, writes] = [0, 1, 2].map(|at| row.get::<_, i64>(at));
    println!("1,000 supersteps: {checkpoints} + {blobs} + {writes} bytes");
    let total = checkpoints + blobs + writes;
    // The aim is 1,200,000; the JSON of a checkpoint repeats the names and versions of all its channels.
    assert!(total <= 1_300_000, "{total} bytes for 200,000 bytes of messages");
    let again = graph.thread("t").get_state().await.expect("a state");
    assert_eq!(again.state().messages, done.messages);
}
