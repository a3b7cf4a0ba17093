//! Shows that a thread that exists only as checkpoints, written by another program into the same file, is read and continued.

use serde_json::json;
use superstep::Request;
use superstep::checkpoint::AnyCheckpointer;
use superstep_server::demo;
use superstep_sqlite::SqliteSaver;

use crate::world::{Dir, World};

#[tokio::test]
async fn a_thread_of_another_program_goes_on() {
    let dir = Dir::new();
    let file = dir.file("threads.db");
    let thread = uuid::Uuid::now_v7().to_string();
    let checkpointer = SqliteSaver::open(&file).await.expect("a checkpointer");
    let graphs = demo::graphs().expect("the demo's graphs");
    let (_, counter) = graphs.into_iter().find(|(name, _)| *name == "counter").expect("a graph");
    let counter = counter.with_checkpointer(AnyCheckpointer::new(checkpointer));
    let metadata = [("graph_id".to_owned(), json!("counter"))].into_iter().collect();
    let input = Some(json!({ "count": 10 }));
    let mut run =
        counter.thread(thread.as_str()).run(Request { input, metadata, ..Request::default() });
    while let Some(event) = run.next().await {
        event.expect("it does not fail");
    }
    drop((run, counter));

    let world = World::on(&file).await;
    let state = world.get(&format!("/threads/{thread}/state")).await.json();
    assert_eq!(state["values"]["count"], 13, "{state}");
    let body = json!({ "assistant_id": "counter", "input": { "count": 0 } });
    let result = world.post(&format!("/threads/{thread}/runs/wait"), body).await.json();
    assert_eq!(result["count"], 16, "{result}");
}
