//! The cases every store is held to, on a file of its own, in the file of a checkpointer, and in memory. Instead of waiting, the
//! times at which items end are moved.

mod world;

use std::path::{Path, PathBuf};
use std::time::Duration;

use superstep_checkpoint::{AnyStore, VectorIndex};
use superstep_contract::{Report, stores};
use superstep_sqlite::{SqliteSaver, SqliteStore};
use world::Dir;

/// Moves the end of every item nearer.
async fn pass(file: PathBuf, time: Duration) {
    let db = rusqlite::Connection::open(file).expect("the file");
    let sql = "UPDATE store SET expires_at = strftime('%Y-%m-%d %H:%M:%f', expires_at, ?1) \
               WHERE expires_at IS NOT NULL";
    db.busy_timeout(Duration::from_secs(10)).expect("set");
    db.execute(sql, [format!("-{} seconds", time.as_secs())]).expect("moved");
}

fn subject(file: &Path, store: SqliteStore, other: SqliteStore) -> stores::Subject {
    let (file, indexed) = (file.to_owned(), store.clone());
    stores::Subject::new(AnyStore::new(store), AnyStore::new(other))
        .passing(move |time| pass(file.clone(), time))
        .indexed(move |index: VectorIndex| {
            let store = indexed.clone();
            async move { AnyStore::new(store.with_index(index).await.expect("a table of vectors")) }
        })
}

fn passed_all(report: &Report) {
    report.assert_passed();
    assert_eq!(report.passed(), report.cases.len(), "{report}");
}

#[tokio::test]
async fn the_sqlite_store_keeps_every_promise() {
    let dirs = std::sync::Mutex::new(Vec::new());
    let report = stores::run(|| async {
        let dir = Dir::new();
        let store = SqliteStore::open(dir.file()).await.expect("a file");
        let other = SqliteStore::open(dir.file()).await.expect("the same file");
        let subject = subject(&dir.file(), store, other);
        dirs.lock().expect("the list").push(dir);
        subject
    })
    .await;
    passed_all(&report);
}

#[tokio::test]
async fn a_store_and_a_checkpointer_share_a_file() {
    let dirs = std::sync::Mutex::new(Vec::new());
    let report = stores::run(|| async {
        let dir = Dir::new();
        let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
        let store = checkpointer.store().await.expect("tables");
        let other = SqliteStore::open(dir.file()).await.expect("the same file");
        let subject = subject(&dir.file(), store, other);
        dirs.lock().expect("the list").push(dir);
        subject
    })
    .await;
    passed_all(&report);
}

#[tokio::test]
async fn a_store_in_memory_keeps_them_too() {
    let report = stores::run(|| async {
        let store = SqliteStore::in_memory().await.expect("a database");
        stores::Subject::new(AnyStore::new(store.clone()), AnyStore::new(store))
    })
    .await;
    report.assert_passed();
}
