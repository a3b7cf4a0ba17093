//! LangGraph's own store finds what we put, and we find what it put, in one file.
//!
//! Needs a Python that has `langgraph-checkpoint-sqlite`, named by `SUPERSTEP_TEST_PYTHON`. Without it nothing is tested, and
//! the output says so.

mod world;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value as Json, json};
use superstep_checkpoint::{Comparison, NamespaceQuery, PutItem, Search, Store};
use superstep_sqlite::SqliteStore;
use world::Dir;

fn python(task: &str, file: &Path) -> Option<Json> {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/store.py");
    let output = Command::new(python).arg(script).arg(task).arg(file).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// What `store.py` prints, as we see it.
async fn dump(store: &SqliteStore) -> Json {
    let none: [&str; 0] = [];
    let found = store.search(Search::below(none).limit(1000).refresh(false)).await.expect("found");
    let mut items: Vec<Json> = found
        .into_iter()
        .map(|item| json!([item.namespace, item.key, Json::from(item.value)]))
        .collect();
    items.sort_by_key(ToString::to_string);
    let more = Search::below(["users"]).compare("n", Comparison::Greater, 10).refresh(false);
    let more = store.search(more).await.expect("found").len();
    let spaces = store.namespaces(NamespaceQuery::default()).await.expect("listed");
    json!({"items": items, "more": more, "spaces": spaces})
}

fn same(mut ours: Json, mut theirs: Json) {
    for list in [&mut ours, &mut theirs] {
        let items = list["items"].as_array_mut().expect("a list");
        assert!(!items.is_empty(), "nothing was compared");
        items.sort_by_key(ToString::to_string);
    }
    assert_eq!(ours, theirs);
}

#[tokio::test]
async fn items_of_either_are_found_by_both() {
    let dir = Dir::new();
    let Some(theirs) = python("write", &dir.file()) else { return };
    let store = SqliteStore::open(dir.file()).await.expect("a file of LangGraph");
    same(dump(&store).await, theirs);
    let at = vec!["users".to_owned(), "zoe".to_owned()];
    let value = json!({"n": 70, "text": "Zo\u{eb}", "deep": {"a": [1, {"b": null}]}});
    store.put(&at, "likes", value.into()).await.expect("put");
    let short = PutItem::new(&at, "short", superstep_checkpoint::Value::from(json!({"n": 1})));
    store.put_item(short.ttl(Duration::from_secs(90))).await.expect("put");
    store.delete(&["users".to_owned()], "count").await.expect("deleted");
    same(dump(&store).await, python("dump", &dir.file()).expect("Python"));
}
