//! Shows, for every operation of the OpenAPI document, who gets to it: nobody without a key, each role as the table of
//! operations says, and each tenant to its own objects only. It would break if an operation looked an object up by the id
//! that a client sends, without saying whose it is. Operations are not listed here: a new one is tried like the others.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::{Value as Json, json};
use superstep_server::{Database, KeyRing, Role, Server};

use crate::world::{Answered, Dir, World};

/// Somebody with a key.
struct Who {
    tenant: &'static str,
    role: Role,
    key: String,
}

/// An operation as the document describes it.
struct Row {
    method: String,
    path: String,
    resource: String,
    action: String,
}

async fn people(file: &std::path::Path) -> Vec<Who> {
    let ring = KeyRing::open(&Database::Sqlite(file.to_owned())).await.expect("keys");
    let mut all = Vec::new();
    for tenant in ["", "acme", "bolt"] {
        for role in Role::ALL {
            let name = format!("{tenant} {}", role.as_str());
            let (_, key) = ring.add(&name, tenant, role).await.expect("a key");
            all.push(Who { tenant, role, key });
        }
    }
    all
}

fn rows(document: &Json) -> Vec<Row> {
    let mut rows = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, operation) in methods.as_object().expect("methods") {
            let text = |name: &str| operation[name].as_str().expect("declared").to_owned();
            rows.push(Row {
                method: method.to_uppercase(),
                path: path.clone(),
                resource: operation["tags"][0].as_str().expect("a resource").to_owned(),
                action: text("x-access"),
            });
        }
    }
    rows
}

/// The objects of a tenant, under the names that paths use for their ids.
type Objects = BTreeMap<&'static str, String>;

async fn send(world: &World, key: &str, method: &str, path: &str, body: &Json) -> Answered {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.send(method, path, &[("x-api-key", key)], body).await
}

async fn made(world: &World, key: &str, path: &str, body: Json, id: &str) -> String {
    let made = send(world, key, "POST", path, &body).await;
    assert_eq!(made.status, StatusCode::OK, "{path}: {}", made.text);
    made.json()[id].as_str().expect("an id").to_owned()
}

async fn objects(world: &World, admin: &Who, thread: &str) -> Objects {
    let key = &*admin.key;
    let marked = json!({ "of": admin.tenant });
    let body = json!({ "thread_id": thread, "metadata": marked });
    made(world, key, "/threads", body, "thread_id").await;
    let ask = json!({ "assistant_id": "approval", "input": { "topic": admin.tenant } });
    let run = made(world, key, &format!("/threads/{thread}/runs"), ask, "run_id").await;
    let join = format!("/threads/{thread}/runs/{run}/join");
    let joined = send(world, key, "GET", &join, &Json::Null).await;
    assert_eq!(joined.status, StatusCode::OK);
    let body = json!({ "graph_id": "counter", "metadata": marked });
    let assistant = made(world, key, "/assistants", body, "assistant_id").await;
    let body = json!({ "assistant_id": "counter", "schedule": "0 0 1 1 *", "metadata": marked });
    let cron = made(world, key, "/runs/crons", body, "cron_id").await;
    let item = json!({ "namespace": ["n"], "key": "k", "value": marked });
    let put = send(world, key, "PUT", "/store/items", &item).await;
    assert_eq!(put.status, StatusCode::NO_CONTENT, "{}", put.text);
    let state = send(world, key, "GET", &format!("/threads/{thread}/state"), &Json::Null).await;
    let checkpoint = state.json()["checkpoint_id"].as_str().expect("a checkpoint").to_owned();
    Objects::from([
        ("thread_id", thread.to_owned()),
        ("run_id", run),
        ("assistant_id", assistant),
        ("cron_id", cron),
        ("checkpoint_id", checkpoint),
        ("namespace", "x".to_owned()),
    ])
}

