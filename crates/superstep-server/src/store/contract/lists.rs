//! Lists, and what can be kept.

use serde_json::{Map, json};

use super::{Place, object};
use crate::store::{Assistant, ListQuery, OnExpiry, Thread, Ttl};
use crate::time::Micros;

pub(super) async fn lists_filter_by_what_is_contained_and_have_pages<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    for n in 0..5_i64 {
        let metadata = json!({ "even": n % 2 == 0, "deep": { "n": n, "all": true }, "word": "w" });
        let mut thread = Thread::new(format!("t{n}"), object(metadata), Micros(n / 2));
        thread.values = if n == 4 { json!(null) } else { json!({ "n": n }) };
        store.create_thread(thread).await.expect("an answer").expect("it is new");
    }
    let ids = |query: ListQuery| async {
        let count = store.count_threads(query.clone()).await.expect("an answer");
        let page = store.threads(query).await.expect("an answer");
        let ids: Vec<_> = page.rows.into_iter().map(|thread| thread.thread_id).collect();
        (ids.join(" "), page.more, count)
    };
    let even = ListQuery {
        metadata: object(json!({ "even": true, "deep": { "all": true }, "word": "w" })),
        limit: 2,
        ..ListQuery::default()
    };
    assert_eq!(ids(even.clone()).await, ("t4 t2".to_owned(), true, 3));
    assert_eq!(ids(ListQuery { offset: 2, ..even }).await, ("t0".to_owned(), false, 3));
    let valued = ListQuery { values: object(json!({ "n": 3 })), ..ListQuery::default() };
    assert_eq!(ids(valued).await.0, "t3", "a thread without values does not match");
    let exact =
        ListQuery { metadata: object(json!({ "deep": { "n": 1.0 } })), ..ListQuery::default() };
    assert_eq!(ids(exact).await.2, 0, "1 is not 1.0");
    let oldest = ListQuery { descending: false, limit: 3, ..ListQuery::default() };
    assert_eq!(ids(oldest).await.0, "t0 t1 t2", "those of the same time as they were made");
    let busy = ListQuery { equal: vec![("status", vec!["busy".into()])], ..ListQuery::default() };
    assert_eq!(ids(busy).await.2, 0);
    let one = ListQuery {
        equal: vec![("thread_id", vec!["t1".into(), "t3".into()]), ("status", vec!["idle".into()])],
        ..ListQuery::default()
    };
    assert_eq!(ids(one).await.0, "t3 t1");
}

/// PostgreSQL has no NUL in its texts, but JSON has.
pub(super) async fn any_text_can_be_kept<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    let nul = json!({ "a\0b": "c\0d", "plain": "x", "big": 1e308, "small": 5e-324, "n": u64::MAX });
    let thread = Thread::new("t".to_owned(), object(nul.clone()), Micros(1));
    store.create_thread(thread).await.expect("an answer").expect("it is new");
    let found = store.thread("t").await.expect("an answer").expect("a thread");
    assert_eq!(json!(found.metadata), nul);
    for part in [json!({ "plain": "x" }), json!({ "a\0b": "c\0d" }), json!({ "n": u64::MAX })] {
        let query = ListQuery { metadata: object(part.clone()), ..ListQuery::default() };
        assert_eq!(store.count_threads(query).await.expect("an answer"), 1, "{part}");
    }
    let mut assistant = assistant("x");
    assistant.name = "a\0b".to_owned();
    store.create_assistant(assistant).await.expect("an answer").expect("it is new");
    let found = store.assistant("x").await.expect("an answer").expect("an assistant");
    assert_eq!(found.name, "a\0b");
    let named = ListQuery { equal: vec![("name", vec!["a\0b".into()])], ..ListQuery::default() };
    assert_eq!(store.count_assistants(named).await.expect("an answer"), 1);
}

fn assistant(id: &str) -> Assistant {
    Assistant {
        assistant_id: id.to_owned(),
        graph_id: "g".to_owned(),
        name: "first".to_owned(),
        description: None,
        config: json!({}),
        context: json!({}),
        metadata: Map::new(),
        version: 1,
        created_at: Micros(1),
        updated_at: Micros(1),
    }
}

pub(super) async fn assistants_have_versions<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    store.create_assistant(assistant("a")).await.expect("an answer").expect("it is new");
    let other = Assistant { name: "other".to_owned(), created_at: Micros(2), ..assistant("a") };
    let known = store.create_assistant(other).await.expect("an answer").expect_err("it is there");
    assert_eq!(known.name, "first");
    let rename = |name: &'static str| {
        let change = move |assistant: &mut Assistant| name.clone_into(&mut assistant.name);
        store.update_assistant("a", Box::new(change))
    };
    assert_eq!(rename("second").await.expect("an answer").expect("it is there").version, 2);
    let back = store.use_version("a", 1).await.expect("an answer").expect("a version");
    assert_eq!((back.version, &*back.name), (1, "first"));
    assert_eq!(rename("third").await.expect("an answer").expect("it is there").version, 3);
    let versions = store.versions("a").await.expect("an answer");
    let names: Vec<_> = versions.iter().map(|version| &*version.name).collect();
    assert_eq!(names, ["third", "second", "first"]);
    assert!(store.use_version("a", 9).await.expect("an answer").is_none());
    assert!(store.delete_assistant("a").await.expect("an answer"));
    assert!(!store.delete_assistant("a").await.expect("an answer"));
    assert!(store.versions("a").await.expect("an answer").is_empty());
}

pub(super) async fn an_assistant_is_found_by_a_part_of_its_name<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    for (id, name) in [("a", "Übersetzer"), ("b", "100% sure_ly"), ("c", "other")] {
        let named = Assistant { name: name.to_owned(), ..assistant(id) };
        store.create_assistant(named).await.expect("an answer").expect("it is new");
    }
    for (part, expected) in [("über", "a"), ("% SURE_", "b"), ("_", "b"), ("x", ""), ("r", "abc")]
    {
        let name = Some(part.to_owned());
        let query = ListQuery { name, descending: false, ..ListQuery::default() };
        assert_eq!(
            store.count_assistants(query.clone()).await.expect("an answer"),
            expected.len() as u64
        );
        let page = store.assistants(query).await.expect("an answer");
        let ids: String = page.rows.into_iter().map(|found| found.assistant_id).collect();
        assert_eq!(ids, expected, "{part}");
    }
}

pub(super) async fn threads_that_expire_are_found<P: Place>() {
    let place = P::new().await;
    let store = &*place.open().await;
    let ttl = Ttl { minutes: 5.0, on_expiry: OnExpiry::Delete, done_at: None };
    for (id, ttl) in [("kept", None), ("short", Some(ttl)), ("changed", None)] {
        let thread = Thread { ttl, ..Thread::new(id.to_owned(), Map::new(), Micros(1)) };
        store.create_thread(thread).await.expect("an answer").expect("it is new");
    }
    let change = Box::new(move |thread: &mut Thread| thread.ttl = Some(ttl));
    store.update_thread("changed", change).await.expect("an answer");
    let query = ListQuery { expiring: true, descending: false, ..ListQuery::default() };
    let page = store.threads(query).await.expect("an answer");
    let ids: Vec<_> = page.rows.into_iter().map(|thread| thread.thread_id).collect();
    assert_eq!(ids, ["short", "changed"]);
}
