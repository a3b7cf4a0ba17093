//! API keys, idempotency keys, and answers.

use serde_json::{Value as Json, json};
use tokio::task::JoinSet;

use super::{Place, asked, claim_run, over, run};
use crate::store::{
    Admitted, ApiKey, Asked, Create, InboxPlace, ListQuery, Made, Multitask, Once, Thread,
    ThreadStatus,
};
use crate::time::Micros;

fn once(key: &str, fingerprint: &str) -> Option<Asked> {
    Some(Asked { key: key.to_owned(), fingerprint: fingerprint.to_owned() })
}

/// What was made now.
fn made(once: Once) -> Made {
    match once {
        Once::Made(made) => *made,
        known => panic!("{known:?}"),
    }
}

fn runs(ids: &[(&str, &str)]) -> Create {
    let admission = |(thread, id): &(&str, &str)| asked(run(thread, id, Multitask::Enqueue, 1));
    Create::Runs(ids.iter().map(admission).collect())
}

pub(super) async fn something_is_made_once_for_each_key<P: Place>() {
    let place = P::new().await;
    let (store, other) = (place.open().await, place.open().await);
    let now = Micros::now();
    let thread = |id: &str| Create::Thread(Thread::new(id.to_owned(), Default::default(), now));
    let first = store.create(once("k", "a"), thread("t1"), now).await.expect("an answer");
    assert!(matches!(made(first), Made::Thread(Ok(_))));
    let known = other.create(once("k", "a"), thread("t2"), now).await.expect("an answer");
    let Once::Known(kept) = known else { panic!("{known:?}") };
    assert_eq!(kept.made["thread_id"], "t1");
    assert!(other.thread("t2").await.expect("an answer").is_none());
    let changed = other.create(once("k", "b"), thread("t2"), now).await.expect("an answer");
    assert!(matches!(changed, Once::Other));
    let later = now.plus_seconds(90_000.0);
    let again = other.create(once("k", "b"), thread("t3"), later).await.expect("an answer");
    assert!(matches!(made(again), Made::Thread(Ok(_))), "a day has passed");
    // What is refused is not kept.
    let refused = store.create(once("l", "a"), thread("t1"), now).await.expect("an answer");
    assert!(matches!(made(refused), Made::Thread(Err(_))));
    assert!(store.kept("l").await.expect("an answer").is_none());
    let unnamed = store.create(None, thread("t9"), now).await.expect("an answer");
    assert!(matches!(made(unnamed), Made::Thread(Ok(_))));
}

pub(super) async fn of_many_requests_with_a_key_one_is_carried_out<P: Place>() {
    let place = P::new().await;
    let stores = [place.open().await, place.open().await];
    let now = Micros::now();
    let mut asking = JoinSet::new();
    for nth in 0..8 {
        let store = stores[nth % 2].clone();
        let (thread, id) = (format!("t{nth}"), format!("r{nth}"));
        let what = runs(&[(&thread, &id), (&format!("{thread}b"), &format!("{id}b"))]);
        asking.spawn(
            async move { store.create(once("k", "a"), what, now).await.expect("an answer") },
        );
    }
    let answers = asking.join_all().await;
    let made = answers.iter().filter(|answer| matches!(answer, Once::Made(_))).count();
    assert_eq!((made, stores[0].load().await.expect("an answer").0), (1, 2), "{answers:?}");
    let mut kept = answers.iter().filter_map(|answer| match answer {
        Once::Known(kept) => Some(&kept.made),
        _ => None,
    });
    let first = kept.next().expect("an answer");
    assert!(kept.all(|other| other == first), "the same for all");
}

pub(super) async fn several_runs_are_admitted_together_or_not_at_all<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    let both = store.create(None, runs(&[("b", "r2"), ("a", "r1")]), Micros(1)).await;
    let Made::Runs(admitted) = made(both.expect("an answer")) else { panic!("they are runs") };
    let ids: Vec<_> = admitted
        .iter()
        .map(|admitted| match admitted {
            Admitted::Stored { run, .. } => &*run.run_id,
            _ => "refused",
        })
        .collect();
    assert_eq!(ids, ["r2", "r1"], "in the order in which they were asked for");
    let Create::Runs(mut more) = runs(&[("c", "r3"), ("a", "r4")]) else { panic!("runs") };
    more[1].run.multitask = Multitask::Reject;
    let refused = store.create(None, Create::Runs(more), Micros(1)).await.expect("an answer");
    let Made::Runs(refused) = made(refused) else { panic!("a refusal") };
    assert!(matches!(&*refused, [Admitted::Busy]), "{refused:?}");
    let Create::Runs(mut full) = runs(&[("d", "r5"), ("e", "r6")]) else { panic!("runs") };
    full.iter_mut().for_each(|admission| admission.pending_max = 3);
    let full = store.create(None, Create::Runs(full), Micros(1)).await.expect("an answer");
    assert!(matches!(made(full), Made::Runs(full) if matches!(&*full, [Admitted::Full])));
    assert_eq!(store.load().await.expect("an answer"), (2, 0));
    assert!(store.thread("c").await.expect("an answer").is_none());
}

