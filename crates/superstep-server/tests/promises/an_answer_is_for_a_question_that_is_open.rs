//! Shows what becomes of answers that no question waits for: a second answer by id is refused before anything is created,
//! others change nothing, and the thread is as it was. An answer that is lost, or given to another question, would be believed.

use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep_server::Server;

use crate::world::World;

async fn asked(world: &World, graph: &str) -> (String, Vec<String>) {
    let thread = world.thread().await;
    let body = json!({ "assistant_id": graph, "input": { "topic": "x" } });
    world.post(&format!("/threads/{thread}/runs/wait"), body).await;
    let state = world.get(&format!("/threads/{thread}/state")).await.json();
    let ids = state["interrupts"].as_array().expect("a list").iter();
    let ids = ids.map(|asked| asked["id"].as_str().expect("an id").to_owned()).collect();
    (thread, ids)
}

async fn answer(world: &World, thread: &str, graph: &str, resume: Json) -> (u16, Json) {
    let body = json!({ "assistant_id": graph, "command": { "resume": resume } });
    let answered = world.post(&format!("/threads/{thread}/runs/wait"), body).await;
    (answered.status.as_u16(), answered.json())
}

#[tokio::test]
async fn a_second_answer_by_id_is_a_conflict() {
    let world = World::new().await;
    let (thread, ids) = asked(&world, "approval").await;
    let by_id = json!({ &*ids[0]: "yes" });
    let (_, done) = answer(&world, &thread, "approval", by_id.clone()).await;
    assert_eq!(done["decision"], "yes");
    let (status, refused) = answer(&world, &thread, "approval", by_id).await;
    assert_eq!(status, 409, "{refused}");
    assert!(refused["detail"].as_str().is_some_and(|detail| detail.contains(&ids[0])), "{refused}");
    let runs = world.get(&format!("/threads/{thread}/runs")).await.json();
    assert_eq!(runs.as_array().map(Vec::len), Some(2), "no run was created");
}

#[tokio::test]
async fn an_answer_to_nothing_changes_nothing() {
    let world = World::new().await;
    let (thread, _) = asked(&world, "approval").await;
    // No question has this id, so the one that is open comes again.
    let unknown = json!({ "00000000000000000000000000000000": "yes" });
    for nothing in [unknown, json!({})] {
        let (_, again) = answer(&world, &thread, "approval", nothing).await;
        assert_eq!(again["__interrupt__"].as_array().map(Vec::len), Some(1), "{again}");
    }
    let (_, done) = answer(&world, &thread, "approval", json!(["any", "value"])).await;
    assert_eq!(done["decision"], json!(["any", "value"]));
    let (_, same) = answer(&world, &thread, "approval", json!("again")).await;
    assert_eq!(same, done, "nothing is asked any more");
    assert_eq!(world.get(&format!("/threads/{thread}")).await.json()["status"], "idle");
}

#[tokio::test]
async fn of_several_answers_those_count_that_are_waited_for() {
    let world = World::new().await;
    let (thread, ids) = asked(&world, "parallel").await;
    let (_, one) = answer(&world, &thread, "parallel", json!({ &*ids[0]: "1" })).await;
    assert_eq!(one["__interrupt__"][0]["id"], ids[1]);
    let both = json!({ &*ids[0]: "changed", &*ids[1]: "2" });
    let (_, done) = answer(&world, &thread, "parallel", both).await;
    assert_eq!(done["merged"], "a=1|b=2");
}

/// A client edits the draft it is asked about, and then approves it.
#[tokio::test]
async fn an_answer_after_a_change_of_the_state_is_for_the_question_on_the_new_state() {
    let world = World::new().await;
    let (thread, _) = asked(&world, "approval").await;
    let edit = json!({ "values": { "draft": "better" } });
    assert_eq!(world.post(&format!("/threads/{thread}/state"), edit).await.status, 200);
    let body = json!({
        "assistant_id": "approval", "command": { "resume": "yes" }, "stream_mode": ["values", "updates"],
    });
    let events = world.post(&format!("/threads/{thread}/runs/stream"), body).await.events();
    let shown = events.iter().map(|(_, event, data)| match event.as_str() {
        "updates" => data.as_object().into_iter().flatten().map(|(node, _)| node.clone()).collect(),
        event => event.to_owned(),
    });
    let shown: Vec<String> = shown.collect();
    assert_eq!(shown, ["metadata", "values", "review", "values", "publish", "values"]);
    let (_, _, end) = events.last().expect("an event");
    assert_eq!((&end["draft"], &end["decision"]), (&json!("better"), &json!("yes")));
}

#[derive(State, Clone, Default)]
struct Gate {
    open: bool,
}

async fn ask(task: Task) -> GateUpdate {
    let question = task.interrupt::<bool>("open?").schema(json!({ "type": "boolean" }));
    Gate::update().open(question.await)
}

#[tokio::test]
async fn an_answer_of_the_wrong_type_leaves_the_question_open() {
    let graph = StateGraph::<Gate>::new().add_node("ask", ask).add_edge(START, "ask");
    let graph = graph.compile().expect("a graph");
    let world = World::start(Server::new().graph("gate", graph)).await;
    let (thread, ids) = asked(&world, "gate").await;
    for wrong in [json!("perhaps"), json!({ &*ids[0]: 7 })] {
        let (status, refused) = answer(&world, &thread, "gate", wrong.clone()).await;
        assert_eq!(status, 422, "{wrong}: {refused}");
        let detail = refused["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(&ids[0]) && detail.contains("boolean"), "{detail}");
    }
    let shown = world.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(shown["status"], "interrupted", "{shown}");
    let (_, done) = answer(&world, &thread, "gate", json!(true)).await;
    assert_eq!(done["open"], true, "{done}");
}
