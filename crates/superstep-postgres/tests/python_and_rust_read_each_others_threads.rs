//! Both engines use one database, so each must read exactly what the other one wrote: every value, version, write and
//! piece of metadata, in both directions.
//!
//! Runs only where `SUPERSTEP_TEST_PYTHON` names a Python with `langgraph`, `langgraph-checkpoint-postgres` and
//! `psycopg[binary]`.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use std::process::Command;

use common::{Database, Line, blob};
use serde_json::{Value as Json, json};
use superstep_checkpoint::{
    Blob, Checkpointer, Comparison, Query, Search, SharedMap, Store, Stored, Tag, TaskId,
    TaskWrites, Value, Version, wire,
};
use superstep_postgres::PostgresStore;

fn python(args: &[&str]) -> Option<Vec<Json>> {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!(
            "NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python with `langgraph`, `langgraph-checkpoint-postgres` and \
             `psycopg[binary]`"
        );
        return None;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/interplay.py");
    let output = Command::new(python).arg(script).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Python failed:\n{said}");
    let lines = String::from_utf8(output.stdout).unwrap();
    Some(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn typed(blob: &Blob) -> Json {
    let hex: String = blob.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    json!([blob.tag().as_str(), hex])
}

fn versions(map: &SharedMap<Version>) -> Json {
    map.iter().map(|(name, version)| (name.to_string(), Json::from(version.as_str()))).collect()
}

/// A checkpoint in the form the script prints.
fn shown(stored: &Stored) -> Json {
    let checkpoint = &stored.checkpoint;
    let values = checkpoint.channel_values.iter();
    let values: Json = values.map(|(name, value)| (name.to_string(), typed(value))).collect();
    let seen = checkpoint.versions_seen.iter();
    let seen: Json = seen.map(|(node, seen)| (node.to_string(), versions(seen))).collect();
    let writes = stored.writes.iter().map(|write| {
        let Json::Array(value) = typed(&write.value) else { unreachable!() };
        let mut line = vec![json!(write.task.to_string()), json!(&*write.channel)];
        line.extend(value);
        Json::from(line)
    });
    let updated = checkpoint.updated_channels.as_ref();
    json!({
        "id": checkpoint.id.to_string(),
        "ns": &*stored.ns,
        "parent": stored.parent.map(|id| id.to_string()),
        "values": values,
        "versions": versions(&checkpoint.channel_versions),
        "seen": seen,
        "updated": updated.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>()),
        "metadata": Json::from(Value::Map(wire::metadata_to_map(&stored.metadata))),
        "writes": writes.collect::<Vec<_>>(),
    })
}

fn assert_same(rust: &[Stored], python: &[Json]) {
    assert_eq!(rust.len(), python.len());
    for (rust, python) in rust.iter().zip(python) {
        let rust = shown(rust);
        for key in
            ["id", "ns", "parent", "values", "versions", "seen", "updated", "metadata", "writes"]
        {
            assert_eq!(rust[key], python[key], "`{key}` of checkpoint {}", rust["id"]);
        }
    }
}

fn thread(name: &str) -> Query {
    Query { thread: Some(name.into()), ..Query::default() }
}

#[tokio::test]
async fn rust_reads_what_python_wrote() {
    let database = Database::new().await;
    let Some(python) = python(&["write", &database.url()]) else { return };
    let checkpointer = database.checkpointer().await;
    let found = checkpointer.list(thread("py")).await.unwrap();
    assert!(found.len() > 5);
    assert_same(&found, &python);
    let filtered = Query { filter: [("user".to_owned(), "ada".into())].into(), ..thread("py") };
    assert_eq!(checkpointer.list(filtered).await.unwrap().len(), found.len());
}

#[tokio::test]
async fn python_reads_what_rust_wrote() {
    let database = Database::new().await;
    let checkpointer = database.checkpointer().await;
    let mut line = Line::new("rs");
    let values = [
        ("list", blob(["a", "b"])),
        ("null", Blob::null()),
        ("flag", blob(true)),
        ("great", blob(u64::MAX)),
        ("tenth", blob(0.1)),
        ("whole float", blob(3.0)),
        ("minus zero", blob(-0.0)),
        ("nan", blob(f64::NAN)),
        ("1e22", blob(1e22)),
        ("text", blob("Grüße \u{1F600}")),
        ("nul", blob("a\0b")),
        ("long", blob("x".repeat(5000))),
        ("raw", Blob::new(Tag::Bytes, [0, 255])),
        ("snapshot", Blob::new(Tag::Msgpack, [0xc7, 3, 7, 0x92, 1, 2])),
    ];
    let mut first = line.then(&values);
    first.metadata.extra.insert("user".to_owned(), "ada".into());
    first
        .checkpoint
        .versions_seen
        .insert_mut("node".into(), [("list".into(), Version::after(1, 5))].into_iter().collect());
    first.checkpoint.updated_channels = Some(vec!["list".into()]);
    checkpointer.put(first).await.unwrap();
    let mut second = line.then(&[("list", blob(["c"]))]);
    let task = TaskId::from_bytes([3; 16]);
    let writes = vec![("list".into(), blob(["c"])), ("none".into(), Blob::null())];
    second.writes = vec![TaskWrites::new(task, "~__pregel_pull, node", writes)];
    checkpointer.put(second.clone()).await.unwrap();
    let question = vec![("__interrupt__".into(), blob(["?"]))];
    let question = vec![TaskWrites::new(task, "~__pregel_pull, node", question)];
    checkpointer.put_writes("rs", "", second.checkpoint.id, question).await.unwrap();

    let Some(python) = python(&["dump", &database.url(), "rs"]) else { return };
    assert_same(&checkpointer.list(thread("rs")).await.unwrap(), &python);
}

#[tokio::test]
async fn python_and_rust_share_a_store() {
    let database = Database::new().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let at = ["users".to_owned(), "ann".to_owned()];
    let value = json!({"n": 1, "f": 1.5, "text": "Grüße", "list": [true, null]});
    store.put(&at, "rust", value.clone().into()).await.unwrap();
    let Some(python) = python(&["store", &database.url()]) else { return };
    let ours = json!({"ns": at, "key": "rust", "value": value});
    assert_eq!(python.len(), 2);
    assert!(python.contains(&ours), "{python:?}");

    let found = store.search(Search::below(["users"]).compare("n", Comparison::Greater, 1)).await;
    let found = found.unwrap();
    assert_eq!((found.len(), &*found[0].key), (1, "python"));
    let theirs = json!({"n": 2, "f": 0.5, "deep": {"list": [1, "é", null]}});
    assert_eq!(found[0].value, Value::from(theirs));
    // Python's `setup` found nothing to do, and opening the tables again does not either.
    PostgresStore::connect(database.url()).await.unwrap();
}
