//! Which run is next.

use serde_json::json;

use super::{Place, admit, claim, claim_run, enqueue, event, over, run};
use crate::store::{Admitted, Cancel, Multitask, Run, RunStatus, ThreadStatus, Which};
use crate::time::Micros;

pub(super) async fn a_thread_has_one_running_run_and_runs_come_in_order<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    for (thread, id, due) in [("t", "r1", 1), ("t", "r2", 2), ("u", "r3", 3), ("t", "late", 9_000)]
    {
        enqueue(store, thread, id, due).await;
    }
    let first = claim_run(store).await.expect("a run");
    assert_eq!(first.run_id, "r1");
    assert_eq!(claim(store).await.as_deref(), Some("r3"), "the thread of `r2` is taken");
    assert_eq!(claim(store).await, None);
    assert_eq!(store.load().await.expect("an answer"), (2, 2));
    let other = Run { epoch: 7, ..first.clone() };
    assert!(
        !store.finish(&other, over(), vec![]).await.expect("an answer"),
        "not the current claim"
    );
    assert!(store.finish(&first, over(), vec![]).await.expect("an answer"));
    let thread = store.thread("t").await.expect("an answer").expect("a thread");
    assert_eq!((thread.status, &thread.values), (ThreadStatus::Busy, &json!({ "x": 1 })));
    let second = claim_run(store).await.expect("a run");
    assert_eq!(second.run_id, "r2");
    assert!(store.finish(&second, over(), vec![]).await.expect("an answer"));
    let next = store.claim(Micros(1_000), vec!["g".to_owned()]).await.expect("an answer");
    assert_eq!(next.expect_err("nothing is due"), Some(Micros(9_000)));
    assert!(!store.finish(&second, over(), vec![]).await.expect("an answer"), "a run ends once");
    // What is put back is begun again, and that is no attempt.
    let late = store.claim(Micros(9_000), vec!["g".to_owned()]).await.expect("an answer");
    let late = late.expect("it is due").run;
    assert!(store.finish(&late, crate::store::Ended::PutBack, vec![]).await.expect("an answer"));
    let again = store.claim(Micros(9_000), vec!["g".to_owned()]).await.expect("an answer");
    let again = again.expect("it is due");
    assert_eq!((again.run.attempt, again.run.epoch, again.again), (1, 2, true));
}

pub(super) async fn a_second_run_waits_is_refused_or_takes_the_place_of_the_first<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    enqueue(store, "t", "first", 1).await;
    claim(store).await.expect("the first");
    let refused = admit(store, run("t", "no", Multitask::Reject, 2)).await;
    assert!(matches!(refused, Admitted::Busy));
    assert!(store.run(None, "no").await.expect("an answer").is_none(), "nothing was stored");
    enqueue(store, "t", "second", 3).await;
    let Admitted::Stored { stop, dropped, .. } =
        admit(store, run("t", "third", Multitask::Interrupt, 4)).await
    else {
        panic!("it is admitted")
    };
    assert_eq!(stop, [("first".to_owned(), Cancel::Interrupt)]);
    assert_eq!(dropped, ["second"]);
    let second = store.run(Some("t"), "second").await.expect("an answer").expect("a run");
    assert_eq!(second.status, RunStatus::Interrupted);
    admit(store, run("t", "fourth", Multitask::Rollback, 5)).await;
    assert!(store.run(None, "third").await.expect("an answer").is_none(), "it was rolled back");
    let mut lost = super::asked(run("missing", "r", Multitask::Enqueue, 1));
    lost.new_thread = None;
    assert!(matches!(store.admit(lost).await.expect("an answer"), Admitted::NoThread));
    let mut full = super::asked(run("other", "r", Multitask::Enqueue, 1));
    full.pending_max = 1;
    assert!(matches!(store.admit(full).await.expect("an answer"), Admitted::Full));
}

/// A deploy in steps has processes that know different graphs.
pub(super) async fn runs_of_graphs_that_nobody_has_wait<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    let mut unknown = run("t", "unknown", Multitask::Enqueue, 1);
    unknown.graph_id = "new".to_owned();
    admit(store, unknown).await;
    enqueue(store, "u", "known", 2).await;
    assert_eq!(claim(store).await.as_deref(), Some("known"));
    let none = store.claim(Micros(1_000), vec!["g".to_owned()]).await.expect("an answer");
    assert_eq!(none.expect_err("nothing for us"), None);
    let both = vec!["g".to_owned(), "new".to_owned()];
    let claimed = store.claim(Micros(1_000), both).await.expect("an answer");
    assert_eq!(claimed.expect("a run").run.run_id, "unknown");
}

pub(super) async fn what_is_cancelled_or_deleted_does_not_run<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    for (thread, id) in [("t", "t1"), ("t", "t2"), ("u", "u1"), ("v", "v1"), ("w", "w1")] {
        enqueue(store, thread, id, 1).await;
    }
    let running = claim_run(store).await.expect("a run");
    assert_eq!(running.run_id, "t1");
    let which = Which::Runs { thread: "t".to_owned(), runs: vec!["t1".into(), "t2".into()] };
    let cancelled = store.cancel(which, Cancel::Interrupt).await.expect("an answer");
    assert_eq!((cancelled.running, cancelled.pending), (vec!["t1".into()], vec!["t2".into()]));
    let marked = store.run(None, "t1").await.expect("an answer").expect("a run");
    assert_eq!((marked.status, marked.cancel), (RunStatus::Running, Some(Cancel::Interrupt)));
    assert!(store.delete_run("u", "t1").await.expect("an answer").is_none(), "not its thread");
    assert!(store.delete_run("u", "u1").await.expect("an answer").is_some());
    let all = Which::Status { tenant: String::new(), of: vec![RunStatus::Pending] };
    let cancelled = store.cancel(all, Cancel::Rollback).await.expect("an answer");
    assert_eq!(cancelled.pending.len(), 2);
    assert_eq!(claim(store).await, None);
    let thread = store.thread("v").await.expect("an answer").expect("a thread");
    assert_eq!(thread.status, ThreadStatus::Idle);
    assert!(
        store.finish(&marked, over(), vec![]).await.expect("an answer"),
        "a mark takes no claim away"
    );
}

pub(super) async fn a_thread_goes_with_all_that_is_kept_for_it<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    enqueue(store, "t", "r", 1).await;
    enqueue(store, "t", "waits", 2).await;
    let driven = claim_run(store).await.expect("a run");
    assert!(store.append("r", Some(1), vec![event(1)]).await.expect("an answer"));
    store.append_session("t", vec![event(1)]).await.expect("an answer");
    let open = store.delete_thread("t").await.expect("an answer").expect("it was there");
    assert_eq!(open.len(), 2);
    assert!(store.delete_thread("t").await.expect("an answer").is_none());
    assert!(store.thread("t").await.expect("an answer").is_none());
    assert!(store.events("r", 0, 9).await.expect("an answer").is_empty());
    assert_eq!(store.session_last("t").await.expect("an answer"), 0);
    assert_eq!(claim(store).await, None);
    assert!(!store.finish(&driven, over(), vec![]).await.expect("an answer"));
}