pub(super) async fn a_key_works_until_it_is_revoked<P: Place>() {
    let place = P::new().await;
    let (store, other) = (place.open().await, place.open().await);
    let key = |id: &str, at| ApiKey {
        id: id.to_owned(),
        name: "ci".to_owned(),
        tenant: "acme".to_owned(),
        role: "user".to_owned(),
        hash: format!("hash of {id}"),
        created_at: Micros(at),
        revoked_at: None,
    };
    assert!(store.add_key(key("k1", 1)).await.expect("an answer"));
    assert!(!other.add_key(key("k2", 2)).await.expect("an answer"), "the name is taken");
    assert_eq!(other.key("k1").await.expect("an answer"), Some(key("k1", 1)));
    assert_eq!(other.key("k2").await.expect("an answer"), None);
    let revoked = other.revoke_key("ci", Micros(5)).await.expect("an answer").expect("a key");
    assert_eq!((revoked.id.as_str(), revoked.revoked_at), ("k1", Some(Micros(5))));
    assert_eq!(store.key("k1").await.expect("an answer"), Some(revoked));
    assert!(store.revoke_key("ci", Micros(6)).await.expect("an answer").is_none());
    assert!(store.add_key(key("k2", 2)).await.expect("an answer"), "the name is free again");
    assert!(store.revoke_key("k2", Micros(7)).await.expect("an answer").is_some(), "by its id");
    let ids: Vec<_> =
        store.keys().await.expect("an answer").into_iter().map(|key| key.id).collect();
    assert_eq!(ids, ["k1", "k2"]);
}

pub(super) async fn a_question_is_listed_and_answered_once<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    let question = "0123456789abcdef0123456789abcdef";
    for (id, at) in [("t2", 2), ("acme:t", 1), ("t1", 1), ("done", 1)] {
        let mut thread = Thread::new(id.to_owned(), Default::default(), Micros(at));
        if id != "done" {
            thread.status = ThreadStatus::Interrupted;
            let asked = json!([{ "id": question, "value": "ok?" }]);
            thread.interrupts = [("task".to_owned(), asked)].into_iter().collect();
        }
        store.create_thread(thread).await.expect("an answer").expect("it is new");
    }
    let ids = |tenant: &'static str, after: Option<InboxPlace>| async move {
        let found = store.waiting_threads(tenant, after, 9).await.expect("an answer");
        found.into_iter().map(|thread| thread.thread_id).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids("", None).await, "t1 t2");
    assert_eq!(ids("acme", None).await, "acme:t");
    let place = InboxPlace { state_updated_at: Micros(1), thread_id: "t1".to_owned() };
    assert_eq!(ids("", Some(place)).await, "t2");
    let of_tenant =
        ListQuery { equal: vec![("tenant", vec!["acme".to_owned()])], ..ListQuery::default() };
    assert_eq!(store.count_threads(of_tenant).await.expect("an answer"), 1);
    let answer = |id: &str, answer: Json| {
        let mut run = run("t1", id, Multitask::Enqueue, 1);
        run.kwargs.insert("command".to_owned(), json!({ "resume": answer }));
        store.admit(asked(run))
    };
    let first = answer("r1", json!("yes")).await.expect("an answer");
    assert!(matches!(first, Admitted::Stored { .. }), "{first:?}");
    let late = answer("r2", json!("no")).await.expect("an answer");
    assert!(matches!(late, Admitted::Answered(_)), "{late:?}");
    let given = store.answers("t1", 9).await.expect("an answer");
    assert_eq!((given.len(), &given[0].answer, &*given[0].run_id), (1, &json!("yes"), "r1"));
    assert_eq!(given[0].interrupt_id, question);
    let driven = claim_run(store).await.expect("a run");
    assert!(store.finish(&driven, over(), vec![]).await.expect("an answer"));
    store.delete_thread("t1").await.expect("an answer");
    assert!(store.answers("t1", 9).await.expect("an answer").is_empty());
}
