//! What only SQLite has to keep.

use serde_json::Map;
use uuid::Uuid;

use super::*;

#[tokio::test]
async fn a_call_that_fails_leaves_nothing_and_does_not_disturb_others() {
    let store = SqliteStore::open(None).await.expect("a store");
    let bad = store.call(|connection| {
        threads::put(connection, &Thread::new("half".to_owned(), Map::new(), Micros(1)))?;
        Err::<(), _>(failed("on purpose"))
    });
    let good = store.create_thread(Thread::new("whole".to_owned(), Map::new(), Micros(1)));
    let (bad, good) = (bad.await, good.await);
    assert!(bad.is_err() && good.is_ok_and(|made| made.is_ok()));
    assert!(store.thread("half").await.expect("an answer").is_none());
}

/// A process that was killed does not hold its lock any more, so nobody waits for the end of its lease.
#[tokio::test]
async fn runs_of_a_process_that_is_gone_are_taken_back_at_once() {
    let dir = std::env::temp_dir().join(format!("superstep-server-{}", Uuid::new_v4()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("server.db");
    let (gone, left) = (workers::Process::new(Some(&file)), workers::Process::new(Some(&file)));
    let name = gone.name.clone();
    assert!(!left.has_left(&name), "it is there");
    drop(gone);
    assert!(left.has_left(&name));
    assert!(!left.has_left(&left.name));
    drop(left);
    assert_eq!(std::fs::read_dir(&dir).expect("a directory").count(), 0, "nothing is left behind");
    std::fs::remove_dir_all(dir).expect("it can be removed");
}
