//! A graph without its type is the same graph: JSON in, LangGraph's JSON out, and the same storage below.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use superstep::checkpoint::AnyCheckpointer;
use superstep::prelude::*;
use superstep::{AnyEvent, AnyGraph, AnyThread, BreakAt, CheckpointRef, Request, StateUpdate};

#[derive(State, Clone, Default)]
struct Essay {
    topic: String,
    draft: Option<String>,
    #[channel(reduce = Append)]
    log: Vec<String>,
}

async fn write(essay: Arc<Essay>, task: Task) -> EssayUpdate {
    task.emit("writing");
    Essay::update().draft(format!("about {}", essay.topic)).log(["write".to_owned()])
}

async fn review(essay: Arc<Essay>, task: Task) -> EssayUpdate {
    let verdict: String = task.interrupt(json!({ "draft": essay.draft })).await;
    Essay::update().log([format!("review:{verdict}")])
}

fn essay() -> superstep::CompiledGraph<Essay> {
    StateGraph::<Essay>::new()
        .add_node("write", write)
        .add_node("review", review)
        .add_edge(START, "write")
        .add_edge("write", "review")
        .compile()
        .expect("a graph")
}

fn kept() -> AnyGraph {
    AnyGraph::from(essay()).with_checkpointer(AnyCheckpointer::new(MemorySaver::new()))
}

fn input(input: Json) -> Request {
    Request { input: Some(input), ..Request::default() }
}

fn command(command: Json) -> Request {
    Request { command: Some(command), ..Request::default() }
}

/// The events of a run, each as mode and data, and its outcome or error last.
async fn events(mut run: superstep::AnyRun) -> Vec<(String, Json)> {
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        seen.push(match event {
            Ok(AnyEvent::Data { mode, data, .. }) => (mode.as_str().to_owned(), data),
            Ok(AnyEvent::Outcome(Outcome::Done(values))) => ("done".to_owned(), values),
            Ok(AnyEvent::Outcome(Outcome::Interrupted(asked))) => {
                ("interrupted".to_owned(), asked.into_state().unwrap_or_default())
            }
            Ok(other) => panic!("not expected: {other:?}"),
            Err(error) => (error.kind().into_owned(), error.to_string().into()),
        });
    }
    seen
}

async fn run(thread: &AnyThread, request: Request) -> (String, Json) {
    events(thread.run(request)).await.pop().expect("a run has an end")
}

#[tokio::test]
async fn json_goes_in_and_langgraph_s_json_comes_out() {
    let thread = kept().thread("t");
    let modes = vec![Mode::Values, Mode::Updates, Mode::Custom];
    // A key that is not a channel is ignored, as the reference does.
    let first = Request { modes, ..input(json!({ "topic": "cats", "other": 1 })) };
    let mut seen = events(thread.run(first)).await;
    let id = seen.iter().find_map(|(_, data)| data["__interrupt__"][0]["id"].as_str());
    let id = id.expect("the id of a question").to_owned();
    let (_, end) = seen.pop().expect("an end");
    assert_eq!(end, json!({ "topic": "cats", "draft": "about cats", "log": ["write"] }));
    let asked = json!([{ "id": id, "value": { "draft": "about cats" }, "response_schema": null }]);
    let mut values = end.clone();
    values["__interrupt__"] = asked.clone();
    let expected = [
        ("values", json!({ "topic": "cats", "log": [] })),
        ("custom", json!("writing")),
        ("updates", json!({ "write": { "draft": "about cats", "log": ["write"] } })),
        ("values", end),
        ("updates", json!({ "__interrupt__": asked })),
        ("values", values),
    ];
    assert_eq!(seen, expected.map(|(mode, data)| (mode.to_owned(), data)));

    let state = thread.state(false).await.expect("a state").to_json();
    assert_eq!(state["next"], json!(["review"]));
    assert_eq!(state["tasks"][0]["path"], json!(["__pregel_pull", "review"]));
    assert_eq!(state["interrupts"], json!([{ "id": id, "value": { "draft": "about cats" } }]));
    assert_eq!(state["checkpoint"]["thread_id"], "t");

    // A map of ids answers those questions; any other value answers the one that is open.
    let (how, values) =
        run(&thread, command(json!({ "resume": { &*id: "fine" }, "goto": [] }))).await;
    assert_eq!((&*how, &values["log"]), ("done", &json!(["write", "review:fine"])));
}

