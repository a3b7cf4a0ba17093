//! Shows that open questions of all threads are found in the inbox, that a question takes one answer, and that who gave it is
//! recorded. It would break if two people could both answer, or if a refused answer closed the question.

use axum::http::StatusCode;
use serde_json::{Value as Json, json};
use superstep::prelude::*;
use superstep_server::{Database, KeyRing, Role, Server};

use crate::world::{Answered, Dir, World};

async fn ask(world: &World, graph: &str, input: Json, metadata: Json) -> String {
    let thread = world.post("/threads", json!({ "metadata": metadata })).await.json();
    let thread = thread["thread_id"].as_str().expect("an id").to_owned();
    let body = json!({ "assistant_id": graph, "input": input });
    let asked = world.post(&format!("/threads/{thread}/runs/wait"), body).await;
    assert!(asked.text.contains("__interrupt__"), "{}", asked.text);
    thread
}

async fn inbox(world: &World, body: Json) -> (Vec<Json>, Json) {
    let found = world.post("/inbox/search", body).await;
    assert_eq!(found.status, StatusCode::OK, "{}", found.text);
    let found = found.json();
    (found["questions"].as_array().expect("questions").clone(), found["next"].clone())
}

async fn answer(world: &World, thread: &str, graph: &str, command: Json) -> Answered {
    let body = json!({ "assistant_id": graph, "command": command });
    world.post(&format!("/threads/{thread}/runs/wait"), body).await
}

#[tokio::test]
async fn the_inbox_has_filters_and_pages() {
    let world = World::new().await;
    let mut threads = Vec::new();
    for (n, topic) in ["cats", "Dogs", "birds"].into_iter().enumerate() {
        let metadata = json!({ "n": n, "odd": n % 2 == 1 });
        threads.push(ask(&world, "approval", json!({ "topic": topic }), metadata).await);
    }
    let both = ask(&world, "parallel", json!({}), json!({ "n": 3 })).await;
    let (all, next) = inbox(&world, json!({})).await;
    assert_eq!((all.len(), next), (5, Json::Null));
    let order: Vec<_> = all.iter().map(|question| question["thread_id"].clone()).collect();
    let mut expected: Vec<Json> = threads.iter().map(|thread| json!(thread)).collect();
    expected.extend([json!(both), json!(both)]);
    assert_eq!(order, expected, "who waits longest comes first");
    assert_eq!(all[0]["value"]["question"], "approve?");
    assert_eq!(all[0]["graph_id"], "approval");

    for (filter, count) in [
        (json!({ "graph_id": "parallel" }), 2),
        (json!({ "assistant_id": "approval" }), 3),
        (json!({ "metadata": { "odd": true } }), 1),
        (json!({ "thread_id": both }), 2),
        (json!({ "text": "dogs" }), 1),
        (json!({ "text": "approve" }), 3),
        (json!({ "text": "nothing" }), 0),
        (json!({ "due_before": "2030-01-01T00:00:00Z" }), 0),
    ] {
        assert_eq!(inbox(&world, filter.clone()).await.0.len(), count, "{filter}");
    }
    let (mut paged, mut cursor) = (Vec::new(), Json::Null);
    loop {
        let mut body = json!({ "limit": 2 });
        if !cursor.is_null() {
            body["cursor"] = cursor;
        }
        let (questions, next) = inbox(&world, body).await;
        paged.extend(questions);
        if next.is_null() {
            break;
        }
        cursor = next;
    }
    assert_eq!(paged, all, "pages have each question once, also in the middle of a thread");
    for bad in [json!({ "cursor": "x" }), json!({ "limit": 0 }), json!({ "due_before": "soon" })] {
        let refused = world.post("/inbox/search", bad.clone()).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}: {}", refused.text);
    }
    answer(&world, &threads[0], "approval", json!({ "resume": "yes" })).await;
    assert_eq!(inbox(&world, json!({})).await.0.len(), 4);
}

#[tokio::test]
async fn a_second_answer_is_refused_and_changes_nothing() {
    let world = World::new().await;
    let thread = ask(&world, "approval", json!({ "topic": "x" }), json!({})).await;
    let id = inbox(&world, json!({})).await.0[0]["interrupt_id"].clone();
    let id = id.as_str().expect("an id").to_owned();
    let yes = json!({ "resume": "yes" });
    let (a, b) = tokio::join!(
        answer(&world, &thread, "approval", yes.clone()),
        answer(&world, &thread, "approval", json!({ "resume": { id.as_str(): "no" } })),
    );
    let refused = [&a, &b].map(|answered| answered.status == StatusCode::CONFLICT);
    assert!(refused[0] != refused[1], "one of them: {} {}", a.text, b.text);
    let late =
        answer(&world, &thread, "approval", json!({ "resume": { id.as_str(): "no" } })).await;
    assert_eq!(late.status, StatusCode::CONFLICT, "{}", late.text);
    assert!(late.text.contains(&id), "{}", late.text);
    let runs = world.get(&format!("/threads/{thread}/runs")).await.json();
    assert_eq!(runs.as_array().map(Vec::len), Some(2), "nothing was created");
    let answers = world.get(&format!("/threads/{thread}/answers")).await.json();
    assert_eq!(answers.as_array().map(Vec::len), Some(1), "{answers}");
    // Where nobody ever asked, an answer is none, as LangGraph has it.
    let quiet = world.thread().await;
    assert_eq!(answer(&world, &quiet, "counter", yes).await.status, StatusCode::OK);
}

