//! Shows that an `Auth` of one's own decides who somebody is and which objects they see, also within a tenant: what its filter
//! does not match looks missing everywhere, and what somebody makes matches it. It would break if one way to a thread, by its
//! id, by a run, by a list or by the inbox, forgot the filter.

use axum::http::StatusCode;
use serde_json::{Value as Json, json};
use superstep_server::{
    Access, Action, Auth, Denied, Filter, Identity, Parts, Resource, Role, Server, by_role,
};

use crate::world::{Answered, World};

/// Everybody sees their own; nobody may delete.
struct Proxy;

impl Auth for Proxy {
    async fn authenticate(&self, request: &Parts) -> Result<Identity, Denied> {
        match request.headers.get("x-user").and_then(|user| user.to_str().ok()) {
            Some("down") => Err(Denied::Unavailable("later".to_owned())),
            Some("odd") => Ok(Identity::new("odd").tenant("a:b")),
            Some(user) => Ok(Identity::new(user).role(Role::Admin)),
            None => Err(Denied::Unauthenticated("who are you?".to_owned())),
        }
    }

    async fn authorise(&self, who: &Identity, access: Access) -> Result<Filter, Denied> {
        let all = by_role(who, access)?;
        match (access.resource, access.action) {
            (_, Action::Delete) => Err(Denied::Forbidden("nobody deletes".to_owned())),
            (Resource::System, _) => Ok(all),
            (Resource::Store, _) if who.id != "filtered" => Ok(all),
            _ => Ok(all.and("owner", who.id.as_str())),
        }
    }
}

async fn send(world: &World, user: &str, method: &str, path: &str, body: Json) -> Answered {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.send(method, path, &[("x-user", user)], body).await
}