#[tokio::test]
async fn a_command_updates_and_goes_anywhere() {
    let thread = kept().thread("t");
    let go = json!({ "update": { "topic": "dogs" }, "goto": "write" });
    let (how, values) = run(&thread, command(go)).await;
    assert_eq!((&*how, &values["draft"]), ("interrupted", &json!("about dogs")));
    for wrong in [
        json!("resume"),
        json!({ "goto": 1 }),
        json!({ "goto": { "input": 1 } }),
        json!({ "update": 1 }),
    ] {
        let (kind, text) = run(&thread, command(wrong.clone())).await;
        assert_eq!(kind, "InvalidUpdateError", "{wrong}: {text}");
    }
    assert_eq!(
        thread.state(false).await.expect("a state").interrupts.len(),
        1,
        "nothing was changed"
    );
}

#[tokio::test]
async fn the_run_id_is_stored_with_every_checkpoint() {
    let graph = kept();
    let thread = graph.thread("t");
    let tagged = [("user".to_owned(), json!("u1"))].into_iter().collect();
    let first = Request {
        run_id: Some("r1".to_owned()),
        metadata: tagged,
        ..input(json!({ "topic": "x" }))
    };
    run(&thread, first).await;
    let history = thread.history(10, None, serde_json::Map::new()).await.expect("a history");
    assert_eq!(history.len(), 3);
    for state in history.iter().map(superstep::RawSnapshot::to_json) {
        assert_eq!(
            (&state["metadata"]["run_id"], &state["metadata"]["user"]),
            (&json!("r1"), &json!("u1"))
        );
    }
    let of = |id: &str| [("run_id".to_owned(), json!(id))].into_iter().collect();
    assert_eq!(thread.history(10, None, of("r2")).await.expect("a history").len(), 0);
}

#[tokio::test]
async fn state_is_looked_at_and_changed_at_any_checkpoint() {
    let thread = kept().thread("t");
    assert_eq!(thread.state(false).await.expect("a state").to_json()["checkpoint"], Json::Null);
    run(&thread, input(json!({ "topic": "x" }))).await;
    let older = thread.history(10, None, serde_json::Map::new()).await.expect("a history");
    let at = older[1].config.clone();
    let update = StateUpdate::data(json!({ "topic": "y" })).as_node("write");
    let forked = thread.at(at).update([vec![update]]).await.expect("an update");
    let state = thread.at(forked).state(false).await.expect("a state").to_json();
    assert_eq!((&state["values"]["topic"], &state["next"]), (&json!("y"), &json!(["review"])));
    let unknown =
        CheckpointRef::latest("t").at(superstep::checkpoint::IdClock::new().next(0, None));
    assert!(thread.at(unknown).state(false).await.is_err());
}

#[tokio::test]
async fn breakpoints_that_name_no_node_are_ignored() {
    let thread = kept().thread("t");
    let before = Some(BreakAt::from(["review", "nobody"]));
    let seen =
        events(thread.run(Request { interrupt_before: before, ..input(json!({ "topic": "x" })) }))
            .await;
    assert_eq!(seen.last().expect("an end").0, "interrupted");
    assert!(seen.iter().all(|(_, data)| data.get("__interrupt__").is_none()), "nothing is asked");
}

