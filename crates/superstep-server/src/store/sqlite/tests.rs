//! The contract of the store, on SQLite.

use serde_json::{Map, json};

use super::*;
use crate::store::records::ThreadEnd;
use crate::store::{Multitask, RunStatus, ThreadStatus};

fn run(thread: &str, id: &str, multitask: Multitask, due: i64) -> Run {
    Run {
        run_id: id.to_owned(),
        thread_id: thread.to_owned(),
        assistant_id: "a".to_owned(),
        graph_id: "g".to_owned(),
        created_at: Micros(due),
        updated_at: Micros(due),
        status: RunStatus::Pending,
        metadata: Map::new(),
        kwargs: Map::new(),
        multitask,
        attempt: 0,
        begun: false,
        cancel: None,
        stateless: None,
        result: None,
        session: false,
        origin: Default::default(),
    }
}

async fn admit(store: &SqliteStore, run: Run) -> Admitted {
    let admission = Admission {
        new_thread: Some(Thread::new(run.thread_id.clone(), Map::new(), Micros(0))),
        run,
        thread_metadata: Map::new(),
        thread_config: json!({}),
        pending_max: 100,
    };
    store.admit(admission).await.expect("an answer")
}

async fn claim_run(store: &SqliteStore) -> Option<Run> {
    store.claim(Micros(1_000)).await.expect("an answer").ok().map(|claimed| claimed.run)
}

async fn claim(store: &SqliteStore) -> Option<String> {
    claim_run(store).await.map(|run| run.run_id)
}

fn over() -> Ended {
    let thread = ThreadEnd {
        status: ThreadStatus::Idle,
        values: Some(json!({ "x": 1 })),
        interrupts: Map::new(),
        error: json!(null),
        due: None,
    };
    Ended::Over { status: RunStatus::Success, result: json!({ "x": 1 }), thread: Box::new(thread) }
}

#[tokio::test]
async fn a_thread_has_one_running_run_and_runs_come_in_order() {
    let store = SqliteStore::open(None).await.expect("a store");
    for (thread, id, due) in [("t", "r1", 1), ("t", "r2", 2), ("u", "r3", 3), ("t", "late", 9_000)]
    {
        assert!(matches!(
            admit(&store, run(thread, id, Multitask::Enqueue, due)).await,
            Admitted::Stored { .. }
        ));
    }
    let first = claim_run(&store).await.expect("a run");
    assert_eq!(first.run_id, "r1");
    assert_eq!(claim(&store).await.as_deref(), Some("r3"), "the thread of `r2` is taken");
    assert_eq!(claim(&store).await, None);
    let other = Run { attempt: 7, ..first.clone() };
    assert!(!store.finish(&other, over()).await.expect("an answer"), "not the current attempt");
    assert!(store.finish(&first, over()).await.expect("an answer"));
    let thread = store.thread("t").await.expect("an answer").expect("a thread");
    assert_eq!((thread.status, &thread.values), (ThreadStatus::Busy, &json!({ "x": 1 })));
    let second = claim_run(&store).await.expect("a run");
    assert_eq!(second.run_id, "r2");
    assert!(store.finish(&second, over()).await.expect("an answer"));
    let next = store.claim(Micros(1_000)).await.expect("an answer").expect_err("nothing is due");
    assert_eq!(next, Some(Micros(9_000)));
    assert!(!store.finish(&second, over()).await.expect("an answer"), "a run ends once");
}