#[tokio::test]
async fn wherever_it_is_looked_for() {
    let world = World::start(Server::new().auth(Proxy)).await;
    let ada = async |path: &str, body: Json| {
        let made = send(&world, "ada", "POST", path, body).await;
        assert_eq!(made.status, StatusCode::OK, "{path}: {}", made.text);
        made.json()
    };
    let id = |made: &Json, name: &str| made[name].as_str().expect("an id").to_owned();
    let thread = ada("/threads", json!({ "metadata": { "owner": "bob" } })).await;
    assert_eq!(thread["metadata"]["owner"], "ada", "nobody makes objects for others");
    let thread = id(&thread, "thread_id");
    let ask = json!({ "assistant_id": "approval", "input": { "topic": "x" } });
    ada(&format!("/threads/{thread}/runs/wait"), ask.clone()).await;
    let runs = send(&world, "ada", "GET", &format!("/threads/{thread}/runs"), Json::Null).await;
    let run = id(&runs.json()[0], "run_id");
    let assistant = id(&ada("/assistants", json!({ "graph_id": "chat" })).await, "assistant_id");
    let cron = json!({ "assistant_id": "counter", "schedule": "0 0 1 1 *" });
    let cron = id(&ada("/runs/crons", cron).await, "cron_id");
    let kept = json!({ "assistant_id": "approval", "input": {}, "on_completion": "keep" });
    let alone = id(&ada("/runs", kept).await, "run_id");
    let count = json!({ "assistant_id": "counter", "input": {}, "if_not_exists": "create" });
    for (method, path, body) in [
        ("GET", format!("/threads/{thread}"), Json::Null),
        ("PATCH", format!("/threads/{thread}"), json!({ "metadata": { "owner": "bob" } })),
        ("GET", format!("/threads/{thread}/state"), Json::Null),
        ("POST", format!("/threads/{thread}/state"), json!({ "values": {} })),
        ("POST", format!("/threads/{thread}/history"), json!({})),
        ("POST", format!("/threads/{thread}/copy"), Json::Null),
        ("GET", format!("/threads/{thread}/answers"), Json::Null),
        ("GET", format!("/threads/{thread}/stream"), Json::Null),
        ("POST", format!("/threads/{thread}/stream/events"), json!({ "channels": ["values"] })),
        ("GET", format!("/threads/{thread}/runs"), Json::Null),
        ("POST", format!("/threads/{thread}/runs"), count.clone()),
        ("POST", format!("/threads/{thread}/runs/wait"), count.clone()),
        ("POST", format!("/threads/{thread}/runs/stream"), count),
        (
            "POST",
            format!("/threads/{thread}/runs/crons"),
            json!({ "assistant_id": "counter", "schedule": "0 0 1 1 *" }),
        ),
        ("GET", format!("/threads/{thread}/runs/{run}"), Json::Null),
        ("GET", format!("/threads/{thread}/runs/{run}/join"), Json::Null),
        ("GET", format!("/threads/{thread}/runs/{run}/stream"), Json::Null),
        ("POST", format!("/threads/{thread}/runs/{run}/cancel"), Json::Null),
        ("POST", "/runs/cancel".to_owned(), json!({ "thread_id": thread, "run_ids": [run] })),
        ("GET", format!("/runs/{alone}/join"), Json::Null),
        ("GET", format!("/runs/{alone}/stream"), Json::Null),
        ("GET", format!("/assistants/{assistant}"), Json::Null),
        ("PATCH", format!("/assistants/{assistant}"), json!({ "name": "mine" })),
        ("POST", format!("/assistants/{assistant}/versions"), json!({})),
        ("POST", format!("/assistants/{assistant}/latest"), json!({ "version": 1 })),
        ("POST", "/runs/wait".to_owned(), json!({ "assistant_id": assistant, "input": {} })),
        ("GET", format!("/runs/crons/{cron}"), Json::Null),
        ("PATCH", format!("/runs/crons/{cron}"), json!({ "enabled": false })),
    ] {
        let answer = send(&world, "bob", method, &path, body).await;
        assert_eq!(answer.status, StatusCode::NOT_FOUND, "{method} {path}: {}", answer.text);
    }
    let command =
        json!({ "id": 1, "method": "run.start", "params": { "assistant_id": "counter" } });
    let path = format!("/threads/{thread}/commands");
    let told = send(&world, "bob", "POST", &path, command).await;
    assert_eq!(told.json()["type"], "error", "{}", told.text);
    let all = send(&world, "bob", "POST", "/runs/cancel", json!({ "status": "all" })).await;
    assert_eq!(all.status, StatusCode::FORBIDDEN, "{}", all.text);

    for (path, own) in [("/threads/count", 2), ("/assistants/count", 1), ("/runs/crons/count", 1)] {
        for (user, expected) in [("ada", own), ("bob", 0)] {
            for body in [json!({}), json!({ "metadata": { "owner": "ada" } })] {
                let counted = send(&world, user, "POST", path, body).await;
                assert_eq!(counted.json(), expected, "{user} {path}: {}", counted.text);
            }
        }
    }
    for path in ["/threads/search", "/assistants/search", "/runs/crons/search", "/inbox/search"] {
        let found = send(&world, "bob", "POST", path, json!({})).await;
        assert!(!found.text.contains("ada"), "{path}: {}", found.text);
    }
    let inbox = send(&world, "ada", "POST", "/inbox/search", json!({})).await.json();
    assert!(inbox["questions"].as_array().is_some_and(|all| !all.is_empty()), "{inbox}");
    let kept = send(&world, "ada", "GET", &format!("/threads/{thread}"), Json::Null).await.json();
    assert_eq!(kept["metadata"]["owner"], "ada");
    let path = format!("/threads/{thread}");
    let patch = json!({ "metadata": { "owner": "bob", "x": 1 } });
    let patched = send(&world, "ada", "PATCH", &path, patch).await.json();
    assert_eq!(
        (&patched["metadata"]["owner"], &patched["metadata"]["x"]),
        (&json!("ada"), &json!(1))
    );
}

#[tokio::test]
async fn and_refusals_say_why() {
    let world = World::start(Server::new().auth(Proxy)).await;
    let id = uuid::Uuid::new_v4();
    let item = json!({ "namespace": ["n"], "key": "k", "value": {} });
    for (user, method, path, body, status) in [
        ("down", "POST", "/threads/search".to_owned(), json!({}), 503),
        ("odd", "POST", "/threads/search".to_owned(), json!({}), 403),
        ("ada", "DELETE", format!("/threads/{id}"), Json::Null, 403),
        ("filtered", "PUT", "/store/items".to_owned(), item.clone(), 403),
        ("ada", "PUT", "/store/items".to_owned(), item, 204),
        ("down", "GET", "/ok".to_owned(), Json::Null, 200),
    ] {
        let answer = send(&world, user, method, &path, body).await;
        assert_eq!(answer.status, status, "{user} {method} {path}: {}", answer.text);
    }
    let nobody = world.get("/threads/x").await;
    assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
    assert!(nobody.text.contains("who are you?"), "{}", nobody.text);
}
