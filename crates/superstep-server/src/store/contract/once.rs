//! What happens once, whoever does it.

use serde_json::{Map, json};
use tokio::task::JoinSet;

use super::{Place, asked, claim_run, enqueue, event, events, over, run};
use crate::store::sessions::SESSION_EVENTS_MAX;
use crate::store::{Admitted, Create, Cron, Fired, Firing, Multitask, OnCompletion, Store};
use crate::time::Micros;

fn cron(due: i64) -> Cron {
    Cron {
        cron_id: "c".to_owned(),
        assistant_id: "a".to_owned(),
        thread_id: None,
        schedule: "* * * * *".to_owned(),
        timezone: None,
        end_time: None,
        next_run_date: Some(Micros(due)),
        enabled: true,
        on_run_completed: OnCompletion::Keep,
        metadata: Map::new(),
        payload: Map::new(),
        created_at: Micros(1),
        updated_at: Micros(1),
        by: None,
        stamp: Map::new(),
    }
}

async fn make_cron(store: &dyn Store, cron: Cron) {
    store.create(None, Create::Cron(cron), Micros(1)).await.expect("an answer");
}

pub(super) async fn a_cron_fires_once<P: Place>() {
    let place = P::new().await;
    let stores = [place.open().await, place.open().await];
    make_cron(&*stores[0], cron(10)).await;
    let (due, next) = stores[1].due_crons(Micros(10), 9).await.expect("an answer");
    assert_eq!((due.len(), next), (1, Some(Micros(10))));
    for round in 1..=5_i64 {
        let mut firing = JoinSet::new();
        for nth in 0..8 {
            let store = stores[nth % 2].clone();
            let id = format!("r{round}-{nth}");
            let admission = asked(run(&format!("t{round}-{nth}"), &id, Multitask::Enqueue, 1));
            let firing_at = Firing {
                cron_id: "c".to_owned(),
                due: Micros(10 * round),
                next: Some(Micros(10 * (round + 1))),
                run: Some(Box::new(admission)),
            };
            firing.spawn(async move { store.fire_cron(firing_at).await.expect("an answer") });
        }
        let fired = firing.join_all().await;
        let admitted = |fired: &&Fired| matches!(fired, Fired::Admitted(Admitted::Stored { .. }));
        assert_eq!(fired.iter().filter(admitted).count(), 1, "{fired:?}");
        assert_eq!(stores[0].load().await.expect("an answer"), (round.unsigned_abs(), 0));
    }
    let skip = Firing { cron_id: "c".to_owned(), due: Micros(60), next: None, run: None };
    assert!(matches!(stores[1].fire_cron(skip.clone()).await.expect("an answer"), Fired::Skipped));
    assert!(matches!(stores[0].fire_cron(skip).await.expect("an answer"), Fired::Elsewhere));
    let mut full = asked(run("t", "r", Multitask::Enqueue, 1));
    full.pending_max = 0;
    make_cron(&*stores[0], Cron { cron_id: "d".to_owned(), ..cron(10) }).await;
    let full =
        Firing { cron_id: "d".to_owned(), due: Micros(10), next: None, run: Some(Box::new(full)) };
    let fired = stores[0].fire_cron(full).await.expect("an answer");
    assert!(matches!(fired, Fired::Admitted(Admitted::Full)));
    let still = stores[0].cron("d").await.expect("an answer").expect("a cron");
    assert_eq!(still.next_run_date, Some(Micros(10)), "it is fired when there is room");
}