#[tokio::test]
async fn a_second_run_waits_is_refused_or_takes_the_place_of_the_first() {
    let store = SqliteStore::open(None).await.expect("a store");
    admit(&store, run("t", "first", Multitask::Enqueue, 1)).await;
    claim(&store).await.expect("the first");
    assert!(matches!(admit(&store, run("t", "no", Multitask::Reject, 2)).await, Admitted::Busy));
    assert!(store.run(None, "no").await.expect("an answer").is_none(), "nothing was stored");
    admit(&store, run("t", "second", Multitask::Enqueue, 3)).await;
    let Admitted::Stored { stop, .. } =
        admit(&store, run("t", "third", Multitask::Interrupt, 4)).await
    else {
        panic!("it is admitted")
    };
    assert_eq!(stop, [("first".to_owned(), Cancel::Interrupt)]);
    let second = store.run(Some("t"), "second").await.expect("an answer").expect("a run");
    assert_eq!(second.status, RunStatus::Interrupted);
    admit(&store, run("t", "fourth", Multitask::Rollback, 5)).await;
    assert!(store.run(None, "third").await.expect("an answer").is_none(), "it was rolled back");
}

#[tokio::test]
async fn what_a_dead_process_left_is_taken_back_and_ends_after_three_attempts() {
    let store = SqliteStore::open(None).await.expect("a store");
    admit(&store, run("t", "r", Multitask::Enqueue, 1)).await;
    for attempt in 1..=3 {
        assert_eq!(claim(&store).await.as_deref(), Some("r"), "attempt {attempt}");
        assert_eq!(store.recover(3).await.expect("an answer"), 1);
    }
    assert_eq!(claim(&store).await, None);
    let dead = store.run(None, "r").await.expect("an answer").expect("a run");
    assert_eq!((dead.status, dead.attempt), (RunStatus::Error, 3));
    let thread = store.thread("t").await.expect("an answer").expect("a thread");
    assert_eq!(
        (thread.status, &thread.error["error"]),
        (ThreadStatus::Error, &json!("WorkerDied"))
    );
}

#[tokio::test]
async fn lists_filter_by_what_is_contained_and_have_pages() {
    let store = SqliteStore::open(None).await.expect("a store");
    for n in 0..5_i64 {
        let metadata = json!({ "even": n % 2 == 0, "deep": { "n": n, "all": true }, "word": "w" });
        let mut thread = Thread::new(
            format!("t{n}"),
            metadata.as_object().expect("an object").clone(),
            Micros(n),
        );
        thread.values = if n == 4 { json!(null) } else { json!({ "n": n }) };
        store.create_thread(thread).await.expect("an answer").expect("it is new");
    }
    let ids = |query: ListQuery| async {
        let page = store.threads(query).await.expect("an answer");
        (page.rows.into_iter().map(|thread| thread.thread_id).collect::<Vec<_>>(), page.more)
    };
    let filter = |json: Json| json.as_object().expect("an object").clone();
    use serde_json::Value as Json;
    let even = ListQuery {
        metadata: filter(json!({ "even": true, "deep": { "all": true }, "word": "w" })),
        limit: 2,
        ..ListQuery::default()
    };
    assert_eq!(ids(even.clone()).await, (vec!["t4".to_owned(), "t2".to_owned()], true));
    assert_eq!(ids(ListQuery { offset: 2, ..even }).await, (vec!["t0".to_owned()], false));
    let valued = ListQuery { values: filter(json!({ "n": 3 })), ..ListQuery::default() };
    assert_eq!(ids(valued).await.0, ["t3"], "a thread without values does not match");
}

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

#[tokio::test]
async fn what_was_answered_is_in_the_file() {
    let dir = std::env::temp_dir().join(format!("superstep-server-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let file = dir.join("server.db");
    let store = SqliteStore::open(Some(&file)).await.expect("a store");
    admit(&store, run("t", "r", Multitask::Enqueue, 1)).await;
    let event = |seq: u64| Stored { seq, event: "values".to_owned(), data: "{}".to_owned() };
    store.append("r", vec![event(1), event(2)]).await.expect("an answer");
    // Another connection sees it without the first one being closed.
    let other = SqliteStore::open(Some(&file)).await.expect("a store");
    assert!(other.run(Some("t"), "r").await.expect("an answer").is_some());
    assert_eq!(other.events("r", 1, 10).await.expect("an answer"), [event(2)]);
    drop((store, other));
    std::fs::remove_dir_all(dir).expect("it can be removed");
}