#[tokio::test]
async fn a_shared_run_goes_on_without_a_reader_and_shows_all_to_each() {
    let graph = kept();
    let shared = graph.thread("t").run(input(json!({ "topic": "x" }))).spawn();
    let mut left = shared.events();
    left.next().await.expect("an event");
    drop(left);
    shared.ended().await;
    for mut reader in [shared.events(), shared.events()] {
        let mut count = 0;
        let mut last = None;
        while let Some(event) = reader.next().await {
            count += 1;
            last = Some(event);
        }
        assert_eq!(count, 4);
        assert!(matches!(last.as_deref(), Some(Ok(AnyEvent::Outcome(_)))));
    }
    let unread = graph.thread("u").run(input(json!({ "topic": "x" }))).spawn();
    let ended = unread.clone();
    drop(unread);
    ended.ended().await;
    assert_eq!(graph.thread("u").state(false).await.expect("a state").interrupts.len(), 1);
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Model {
    #[serde(default = "default_model")]
    model_name: String,
    #[serde(default)]
    temperature: f64,
}

fn default_model() -> String {
    "default-model".to_owned()
}

async fn show(Ctx(model): Ctx<Model>, Ctx(uses): Ctx<Arc<AtomicUsize>>) -> EssayUpdate {
    uses.fetch_add(1, Ordering::Relaxed);
    Essay::update().draft(format!("{}/{:?}", model.model_name, model.temperature))
}

#[tokio::test]
async fn a_context_is_read_from_json_or_refused_when_the_graph_is_taken_in() {
    let graph = StateGraph::<Essay>::new().add_node("show", show).add_edge(START, "show");
    let graph = graph.compile().expect("a graph").with_context(Arc::new(AtomicUsize::new(0)));
    let refused =
        AnyGraph::from(graph.clone()).check().expect_err("nobody can give it a model").to_string();
    assert!(refused.contains("`show`") && refused.contains("Model"), "{refused}");
    assert!(refused.contains("with_json_context") && !refused.contains("AtomicUsize"), "{refused}");

    let graph = AnyGraph::from(graph.with_json_context::<Model>());
    graph.check().expect("everything is there");
    let answer = |context: Json| {
        let run = graph.run(Request { context, ..input(json!({ "topic": "x" })) });
        async move { events(run).await.pop().expect("an end") }
    };
    assert_eq!(answer(Json::Null).await.1["draft"], "default-model/0.0");
    let given = json!({ "temperature": 0.5, "model_name": "m1" });
    assert_eq!(answer(given).await.1["draft"], "m1/0.5");
    let (kind, text) = answer(json!({ "temperature": "warm" })).await;
    assert!(kind == "ValueError" && text.to_string().contains("context"), "{kind}: {text}");

    let context = graph.schemas().context.expect("a schema");
    assert_eq!(
        context["properties"]["model_name"],
        json!({ "type": "string", "title": "Model Name", "default": "default-model" })
    );
}

#[test]
fn schemas_come_from_the_types_of_the_fields() {
    let schemas = AnyGraph::from(essay()).schemas();
    let log = json!({ "type": "array", "items": { "type": "string" }, "title": "Log" });
    assert_eq!(schemas.state["properties"]["log"], log);
    assert_eq!(schemas.input["properties"]["topic"], json!({ "type": "string", "title": "Topic" }));
    assert_eq!(schemas.context, None);
}

#[test]
fn a_drawing_unfolds_subgraphs() {
    let graph = StateGraph::<Essay>::new()
        .add_node("child", essay())
        .add_node("last", write)
        .add_edge(START, "child")
        .add_edge("child", "last")
        .compile()
        .expect("a graph");
    let graph = AnyGraph::from(graph);
    let folded = graph.drawing(0).to_json();
    assert_eq!(
        folded["nodes"][1],
        json!({ "id": "child", "type": "runnable", "data": { "name": "child" } })
    );
    assert_eq!(folded["edges"].as_array().map(Vec::len), Some(3));
    let unfolded = graph.drawing(1);
    assert_eq!(unfolded.nodes, ["__start__", "child:write", "child:review", "last", "__end__"]);
    let edges: Vec<_> =
        unfolded.edges.iter().map(|edge| format!("{} {}", edge.source, edge.target)).collect();
    assert_eq!(
        edges,
        ["__start__ child:write", "child:review last", "child:write child:review", "last __end__"]
    );
}
