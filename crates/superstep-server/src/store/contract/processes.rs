//! Several processes on one database.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::{Place, claim, claim_run, enqueue, event, over};
use crate::store::{RunStatus, Store, ThreadStatus};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(3_600);

async fn live(store: &dyn Store) {
    store.beat(LONG).await.expect("an answer");
}

/// The lease ends now.
async fn die(store: &dyn Store) {
    store.beat(Duration::ZERO).await.expect("an answer");
}

pub(super) async fn what_a_dead_process_left_is_taken_back_and_ends_after_three_attempts<
    P: Place,
>() {
    let place = P::new().await;
    let store = &*place.open().await;
    enqueue(store, "t", "r", 1).await;
    for attempt in 1..=3 {
        live(store).await;
        assert_eq!(claim(store).await.as_deref(), Some("r"), "attempt {attempt}");
        die(store).await;
        assert_eq!(store.take_back(3).await.expect("an answer"), 1);
        assert_eq!(store.take_back(3).await.expect("an answer"), 0, "once");
    }
    assert_eq!(claim(store).await, None);
    let dead = store.run(None, "r").await.expect("an answer").expect("a run");
    assert_eq!((dead.status, dead.attempt), (RunStatus::Error, 3));
    let thread = store.thread("t").await.expect("an answer").expect("a thread");
    let error = &thread.error["error"];
    assert_eq!((thread.status, error), (ThreadStatus::Error, &json!("WorkerDied")));
}

/// A start must not take away what others are doing.
pub(super) async fn a_process_that_lives_keeps_its_runs<P: Place>() {
    if !P::SHARED {
        return;
    }
    let place = P::new().await;
    let (first, second) = (place.open().await, place.open().await);
    assert_ne!(first.worker(), second.worker());
    live(&*first).await;
    live(&*second).await;
    enqueue(&*first, "t", "r", 1).await;
    let run = claim_run(&*first).await.expect("a run");
    assert_eq!(run.worker.as_deref(), Some(first.worker()));
    assert_eq!(second.take_back(3).await.expect("an answer"), 0);
    first.leave().await.expect("an answer");
    assert_eq!(second.take_back(3).await.expect("an answer"), 1, "it said that it ended");
    assert_eq!(claim(&*second).await.as_deref(), Some("r"));
}

pub(super) async fn a_superseded_worker_can_neither_write_nor_end_its_run<P: Place>() {
    let place = P::new().await;
    let (first, second) = (place.open().await, place.open().await);
    live(&*first).await;
    enqueue(&*first, "t", "r", 1).await;
    let lost = claim_run(&*first).await.expect("a run");
    assert!(first.append("r", Some(lost.epoch), vec![event(1)]).await.expect("an answer"));
    die(&*first).await;
    assert_eq!(second.take_back(3).await.expect("an answer"), 1);
    // It hangs, and does not know that it is dead.
    assert!(!first.append("r", Some(lost.epoch), vec![event(2)]).await.expect("an answer"));
    assert!(!first.finish(&lost, over(), vec![]).await.expect("an answer"));
    live(&*second).await;
    let taken = claim_run(&*second).await.expect("a run");
    assert_eq!((taken.attempt, taken.epoch, taken.begun), (2, 2, true));
    assert_eq!(second.last_event("r").await.expect("an answer"), 1);
    assert!(!first.append("r", Some(lost.epoch), vec![event(2)]).await.expect("an answer"));
    assert!(!first.finish(&lost, over(), vec![]).await.expect("an answer"));
    assert!(second.append("r", Some(taken.epoch), vec![event(2)]).await.expect("an answer"));
    assert!(second.finish(&taken, over(), vec![]).await.expect("an answer"));
    assert!(!second.append("r", Some(taken.epoch), vec![event(3)]).await.expect("an answer"));
    assert_eq!(first.events("r", 0, 9).await.expect("an answer"), [event(1), event(2)]);
}

/// Claims as many runs as there are, and ends each. Returns them with the process that had them.
async fn drive_all(store: Arc<dyn Store>) -> Vec<String> {
    let mut driven = Vec::new();
    while let Some(run) = claim_run(&*store).await {
        let is_mine = store.run(None, &run.run_id).await.expect("an answer").expect("a run");
        assert_eq!(is_mine.worker.as_deref(), Some(store.worker()));
        assert!(store.finish(&run, over(), vec![]).await.expect("an answer"), "nobody else has it");
        driven.push(run.run_id);
    }
    driven
}

pub(super) async fn of_many_workers_one_gets_each_run<P: Place>() {
    let place = P::new().await;
    let mut stores = vec![place.open().await];
    if P::SHARED {
        stores.push(place.open().await);
        stores.push(place.open().await);
    }
    for nth in 0..60_i64 {
        enqueue(&*stores[0], &format!("t{}", nth % 20), &format!("r{nth}"), nth).await;
    }
    let mut workers = JoinSet::new();
    for nth in 0..12 {
        let store = stores[nth % stores.len()].clone();
        live(&*store).await;
        workers.spawn(drive_all(store));
    }
    let mut times: HashMap<String, usize> = HashMap::new();
    while let Some(driven) = workers.join_next().await {
        for run in driven.expect("no panic") {
            *times.entry(run).or_default() += 1;
        }
    }
    // A worker that finds nothing leaves, though the last runs of a thread may come later.
    for run in drive_all(stores[0].clone()).await {
        *times.entry(run).or_default() += 1;
    }
    assert_eq!(times.len(), 60);
    assert!(times.values().all(|times| *times == 1), "{times:?}");
}