fn place(path: &str, objects: &Objects) -> String {
    let part = |part: &str| {
        let name = part.strip_prefix('{').and_then(|part| part.strip_suffix('}'));
        name.map_or_else(|| part.to_owned(), |name| objects[name].clone())
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// What the role may do, as `docs/guide` says.
fn allows(who: &Who, row: &Row) -> bool {
    match (&*row.action, who.role) {
        ("open" | "read" | "search", _) => true,
        ("operate", role) => role == Role::Admin && who.tenant.is_empty(),
        (_, Role::Viewer) => false,
        (_, Role::User) => row.resource != "Assistants",
        (_, _) => true,
    }
}

/// A body that finds nothing wrong before the objects in the path are looked up, so that it changes as little as it can.
fn body_for(row: &Row) -> Json {
    match (&*row.method, &*row.path) {
        ("GET", _) => Json::Null,
        (_, path) if path.ends_with("/commands") => {
            json!({ "id": 1, "method": "state.get", "params": {} })
        }
        (_, path) if path.ends_with("/stream/events") => json!({ "channels": ["values"] }),
        (_, path) if path.ends_with("/state/checkpoint") => json!({ "checkpoint": {} }),
        (_, path) if path.ends_with("/latest") => json!({ "version": 1 }),
        (_, path) if path.ends_with("/runs/crons") => {
            json!({ "assistant_id": "counter", "schedule": "0 0 1 1 *" })
        }
        ("PATCH", "/runs/crons/{cron_id}") => json!({ "enabled": false }),
        (_, path) if path.contains("/runs") && row.action == "create" => {
            json!({ "assistant_id": "counter", "input": {} })
        }
        _ => json!({}),
    }
}

#[tokio::test]
async fn every_role_and_tenant_gets_to_what_is_declared_and_no_further() {
    let dir = Dir::new();
    let file = dir.file("server.db");
    let people = people(&file).await;
    let world = World::start(Server::new().database(Database::Sqlite(file))).await;
    let document = world.get("/openapi.json").await.json();
    let rows = rows(&document);
    assert!(rows.len() > 60, "the document lists operations");
    // All tenants use the same id for their thread.
    let shared = uuid::Uuid::new_v4().to_string();
    let mut own: BTreeMap<&str, Objects> = BTreeMap::new();
    for admin in people.iter().filter(|who| who.role == Role::Admin) {
        own.insert(admin.tenant, objects(&world, admin, &shared).await);
    }
    let mut tried = 0;
    for row in &rows {
        let path = place(&row.path, &own["acme"]);
        // A stream that never ends is judged by its head.
        for headers in [vec![], vec![("x-api-key", "superstep_0_0")]] {
            let answer = world.open(&row.method, &path, &headers, "").await;
            let refused = answer.status() == StatusCode::UNAUTHORIZED;
            assert_eq!(refused, row.action != "open", "{} {path} without a key", row.method);
            tried += 1;
        }
        for who in &people {
            // Bodies are not JSON, so nothing is done: only whether they are read is seen.
            let refused_by_form = world
                .open(&row.method, &path, &[("x-api-key", &who.key)], "not json")
                .await
                .status();
            let forbidden = refused_by_form == StatusCode::FORBIDDEN;
            let what =
                format!("{} {} as {} of `{}`", row.method, row.path, who.role.as_str(), who.tenant);
            assert_eq!(forbidden, !allows(who, row), "{what}: {refused_by_form}");
            assert_ne!(refused_by_form, StatusCode::UNAUTHORIZED, "{what}");
            tried += 1;
        }
    }

    // Ids of another tenant's objects are those of no object. The thread has an id that all use, so it is tried with one that
    // only one tenant uses.
    let acme = people.iter().find(|who| who.tenant == "acme" && who.role == Role::Admin);
    let alone = uuid::Uuid::new_v4().to_string();
    let mut foreign = objects(&world, acme.expect("an admin"), &alone).await;
    let before = everything(&world, &people).await;
    for row in rows.iter().filter(|row| row.path.contains("_id}")) {
        for who in people.iter().filter(|who| who.tenant != "acme" && who.role == Role::Admin) {
            let path = place(&row.path, &foreign);
            let key = [("x-api-key", &*who.key)];
            let body = body_for(row).to_string();
            let answer = world.open(&row.method, &path, &key, body).await;
            let status = answer.status().as_u16();
            let what = format!("{} {} as `{}`", row.method, row.path, who.tenant);
            let told = match (status, &*row.path) {
                // The thread protocol refuses in the body, and has streams of threads that are not there yet.
                (200, path) if path.ends_with("/commands") => {
                    let bytes = axum::body::to_bytes(answer.into_body(), 1 << 20).await;
                    let text = String::from_utf8_lossy(&bytes.expect("a body")).into_owned();
                    text.contains("no_such_run")
                }
                (200 | 426, path) if path.ends_with("/stream/events") => true,
                (status, _) => status == 404 || status == 400 && row.method == "GET",
            };
            assert!(told, "{what}: {status}");
            tried += 1;
        }
    }
    assert_eq!(everything(&world, &people).await, before, "nothing was changed, seen or counted");

    // One run of another tenant on a thread id that the caller has, too.
    foreign.insert("thread_id", shared.clone());
    foreign.insert("run_id", own["acme"]["run_id"].clone());
    for row in rows.iter().filter(|row| row.path.contains("{run_id}")) {
        for who in people.iter().filter(|who| who.tenant != "acme" && who.role == Role::Admin) {
            let path = place(&row.path, &foreign);
            let answer = send(&world, &who.key, &row.method, &path, &Json::Null).await;
            assert_eq!(
                answer.status,
                StatusCode::NOT_FOUND,
                "{} {path}: {}",
                row.method,
                answer.text
            );
            tried += 1;
        }
    }
    println!("{} operations, {tried} requests", rows.len());
}

/// What each tenant sees when it lists and counts.
async fn everything(world: &World, people: &[Who]) -> BTreeMap<&'static str, String> {
    let mut seen = BTreeMap::new();
    for who in people.iter().filter(|who| who.role == Role::Viewer) {
        let mut text = String::new();
        for path in [
            "/threads/search",
            "/threads/count",
            "/assistants/search",
            "/assistants/count",
            "/runs/crons/search",
            "/runs/crons/count",
            "/store/items/search",
            "/store/namespaces",
            "/inbox/search",
        ] {
            let body = if path.starts_with("/store") { json!({}) } else { json!({ "limit": 100 }) };
            let found = send(world, &who.key, "POST", path, &body).await;
            assert_eq!(found.status, StatusCode::OK, "{path}: {}", found.text);
            text.push_str(&found.text);
            text.push('\n');
        }
        for other in ["", "acme", "bolt"] {
            let marked = text.contains(&format!(r#""of":"{other}""#));
            assert_eq!(marked, other == who.tenant, "`{}` sees what is of `{other}`", who.tenant);
            let keyed = !other.is_empty() && text.contains(&format!("{other}:"));
            assert!(!keyed, "`{}` sees a key: {text}", who.tenant);
        }
        seen.insert(who.tenant, text);
    }
    seen
}

#[tokio::test]
async fn who_cancels_all_runs_cancels_their_own() {
    let dir = Dir::new();
    let file = dir.file("server.db");
    let people = people(&file).await;
    let world = World::start(Server::new().database(Database::Sqlite(file))).await;
    let admin = |tenant| people.iter().find(|who| who.tenant == tenant && who.role == Role::User);
    let (acme, bolt) = (admin("acme").expect("a user"), admin("bolt").expect("a user"));
    let slow = json!({ "assistant_id": "slow", "input": { "ticks": 1_000_000, "delay": 0.01 } });
    let mut runs = Vec::new();
    for who in [acme, bolt] {
        let thread = made(&world, &who.key, "/threads", json!({}), "thread_id").await;
        let path = format!("/threads/{thread}/runs");
        let run = made(&world, &who.key, &path, slow.clone(), "run_id").await;
        runs.push(format!("{path}/{run}"));
    }
    let all = send(&world, &bolt.key, "POST", "/runs/cancel", &json!({ "status": "all" })).await;
    assert_eq!(all.status, StatusCode::NO_CONTENT, "{}", all.text);
    let ended = send(&world, &bolt.key, "GET", &format!("{}/join", runs[1]), &Json::Null).await;
    assert_eq!(ended.status, StatusCode::OK);
    let other = send(&world, &acme.key, "GET", &runs[0], &Json::Null).await.json();
    assert!(other["status"] == "pending" || other["status"] == "running", "{other}");
}
