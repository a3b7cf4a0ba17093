//! Threads that are to be woken.

use tokio::task::JoinSet;

use super::{Place, admit, claim_run, enqueue, over, run};
use crate::store::{
    Admitted, DueThread, Ended, Multitask, Store, ThreadStatus, Woken, records::ThreadEnd,
};
use crate::time::Micros;

/// How a run ends whose question is due then.
fn asleep(due: i64) -> Ended {
    let Ended::Over { status, result, thread } = over() else { panic!("it is over") };
    let due = Some(Micros(due));
    let thread = ThreadEnd { status: ThreadStatus::Interrupted, due, ..*thread };
    Ended::Over { status, result, thread: Box::new(thread) }
}

/// A thread that was put to sleep by a run.
async fn sleep(store: &dyn Store, thread: &str, due: i64) {
    enqueue(store, thread, &format!("{thread} asks"), 1).await;
    let asking = claim_run(store).await.expect("a run");
    assert_eq!(asking.thread_id, thread);
    assert!(store.finish(&asking, asleep(due), vec![]).await.expect("an answer"));
}

async fn due(store: &dyn Store, now: i64) -> (String, Option<i64>) {
    let (due, next) = store.due_threads(Micros(now), 9).await.expect("an answer");
    let due = due.iter().map(|seen| format!("{}@{}", seen.thread_id, seen.due.0));
    (due.collect::<Vec<_>>().join(" "), next.map(|next| next.0))
}

fn seen(thread: &str, due: i64) -> DueThread {
    DueThread { thread_id: thread.to_owned(), due: Micros(due) }
}

pub(super) async fn threads_are_due_in_the_order_of_their_times<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    assert_eq!(due(store, 100).await, (String::new(), None));
    for (thread, at) in [("late", 50), ("early", 10), ("later", 90)] {
        sleep(store, thread, at).await;
    }
    assert_eq!(due(store, 9).await, (String::new(), Some(10)));
    assert_eq!(due(store, 50).await, ("early@10 late@50".to_owned(), Some(90)));
    enqueue(store, "early", "answer", 2).await;
    assert_eq!(due(store, 50).await.0, "late@50", "the run that it has does what is due");
    let answering = claim_run(store).await.expect("a run");
    assert!(store.finish(&answering, over(), vec![]).await.expect("an answer"));
    assert_eq!(due(store, 50).await.0, "late@50", "it sleeps no more");
    store.delete_thread("late").await.expect("an answer");
    assert_eq!(due(store, 50).await, (String::new(), Some(90)));
}

pub(super) async fn of_many_who_wake_a_thread_one_does<P: Place>() {
    let place = P::new().await;
    let stores = [place.open().await, place.open().await];
    sleep(&*stores[0], "t", 10).await;
    let mut waking = JoinSet::new();
    for nth in 0..8 {
        let store = stores[nth % 2].clone();
        waking.spawn(async move {
            let woken = store.fire_wake(seen("t", 10), format!("wake {nth}"), 100).await;
            matches!(woken, Ok(Woken::Admitted(Admitted::Stored { .. })))
        });
    }
    let woken = waking.join_all().await;
    assert_eq!(woken.iter().filter(|woken| **woken).count(), 1, "{woken:?}");
    assert_eq!(due(&*stores[1], 100).await, (String::new(), None));
    let claim = async |store: &dyn Store| {
        let now = Micros::now().plus_seconds(1.0);
        store.claim(now, vec!["g".to_owned()]).await.expect("an answer").ok()
    };
    let waking = claim(&*stores[1]).await.expect("the run that wakes it").run;
    assert!(waking.run_id.starts_with("wake ") && waking.kwargs["wake"] == true, "{waking:?}");
    assert_eq!(waking.epoch, 1, "it is a run of its own");
    assert!(claim(&*stores[0]).await.is_none());
}

pub(super) async fn a_thread_that_cannot_be_woken_stays_as_it_is<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    sleep(store, "t", 10).await;
    let wake = async |due, room| {
        store.fire_wake(seen("t", due), "wake".to_owned(), room).await.expect("an answer")
    };
    assert!(matches!(wake(9, 100).await, Woken::Elsewhere), "it was seen at another time");
    enqueue(store, "other", "waits", 1).await;
    assert!(matches!(wake(10, 1).await, Woken::Admitted(Admitted::Full)));
    assert_eq!(due(store, 10).await.0, "t@10", "it stays due");
    admit(store, run("t", "answer", Multitask::Enqueue, 2)).await;
    assert!(matches!(wake(10, 100).await, Woken::Elsewhere), "it has a run");
    let gone = store.fire_wake(seen("gone", 10), "wake".to_owned(), 100).await;
    assert!(matches!(gone.expect("an answer"), Woken::Elsewhere));
}
