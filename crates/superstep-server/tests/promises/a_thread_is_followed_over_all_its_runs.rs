//! Shows that clients of the thread protocol see every channel of every run of a thread, in one order, with numbers and ids
//! that are the same whenever they come back, also after a restart. It would break if a channel were silent, if a number were
//! given twice, or if events were kept in memory only.

use std::collections::HashSet;

use serde_json::{Value as Json, json};

use crate::live::{Event, Live, command, is_end};
use crate::world::{Dir, World};

const ALL: [&str; 9] = [
    "values",
    "updates",
    "messages",
    "tools",
    "lifecycle",
    "input",
    "tasks",
    "custom",
    "checkpoints",
];

fn all() -> Json {
    json!({ "channels": ALL })
}

fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

async fn start(world: &World, thread: &str, graph: &str, input: Json) -> Json {
    let answer =
        command(world, thread, "run.start", json!({ "assistant_id": graph, "input": input })).await;
    assert_eq!(answer["type"], "success", "{answer}");
    answer
}

/// Follows one run from the start to its end, and the state after it.
async fn follow(world: &World, graph: &str, input: Json) -> (String, Vec<Event>) {
    let thread = new_id();
    let mut live = Live::session(world, &thread, all()).await;
    start(world, &thread, graph, input).await;
    (thread, live.until(is_end).await)
}

fn of<'a>(events: &'a [Event], method: &'a str) -> impl Iterator<Item = (&'a Json, &'a Json)> {
    let params = |(_, _, data): &'a Event| (&data["params"]["namespace"], &data["params"]["data"]);
    events.iter().filter(move |(_, event, _)| event == method).map(params)
}

#[tokio::test]
async fn every_channel_has_its_events() {
    let world = World::new().await;
    let (_, counter) = follow(&world, "counter", json!({ "count": 1 })).await;
    let updates: Vec<_> = of(&counter, "updates").map(|(_, data)| data["node"].clone()).collect();
    assert_eq!(updates, ["a", "b", "c"]);
    let a = of(&counter, "updates").next().expect("an update").1;
    assert_eq!(a["values"], json!({ "count": 1, "log": ["a"] }));
    let tasks: Vec<_> =
        of(&counter, "tasks").map(|(_, data)| data.get("result").is_some()).collect();
    assert_eq!(tasks, [false, true, false, true, false, true], "each starts and ends");
    let checkpoints: Vec<_> = of(&counter, "checkpoints").map(|(_, data)| data.clone()).collect();
    let steps: Vec<_> = checkpoints.iter().filter_map(|data| data["step"].as_i64()).collect();
    assert_eq!(steps, [-1, 0, 1, 2, 3]);
    assert!(checkpoints.windows(2).all(|pair| pair[1]["parent_id"] == pair[0]["id"]));

    let (_, progress) = follow(&world, "progress", json!({ "n": 2 })).await;
    let custom: Vec<_> = of(&progress, "custom").map(|(_, data)| data.clone()).collect();
    let payload = |n: i64| json!({ "payload": { "progress": n, "of": 2 } });
    assert_eq!(custom, [payload(1), payload(2)]);

    let input = json!({ "messages": [{ "role": "user", "content": "cats" }] });
    let (_, agent) = follow(&world, "agent", input).await;
    let tools: Vec<_> = of(&agent, "tools").map(|(_, data)| data.clone()).collect();
    assert_eq!(tools.len(), 2, "{tools:?}");
    assert_eq!(tools[0]["tool_name"], "lookup");
    assert_eq!(tools[0]["input"], json!({ "query": "cats" }));
    assert_eq!(tools[1]["event"], "tool-finished");
    assert_eq!(tools[1]["tool_call_id"], tools[0]["tool_call_id"]);
    assert_eq!(tools[1]["output"]["content"], "result for cats");
    let messages = of(&agent, "messages").filter(|(_, data)| data["event"] == "message-start");
    assert_eq!(messages.count(), 2, "the call and the answer");
}