pub(super) async fn a_webhook_is_taken_once<P: Place>() {
    let place = P::new().await;
    let stores = [place.open().await, place.open().await];
    let count = 6;
    for nth in 0..count {
        let mut asks = run(&format!("t{nth}"), &format!("r{nth}"), Multitask::Enqueue, nth);
        asks.kwargs.insert("webhook".to_owned(), json!("https://example.com"));
        super::admit(&*stores[0], asks).await;
        let driven = claim_run(&*stores[0]).await.expect("a run");
        assert!(stores[0].finish(&driven, over(), vec![]).await.expect("an answer"));
    }
    let now = Micros::now().plus_seconds(1.0);
    let mut taking = JoinSet::new();
    for nth in 0..8 {
        let store = stores[nth % 2].clone();
        let until = now.plus_seconds(60.0);
        taking.spawn(async move { store.take_webhooks(now, until, 2).await.expect("an answer").0 });
    }
    let taken = taking.join_all().await.into_iter().flatten();
    let mut taken: Vec<_> = taken.map(|webhook| webhook.run.run_id).collect();
    // Somebody who is passed over comes back.
    let rest = stores[0].take_webhooks(now, now.plus_seconds(60.0), 9).await.expect("an answer").0;
    taken.extend(rest.into_iter().map(|webhook| webhook.run.run_id));
    taken.sort();
    let all: Vec<_> = (0..count).map(|nth| format!("r{nth}")).collect();
    assert_eq!(taken, all);
    let later = now.plus_seconds(61.0);
    let (mut again, _) =
        stores[1].take_webhooks(later, later.plus_seconds(60.0), 1).await.expect("an answer");
    let failed = again.pop().expect("nothing was heard of it");
    stores[1].webhook_failed(failed.clone(), None).await.expect("an answer");
    let counts = stores[0].count_webhooks().await.expect("an answer");
    assert_eq!((counts.waiting, counts.given_up), (5, 1));
    stores[1].webhook_received(&failed.run.run_id).await.expect("an answer");
    let counts = stores[0].count_webhooks().await.expect("an answer");
    assert_eq!((counts.waiting, counts.given_up), (5, 0));
}

pub(super) async fn events_are_stored_once_and_in_order<P: Place>() {
    let place = P::new().await;
    let (store, other) = (place.open().await, place.open().await);
    enqueue(&*store, "t", "r", 1).await;
    let driven = claim_run(&*store).await.expect("a run");
    let epoch = Some(driven.epoch);
    assert!(store.append("r", epoch, events(1..=3)).await.expect("an answer"));
    // The answer was lost, so a part of them comes again.
    assert!(store.append("r", epoch, events(2..=5)).await.expect("an answer"));
    assert_eq!(other.events("r", 0, 99).await.expect("an answer"), events(1..=5));
    assert_eq!(other.events("r", 2, 2).await.expect("an answer"), events(3..=4));
    assert_eq!(other.events("r", u64::MAX, 2).await.expect("an answer"), []);
    assert_eq!(other.last_event("r").await.expect("an answer"), 5);
    assert_eq!(other.last_event("none").await.expect("an answer"), 0);
    let later = Micros::now().plus_seconds(60.0);
    assert_eq!(store.forget_events(later).await.expect("an answer"), 0, "it is running");
    assert!(store.finish(&driven, over(), vec![]).await.expect("an answer"));
    assert_eq!(other.forget_events(Micros(1)).await.expect("an answer"), 0, "it has just ended");
    assert_eq!(other.forget_events(later).await.expect("an answer"), 5);
}

pub(super) async fn events_of_a_thread_go_on_after_they_were_forgotten<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    store.append_session("t", events(1..=3)).await.expect("an answer");
    store.append_session("t", events(2..=4)).await.expect("an answer");
    assert_eq!(store.session_events("t", 1, 9).await.expect("an answer"), events(2..=4));
    let later = Micros::now().plus_seconds(1.0);
    assert_eq!(store.forget_sessions(later).await.expect("an answer"), 4);
    assert_eq!(store.session_last("t").await.expect("an answer"), 4);
    assert_eq!(store.session_last("other").await.expect("an answer"), 0);
    let all = SESSION_EVENTS_MAX + 5;
    store.append_session("many", events(1..=all)).await.expect("an answer");
    let kept = store.session_events("many", 0, 1).await.expect("an answer");
    assert_eq!(kept, [event(6)], "only the newest are kept");
}
