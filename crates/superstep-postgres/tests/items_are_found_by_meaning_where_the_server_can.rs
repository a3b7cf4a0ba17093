//! Vectors are kept by an extension of the server. Where it is missing, is not allowed, or keeps other vectors, asking
//! for an index is an error that says what to do; where it is there, both engines use the same table.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use std::convert::Infallible;
use std::process::Command;

use common::Database;
use superstep_checkpoint::{Search, Store, Value, VectorIndex};
use superstep_postgres::PostgresStore;

/// A text of numbers means the point it names.
fn index(dims: usize) -> VectorIndex {
    let point = move |text: &String| {
        let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(0.0));
        (0..dims).map(|_| numbers.next().unwrap_or(0.0)).collect()
    };
    let embed = move |texts: Vec<String>| async move {
        Ok::<_, Infallible>(texts.iter().map(point).collect::<Vec<Vec<f32>>>())
    };
    VectorIndex::new(dims, embed).fields(["at"])
}

fn at(place: &str) -> Value {
    serde_json::json!({ "at": place }).into()
}

#[tokio::test]
async fn a_server_without_the_extension_says_what_to_install() {
    let database = Database::new().await;
    let client = database.client().await;
    // The list of what is installed, as a server without the extension gives it.
    let bare = "CREATE SCHEMA bare;
        CREATE VIEW bare.pg_available_extensions AS
            SELECT * FROM pg_catalog.pg_available_extensions WHERE name <> 'vector'";
    client.batch_execute(bare).await.unwrap();
    let url = format!("{}?options=-csearch_path%3Dbare%2Cpg_catalog", database.url());
    let store = PostgresStore::connect(url).await.unwrap();
    let error = store.clone().with_index(index(2)).await.unwrap_err().to_string();
    assert!(error.contains("`vector` (pgvector)") && error.contains("-pgvector`"), "{error}");
    // Everything else works as before.
    store.put(&["n".into()], "k", at("1 0")).await.unwrap();
    let error = store.search(Search::below(["n"]).query("1 0")).await.unwrap_err().to_string();
    assert!(error.contains("`with_index`"), "{error}");
}

#[tokio::test]
async fn vectors_of_another_length_are_refused_and_named() {
    let database = Database::new().await;
    if !database.has_vectors().await {
        return;
    }
    let store = PostgresStore::connect(database.url()).await.unwrap();
    store.clone().with_index(index(2)).await.unwrap();
    let error = store.with_index(index(3)).await.unwrap_err().to_string();
    assert!(error.contains("`vector(2)`") && error.contains("3 numbers"), "{error}");
}

#[tokio::test]
async fn many_numbers_make_a_vector_too() {
    let database = Database::new().await;
    if !database.has_vectors().await {
        return;
    }
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let store = store.with_index(index(3000)).await.unwrap();
    store.put(&["n".into()], "k", at("1 0")).await.unwrap();
    assert_eq!(store.search(Search::below(["n"]).query("1 0")).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_store_without_an_index_leaves_no_vectors_of_what_was_there_before() {
    let database = Database::new().await;
    if !database.has_vectors().await {
        return;
    }
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let indexed = store.with_index(index(2)).await.unwrap();
    indexed.put(&["n".into()], "k", at("1 0")).await.unwrap();
    let plain = PostgresStore::connect(database.url()).await.unwrap();
    plain.put(&["n".into()], "k", at("0 1")).await.unwrap();
    assert!(indexed.search(Search::below(["n"]).query("1 0")).await.unwrap().is_empty());
}

/// Needs `SUPERSTEP_TEST_PYTHON`.
#[tokio::test]
async fn both_engines_find_the_same_by_meaning() {
    let database = Database::new().await;
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return;
    };
    if !database.has_vectors().await {
        return;
    }
    let store = PostgresStore::connect(database.url()).await.unwrap();
    let store = store.with_index(index(2)).await.unwrap();
    for (key, place) in [("north", "0 1"), ("east", "1 0"), ("north-east", "1 1")] {
        store.put(&["n".into()], key, at(place)).await.unwrap();
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/meaning.py");
    let output = Command::new(python).arg(script).arg(database.url()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Python failed:\n{said}");
    let theirs: Vec<(String, f64)> = serde_json::from_slice(&output.stdout).unwrap();
    let ours = store.search(Search::below(["n"]).query("0 2")).await.unwrap();
    let keys: Vec<&str> = ours.iter().map(|item| &*item.key).collect();
    // The last one was put by LangGraph.
    assert_eq!(keys, ["north", "north-east", "east", "south"]);
    assert_eq!(theirs.iter().map(|(key, _)| &**key).collect::<Vec<_>>(), keys);
    for (item, (_, score)) in ours.iter().zip(&theirs) {
        assert!((item.score.unwrap() - score).abs() < 1e-6, "{item:?} {score}");
    }
}