#[tokio::test]
async fn a_graph_inside_has_a_namespace_a_start_and_an_end() {
    let world = World::new().await;
    let (thread, events) = follow(&world, "nested", json!({ "topic": "deep" })).await;
    let words: Vec<String> = of(&events, "lifecycle")
        .map(|(ns, data)| {
            let level = ns[0].as_str().and_then(|level| level.split(':').next());
            format!("{} {}", level.unwrap_or("root"), data["event"].as_str().expect("a word"))
        })
        .collect();
    assert_eq!(words, ["root running", "child started", "child interrupted", "root interrupted"]);
    let asked: Vec<_> = of(&events, "input.requested").collect();
    assert_eq!(asked.len(), 1, "the graph around does not ask again");
    let (ns, question) = asked[0];
    assert_eq!(question["payload"], json!({ "child_question": "deep" }));
    assert_eq!(question["value"], question["payload"]);
    assert!(ns[0].as_str().is_some_and(|level| level.starts_with("child:")));

    // Filters look at namespaces: by prefix, and by depth below it.
    for (params, inside, outside) in [
        (json!({ "channels": ["updates"], "namespaces": [["child"]] }), true, false),
        (json!({ "channels": ["updates"], "namespaces": [[]], "depth": 0 }), false, true),
        (json!({ "channels": ["updates"], "namespaces": [[]], "depth": 1 }), true, true),
    ] {
        let mut live = Live::session(&world, &thread, params.clone()).await;
        let answered = async {
            let answer = json!({ "namespace": ns, "interrupt_id": question["interrupt_id"], "response": "fine" });
            if params["depth"] == 1 {
                command(&world, &thread, "input.respond", answer).await
            } else {
                Json::Null
            }
        };
        answered.await;
        let first = live.next().await.expect("an event");
        let second = if params["depth"] == 1 { live.next().await } else { None };
        let seen: Vec<bool> = [Some(first), second]
            .into_iter()
            .flatten()
            .map(|(_, _, data)| data["params"]["namespace"] == json!([]))
            .collect();
        assert_eq!((seen.contains(&false), seen.contains(&true)), (inside, outside), "{params}");
    }
}

#[tokio::test]
async fn numbers_and_ids_are_the_same_in_every_replay_and_after_a_restart() {
    let dir = Dir::new();
    let file = dir.file("server.db");
    let world = World::on(&file).await;
    let thread = new_id();
    let mut live = Live::session(&world, &thread, all()).await;
    start(&world, &thread, "approval", json!({ "topic": "cats" })).await;
    let mut seen = live.until(is_end).await;
    // The state is told once more after a stop.
    seen.extend(live.next().await);
    let numbers: Vec<u64> = seen.iter().filter_map(|(_, _, data)| data["seq"].as_u64()).collect();
    assert_eq!(numbers, (1..=seen.len() as u64).collect::<Vec<_>>());
    let ids: HashSet<_> = seen.iter().map(|(_, _, data)| data["event_id"].to_string()).collect();
    assert_eq!(ids.len(), seen.len());
    drop((live, world));

    let world = World::on(&file).await;
    let mut live = Live::session(&world, &thread, all()).await;
    for event in &seen {
        assert_eq!(live.next().await.as_ref(), Some(event));
    }
    let middle = seen.len() / 2;
    let since = json!({ "channels": ALL, "since": middle });
    let mut later = Live::session(&world, &thread, since).await;
    assert_eq!(later.next().await.as_ref(), Some(&seen[middle]));

    let asked = of(&seen, "input.requested").next().expect("a question").1["interrupt_id"].clone();
    let answer = json!({ "namespace": [], "interrupt_id": asked, "response": "yes" });
    command(&world, &thread, "input.respond", answer.clone()).await;
    let rest = live.until(is_end).await;
    assert_eq!(rest[0].2["seq"], seen.len() as u64 + 1, "the numbers go on");
    let last = of(&rest, "values").last().expect("a state").1;
    assert_eq!(last["log"], json!(["write", "review", "publish:yes"]));
    let refused = command(&world, &thread, "input.respond", answer).await;
    assert_eq!(refused["error"], "no_such_interrupt", "{refused}");

    // A run that is started through another endpoint is told, too.
    let body = json!({ "assistant_id": "approval", "input": { "topic": "dogs" } });
    world.post(&format!("/threads/{thread}/runs/wait"), body).await;
    let other = live.until(is_end).await;
    assert_eq!(of(&other, "input.requested").count(), 1);
    assert!(of(&other, "tasks").count() > 0);
}

