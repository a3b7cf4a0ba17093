//! Shows that a key lets in under its name, tenant and role, that it is not in the database as it is, and that it stops at once
//! when it is revoked, also by another process.

use axum::http::StatusCode;
use serde_json::json;
use superstep_server::{Database, KeyRing, Role, Server};

use crate::world::{Dir, World};

#[tokio::test]
async fn and_works_no_more_from_then_on() {
    let dir = Dir::new();
    let file = dir.file("server.db");
    let database = Database::Sqlite(file.clone());
    let ring = KeyRing::open(&database).await.expect("keys");
    let (info, key) = ring.add("ci", "acme", Role::Viewer).await.expect("a key");
    assert!(key.contains(&info.id) && info.revoked_at.is_none());
    let taken = ring.add("ci", "", Role::Admin).await.expect_err("the name is taken");
    assert!(taken.to_string().contains("`ci`"), "{taken}");
    for tenant in ["a b", "a:b", "ä"] {
        assert!(ring.add("x", tenant, Role::User).await.is_err(), "{tenant}");
    }
    let world = World::start(Server::new().database(database.clone())).await;
    let look =
        async || world.send("POST", "/threads/search", &[("x-api-key", &*key)], "{}").await.status;
    assert_eq!(look().await, StatusCode::OK);
    let made = world.send("POST", "/threads", &[("x-api-key", &*key)], "{}").await;
    assert_eq!(made.status, StatusCode::FORBIDDEN);
    assert!(made.text.contains("`viewer`"), "{}", made.text);
    let wrong = format!("{}0", &key[..key.len() - 1]);
    let wrong = if wrong == key { format!("{}1", &key[..key.len() - 1]) } else { wrong };
    let refused = world.send("POST", "/threads/search", &[("x-api-key", &*wrong)], "{}").await;
    assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
    let secret = key.rsplit('_').next().expect("a secret");
    for entry in std::fs::read_dir(file.parent().expect("a directory")).expect("files") {
        let bytes = std::fs::read(entry.expect("a file").path()).expect("bytes");
        let found = bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
        assert!(!found, "the key itself is not kept");
    }

    // As another process does it.
    let other = KeyRing::open(&database).await.expect("keys");
    assert_eq!(other.revoke("ci").await.expect("revoked").name, "ci");
    assert_eq!(look().await, StatusCode::UNAUTHORIZED);
    assert!(other.revoke("ci").await.is_err(), "it is revoked already");
    let listed = other.list().await.expect("a list");
    assert!(listed.len() == 1 && listed[0].revoked_at.is_some());
    // A server whose last key was revoked is not open to everybody.
    drop(world);
    let world = World::start(Server::new().database(database)).await;
    assert_eq!(world.post("/threads", json!({})).await.status, StatusCode::UNAUTHORIZED);
    ring.add("ci", "", Role::User).await.expect("the name is free again");
}
