//! Shows that a thread lives as long as it was asked to after it was last used. Time is an argument.

use serde_json::Map;

use super::*;
use crate::demo;
use crate::server::Server;
use crate::store::Ttl;

const MINUTE: i64 = 60_000_000;

fn thread(id: &str, minutes: Option<f64>, on_expiry: OnExpiry, used: Micros) -> Thread {
    let ttl = minutes.map(|minutes| Ttl { minutes, on_expiry, done_at: None });
    Thread { ttl, ..Thread::new(id.to_owned(), Map::new(), used) }
}

#[tokio::test]
async fn a_thread_expires_some_time_after_it_was_last_used() {
    let graphs = demo::graphs().expect("the demo's graphs");
    let server =
        graphs.into_iter().fold(Server::new(), |server, (name, graph)| server.graph(name, graph));
    let running = server.start().await.expect("a server");
    let app = running.app();
    let used = Micros::now();
    let later = |minutes: i64| Micros(used.0 + minutes * MINUTE);
    assert!(!expire(app, later(60)).await.expect("an answer"), "nothing will expire");
    for made in [
        thread("forever", None, OnExpiry::Delete, used),
        thread("short", Some(5.0), OnExpiry::Delete, used),
        thread("long", Some(50.0), OnExpiry::Delete, used),
        thread("pruned", Some(5.0), OnExpiry::KeepLatest, used),
        Thread { status: ThreadStatus::Busy, ..thread("busy", Some(5.0), OnExpiry::Delete, used) },
    ] {
        app.store.create_thread(made).await.expect("an answer").expect("it is new");
    }
    let left = async || {
        let query = ListQuery { sort_by: "thread_id", descending: false, ..ListQuery::default() };
        let page = app.store.threads(query).await.expect("an answer");
        page.rows.into_iter().map(|thread| thread.thread_id).collect::<Vec<_>>()
    };
    assert!(expire(app, later(4)).await.expect("an answer"), "some will expire");
    assert_eq!(left().await, ["busy", "forever", "long", "pruned", "short"]);
    expire(app, later(6)).await.expect("an answer");
    assert_eq!(left().await, ["busy", "forever", "long", "pruned"]);
    let pruned = app.store.thread("pruned").await.expect("an answer").expect("it is there");
    assert_eq!(pruned.ttl.and_then(|ttl| ttl.done_at), Some(used), "it is not pruned again");
    expire(app, later(51)).await.expect("an answer");
    assert_eq!(left().await, ["busy", "forever", "pruned"]);
}