#[tokio::test]
async fn commands_look_at_a_thread_and_go_back_in_it() {
    let world = World::new().await;
    let (thread, events) = follow(&world, "counter", json!({ "count": 10 })).await;
    let state =
        command(&world, &thread, "state.get", json!({ "namespace": [], "keys": ["count"] })).await;
    assert_eq!(state["result"]["values"], json!({ "count": 13 }), "{state}");
    let listed = command(&world, &thread, "state.listCheckpoints", json!({ "limit": 3 })).await;
    let steps: Vec<_> = listed["result"]["checkpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| one["step"].clone())
        .collect();
    assert_eq!(steps, [3, 2, 1]);
    let before_c = of(&events, "checkpoints").nth(3).expect("a checkpoint").1["id"].clone();
    let forked = command(&world, &thread, "state.fork", json!({ "checkpoint_id": before_c })).await;
    let run = forked["result"]["run_id"].as_str().expect("a run").to_owned();
    let result = world.get(&format!("/threads/{thread}/runs/{run}/join")).await.json();
    assert_eq!(result["count"], 13, "only `c` ran again");

    let slow = new_id();
    start(&world, &slow, "slow", json!({ "ticks": 1_000_000, "delay": 0.001 })).await;
    world
        .until(&format!("/threads/{slow}/state"), |state| {
            state["values"]["done"].as_i64() > Some(0)
        })
        .await;
    let tree = command(&world, &slow, "agent.getTree", json!({})).await;
    assert_eq!(tree["result"]["tree"]["status"], "running", "{tree}");
    world
        .post(
            &format!("/threads/{slow}/runs/{}/cancel?wait=1", newest(&world, &slow).await),
            Json::Null,
        )
        .await;
    assert_eq!(command(&world, &slow, "agent.getTree", json!({})).await["error"], "no_such_run");
}

async fn newest(world: &World, thread: &str) -> String {
    let runs = world.get(&format!("/threads/{thread}/runs")).await.json();
    runs[0]["run_id"].as_str().expect("a run").to_owned()
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_a_word_of_the_protocol() {
    let world = World::new().await;
    let thread = world.thread().await;
    let respond = json!({ "namespace": [], "interrupt_id": "0".repeat(32), "response": 1 });
    for (method, params, code) in [
        ("zzz", json!({}), "unknown_command"),
        ("run.start", json!({}), "invalid_argument"),
        ("run.start", json!({ "assistant_id": "nothing" }), "invalid_argument"),
        ("run.start", json!({ "assistant_id": "counter", "config": 1 }), "invalid_argument"),
        ("input.respond", respond, "no_such_run"),
        ("state.get", json!({ "namespace": [] }), "no_such_run"),
        ("input.inject", json!({}), "not_supported"),
        ("subscription.subscribe", json!({ "channels": ["valeus"] }), "invalid_argument"),
        ("agent.getTree", json!({}), "no_such_run"),
    ] {
        let answer = command(&world, &thread, method, params).await;
        assert_eq!(
            (&answer["type"], &answer["error"]),
            (&json!("error"), &json!(code)),
            "{method}: {answer}"
        );
        assert!(answer["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
    let commands = format!("/threads/{thread}/commands");
    for body in [
        "{",
        "[]",
        r#"{"method":"run.start"}"#,
        r#"{"id":1}"#,
        r#"{"id":1,"method":"a","params":1}"#,
    ] {
        let answer = world.send("POST", &commands, &[], body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(answer.json()["error"], "invalid_argument");
    }
    let events = format!("/threads/{thread}/stream/events");
    for body in ["{", "{}", r#"{"channels":[]}"#, r#"{"channels":["valeus"]}"#] {
        let answer = world.send("POST", &events, &[], body).await;
        assert_eq!(answer.status, 400, "{body}");
    }
    assert_eq!(
        world.get(&format!("/threads/{thread}/runs")).await.json(),
        json!([]),
        "nothing was started"
    );
}