#[tokio::test]
async fn who_answered_when_and_why_is_recorded() {
    let dir = Dir::new();
    let database = Database::Sqlite(dir.file("server.db"));
    let ring = KeyRing::open(&database).await.expect("keys");
    let (_, key) = ring.add("ada", "acme", Role::User).await.expect("a key");
    let world = World::start(Server::new().database(database)).await;
    let post = async |path: &str, body: Json| {
        world.send("POST", path, &[("x-api-key", &*key)], body.to_string()).await.json()
    };
    let thread = post("/threads", json!({})).await["thread_id"].as_str().expect("id").to_owned();
    let path = format!("/threads/{thread}/runs/wait");
    post(&path, json!({ "assistant_id": "approval", "input": { "topic": "x" } })).await;
    let command = json!({ "resume": "yes", "comment": "looks good" });
    post(&path, json!({ "assistant_id": "approval", "command": command })).await;
    let get = async |path: &str| world.send("GET", path, &[("x-api-key", &*key)], "").await.json();
    let answers = get(&format!("/threads/{thread}/answers")).await;
    assert_eq!(answers[0]["answered_by"], "ada", "{answers}");
    assert_eq!(answers[0]["comment"], "looks good");
    assert_eq!(answers[0]["answer"], "yes");
    assert_eq!(answers[0]["question"]["question"], "approve?");
    assert!(answers[0]["answered_at"].is_string());
    let run = answers[0]["run_id"].as_str().expect("a run");
    let run = get(&format!("/threads/{thread}/runs/{run}")).await;
    assert_eq!(run["metadata"]["answered_by"], "ada", "{run}");
    let state = get(&format!("/threads/{thread}/state")).await;
    assert_eq!(state["metadata"]["answer_comment"], "looks good", "{state}");
    assert_eq!(run["kwargs"]["config"]["configurable"]["langgraph_auth_user_id"], "ada");
    // Nobody can claim to be somebody.
    let body = json!({
        "assistant_id": "counter", "input": {},
        "context": { "langgraph_auth_user_id": "eve", "user_id": "eve" },
    });
    let path = format!("/threads/{thread}/runs");
    let run = post(&path, body).await;
    assert_eq!(run["kwargs"]["config"]["configurable"]["langgraph_auth_user_id"], "ada", "{run}");
    assert!(!run.to_string().contains("acme:"), "{run}");
}

#[derive(State, Clone, Default)]
struct Decision {
    ok: bool,
}

async fn with_schema(task: Task) -> DecisionUpdate {
    Decision::update().ok(task.interrupt::<bool>("ok?").schema(json!({ "type": "boolean" })).await)
}

async fn without(task: Task) -> DecisionUpdate {
    Decision::update().ok(task.interrupt::<bool>("ok?").await)
}

#[tokio::test]
async fn an_answer_of_the_wrong_type_leaves_the_question_open() {
    let mut server = Server::new();
    let graph = StateGraph::<Decision>::new().add_node("ask", with_schema).add_edge(START, "ask");
    server = server.graph("typed", graph.compile().expect("a graph"));
    let graph = StateGraph::<Decision>::new().add_node("ask", without).add_edge(START, "ask");
    server = server.graph("untyped", graph.compile().expect("a graph"));
    let world = World::start(server).await;

    let thread = ask(&world, "typed", json!({}), json!({})).await;
    let (questions, _) = inbox(&world, json!({ "thread_id": thread })).await;
    assert_eq!(questions[0]["response_schema"], json!({ "type": "boolean" }));
    let id = questions[0]["interrupt_id"].as_str().expect("an id");
    for wrong in [json!("yes"), json!({ id: 7 }), json!([true])] {
        let refused = answer(&world, &thread, "typed", json!({ "resume": wrong })).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", refused.text);
        assert!(refused.text.contains(id), "{}", refused.text);
    }
    let runs = world.get(&format!("/threads/{thread}/runs")).await.json();
    assert_eq!(runs.as_array().map(Vec::len), Some(1), "nothing was created");
    let found = world.get(&format!("/threads/{thread}")).await.json();
    assert_eq!(found["status"], "interrupted");
    assert!(!found.to_string().contains("response_schema"), "as clients know it: {found}");
    let taken = answer(&world, &thread, "typed", json!({ "resume": { id: true } })).await;
    assert_eq!(taken.json()["ok"], true, "{}", taken.text);

    // Without a schema only the node finds out.
    let thread = ask(&world, "untyped", json!({}), json!({})).await;
    let failed = answer(&world, &thread, "untyped", json!({ "resume": "yes" })).await;
    assert!(failed.text.contains("__error__"), "{}", failed.text);
    assert_eq!(inbox(&world, json!({ "thread_id": thread })).await.0.len(), 1, "it is still open");
    let taken = answer(&world, &thread, "untyped", json!({ "resume": true })).await;
    assert_eq!(taken.json()["ok"], true, "{}", taken.text);
}
