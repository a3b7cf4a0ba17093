//! Shows the rarer ways to make and list threads: with first states, with a time to live, with single values out of each. A
//! client that asks for them gets them or is told why not, and nothing is left half made.

use serde_json::{Value as Json, json};

use crate::world::World;

#[tokio::test]
async fn a_thread_can_begin_with_states() {
    let world = World::new().await;
    let body = json!({
        "metadata": { "graph_id": "counter" },
        "supersteps": [
            { "updates": [{ "as_node": "__start__", "values": { "count": 5, "log": ["x"] } }] },
            { "updates": [{ "as_node": "a", "values": { "count": 1, "log": ["a"] } }] },
            { "updates": [{ "as_node": "b", "command": { "update": { "count": 1, "log": ["b"] } } }] },
        ],
    });
    let made = world.post("/threads", body).await.json();
    assert_eq!(
        (&made["status"], &made["values"]["count"]),
        (&json!("interrupted"), &json!(7)),
        "{made}"
    );
    let thread = made["thread_id"].as_str().expect("a thread");
    let state = world.get(&format!("/threads/{thread}/state")).await.json();
    assert_eq!((&state["next"], &state["metadata"]["source"]), (&json!(["c"]), &json!("update")));
    let run = json!({ "assistant_id": "counter", "input": null });
    let done = world.post(&format!("/threads/{thread}/runs/wait"), run).await.json();
    assert_eq!(done, json!({ "count": 8, "log": ["x", "a", "b", "c"] }));
}

#[tokio::test]
async fn states_that_make_no_sense_make_no_thread() {
    let world = World::new().await;
    let step =
        |node: &str, values: Json| json!([{ "updates": [{ "as_node": node, "values": values }] }]);
    for (status, part, graph, supersteps) in [
        (400, "graph_id", json!(null), step("a", json!({}))),
        (404, "`nope`", json!("nope"), step("a", json!({}))),
        (400, "`zz`", json!("counter"), step("zz", json!({}))),
        (400, "`count`", json!("counter"), step("a", json!({ "count": "x" }))),
        (422, "map", json!("counter"), step("a", json!("text"))),
        (422, "as_node", json!("counter"), json!([{ "updates": [{ "values": {} }] }])),
        (400, "updates", json!("counter"), json!([{ "updates": [] }])),
    ] {
        let body = json!({ "metadata": { "graph_id": graph }, "supersteps": supersteps });
        let refused = world.post("/threads", body.clone()).await;
        assert_eq!(refused.status.as_u16(), status, "{body}: {}", refused.text);
        assert!(refused.text.contains(part), "{body}: {}", refused.text);
    }
    assert_eq!(world.post("/threads/count", json!({})).await.json(), 0);
}

#[tokio::test]
async fn a_thread_says_when_it_expires() {
    let world = World::new().await;
    for ttl in [json!(5), json!({ "ttl": 5, "strategy": "keep_latest" })] {
        let made = world.post("/threads", json!({ "ttl": ttl })).await.json();
        let path = format!("/threads/{}", made["thread_id"].as_str().expect("a thread"));
        let shown = world.get(&format!("{path}?include=ttl")).await.json();
        assert_eq!(shown["ttl"]["ttl_minutes"], 5.0, "{shown}");
        assert!(shown["ttl"]["expires_at"].as_str() > shown["updated_at"].as_str(), "{shown}");
        assert!(world.get(&path).await.json().get("ttl").is_none(), "only if it is asked for");
        let changed = json!({ "ttl": { "ttl": 9, "strategy": "delete" } });
        world.send("PATCH", &path, &[], changed.to_string()).await;
        let shown = world.get(&format!("{path}?include=ttl")).await.json();
        assert_eq!(
            (&shown["ttl"]["strategy"], &shown["ttl"]["ttl_minutes"]),
            (&json!("delete"), &json!(9.0))
        );
    }
    for wrong in
        [json!("5"), json!(-1), json!({ "ttl": "x" }), json!({ "ttl": 1, "strategy": "burn" })]
    {
        let refused = world.post("/threads", json!({ "ttl": wrong })).await;
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.text);
    }
}

#[tokio::test]
async fn single_values_are_taken_out_of_threads() {
    let world = World::new().await;
    let thread = world.thread().await;
    let run = json!({ "assistant_id": "counter", "input": { "count": 10, "log": ["in"] } });
    world.post(&format!("/threads/{thread}/runs/wait"), run).await;
    let asked = json!({
        "extract": { "n": "values.count", "last": "values.log[-1]", "none": "metadata.no.thing" },
        "select": ["thread_id"],
    });
    let found = world.post("/threads/search", asked).await.json();
    let expected =
        json!({ "thread_id": thread, "extracted": { "n": 13, "last": "c", "none": null } });
    assert_eq!(found, json!([expected]));
    let refused = world.post("/threads/search", json!({ "extract": { "s": "status" } })).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    assert!(refused.text.contains("`status`"), "{}", refused.text);
}

#[tokio::test]
async fn an_assistant_is_found_by_a_part_of_its_name_and_deleted_with_its_threads() {
    let world = World::new().await;
    let body = json!({ "graph_id": "counter", "name": "Night Shift" });
    let made = world.post("/assistants", body).await.json();
    let assistant = made["assistant_id"].as_str().expect("an id");
    for (name, count) in [("night", 1), ("SHIFT", 1), ("day", 0)] {
        let found = world.post("/assistants/search", json!({ "name": name })).await.json();
        assert_eq!(found.as_array().map(Vec::len), Some(count), "{name}: {found}");
        assert_eq!(world.post("/assistants/count", json!({ "name": name })).await.json(), count);
    }
    let thread = world.thread().await;
    let run = json!({ "assistant_id": assistant, "input": { "count": 1 } });
    world.post(&format!("/threads/{thread}/runs/wait"), run).await;
    let other = world.thread().await;
    let path = format!("/assistants/{assistant}?delete_threads=true");
    assert_eq!(world.send("DELETE", &path, &[], "").await.status, 204);
    assert_eq!(world.get(&format!("/threads/{thread}")).await.status, 404);
    assert_eq!(world.get(&format!("/threads/{other}")).await.status, 200);
}

/// Without an index for searches by meaning, everything fits equally well.
#[tokio::test]
async fn items_can_be_searched_by_meaning_though_there_is_no_index() {
    let world = World::new().await;
    let item = json!({ "namespace": ["n"], "key": "k", "value": { "a": 1 }, "index": ["a"] });
    assert_eq!(world.send("PUT", "/store/items", &[], item.to_string()).await.status, 204);
    let asked = json!({ "namespace_prefix": ["n"], "query": "anything" });
    let found = world.post("/store/items/search", asked).await.json();
    assert_eq!(
        (&found["items"][0]["key"], &found["items"][0]["score"]),
        (&json!("k"), &json!(null))
    );
}
