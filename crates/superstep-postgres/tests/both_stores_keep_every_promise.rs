//! The store in PostgreSQL answers as the one in memory does: the same cases run on both. SQL compares, orders and
//! matches by rules of its own, which must not show.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use common::Database;
use serde_json::json;
use superstep_checkpoint::{
    AnyStore, Comparison, Error, Item, MemoryStore, Namespace, NamespaceQuery, PutItem, Search,
    StoreAnswer, StoreOp, Value,
};
use superstep_postgres::PostgresStore;

fn ns(labels: &[&str]) -> Namespace {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

fn keys(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.key.as_str()).collect()
}

/// An empty store of each kind, and the database that one of them is in.
async fn stores() -> (Database, [AnyStore; 2]) {
    let database = Database::new().await;
    let store = PostgresStore::connect(database.url()).await.unwrap();
    (database, [AnyStore::new(MemoryStore::new()), AnyStore::new(store)])
}

#[tokio::test]
async fn an_item_is_kept_until_it_is_deleted() {
    let (_database, stores) = stores().await;
    for store in stores {
        let at = ns(&["users", "a'b\\ %_"]);
        for value in [json!({"a": [1, 2.5, null, "é"]}), json!("text"), json!(5), json!(null)] {
            let value = Value::from(value);
            store.put(&at, "k", value.clone()).await.unwrap();
            let item = store.get(&at, "k").await.unwrap().unwrap();
            assert_eq!((item.namespace, &*item.key, item.value), (at.clone(), "k", value));
        }
        let first = store.get(&at, "k").await.unwrap().unwrap();
        store.put(&at, "k", 6.into()).await.unwrap();
        let second = store.get(&at, "k").await.unwrap().unwrap();
        assert_eq!(second.created_at, first.created_at);
        assert!(second.updated_at > first.updated_at);
        assert_eq!(store.get(&at, "other").await.unwrap(), None);
        store.delete(&at, "k").await.unwrap();
        store.delete(&at, "k").await.unwrap();
        assert_eq!(store.get(&at, "k").await.unwrap(), None);
    }
}

#[tokio::test]
async fn items_are_found_by_whole_labels_in_the_order_of_the_last_put() {
    let (_database, stores) = stores().await;
    for store in stores {
        for (labels, key) in [
            (&["u", "ann"][..], "a"),
            (&["u", "bob"], "b"),
            (&["u", "ann", "old"], "c"),
            (&["u_1"], "d"),
            (&["U"], "e"),
            (&["u%"], "f"),
            (&["u\\"], "g"),
        ] {
            store.put(&ns(labels), key, Value::Null).await.unwrap();
        }
        store.put(&ns(&["u", "ann"]), "a", 1.into()).await.unwrap();
        let none: [&str; 0] = [];
        for (search, expected) in [
            (Search::below(none), vec!["b", "c", "d", "e", "f", "g", "a"]),
            (Search::below(["u"]), vec!["b", "c", "a"]),
            (Search::below(["u", "ann"]), vec!["c", "a"]),
            (Search::below(["u_1"]), vec!["d"]),
            (Search::below(["u%"]), vec!["f"]),
            (Search::below(["u\\"]), vec!["g"]),
            (Search::below(["x"]), vec![]),
            (Search::below(none).limit(2).offset(1), vec!["c", "d"]),
            (Search::below(none).limit(usize::MAX).offset(6), vec!["a"]),
        ] {
            let found = store.search(search.clone()).await.unwrap();
            assert_eq!(keys(&found), expected, "{search:?} in {store:?}");
        }
    }
}

#[tokio::test]
async fn comparisons_know_numbers_from_text() {
    let (_database, stores) = stores().await;
    for store in stores {
        let at = ns(&["n"]);
        for (key, value) in [
            ("nine", json!({"n": 9})),
            ("fifty", json!({"n": 50.0})),
            ("hundred", json!({"n": 100})),
            ("greatest", json!({"n": u64::MAX})),
            ("text", json!({"n": "70"})),
            ("Text", json!({"n": "Zoe"})),
            ("list", json!({"n": [1]})),
            ("null", json!({"n": null})),
            ("missing", json!({})),
            ("no map", json!(9)),
        ] {
            store.put(&at, key, value.into()).await.unwrap();
        }
        let all = || Search::below(["n"]).limit(100);
        let nearly: Value = (u64::MAX - 1).into();
        for (search, expected) in [
            (all().compare("n", Comparison::Greater, 10), vec!["fifty", "hundred", "greatest"]),
            (all().compare("n", Comparison::AtLeast, 100.0), vec!["hundred", "greatest"]),
            (all().compare("n", Comparison::Less, 50), vec!["nine"]),
            (all().compare("n", Comparison::AtMost, 50), vec!["nine", "fifty"]),
            (all().compare("n", Comparison::Greater, nearly), vec!["greatest"]),
            (all().compare("n", Comparison::Greater, "7"), vec!["text", "Text"]),
            (all().compare("n", Comparison::Less, "a"), vec!["text", "Text"]),
            (all().compare("n", Comparison::Less, true), vec![]),
            (all().filter("n", 50), vec!["fifty"]),
            (all().filter("n", "70"), vec!["text"]),
            (all().filter("n", Value::from(json!([1]))), vec!["list"]),
            (all().filter("n", Value::Null), vec!["null", "missing", "no map"]),
            (
                all().compare("n", Comparison::NotEqual, 50),
                vec![
                    "nine", "hundred", "greatest", "text", "Text", "list", "null", "missing",
                    "no map",
                ],
            ),
            (all().filter("'; DROP TABLE store; --", 1), vec![]),
        ] {
            let found = store.search(search.clone()).await.unwrap();
            assert_eq!(keys(&found), expected, "{search:?} in {store:?}");
        }
    }
}

#[tokio::test]
async fn a_batch_reads_what_was_there_before_and_the_last_put_counts() {
    let (_database, stores) = stores().await;
    for store in stores {
        let at = ns(&["n"]);
        store.put(&at, "old", 0.into()).await.unwrap();
        let put = |key: &str, value: i32| StoreOp::Put(PutItem::new(&at, key, value));
        let get = StoreOp::Get { namespace: at.clone(), key: "new".into(), refresh: None };
        let delete = |key: &str| StoreOp::Delete { namespace: at.clone(), key: key.into() };
        let list = StoreOp::Namespaces(NamespaceQuery::default());
        let ops = vec![
            put("b", 1),
            put("new", 1),
            get,
            put("new", 2),
            delete("old"),
            delete("b"),
            put("b", 3),
            list,
        ];
        let answers = store.batch(ops).await.unwrap();
        assert_eq!(answers[2], StoreAnswer::Item(None));
        assert_eq!(answers[7], StoreAnswer::Namespaces(vec![at.clone()]));
        let found = store.search(Search::below(["n"])).await.unwrap();
        assert_eq!(keys(&found), ["new", "b"]);
        assert_eq!((&found[0].value, &found[1].value), (&2.into(), &3.into()));
        assert_eq!(store.batch(vec![]).await.unwrap(), []);

        let refused = StoreOp::Put(PutItem::new(&ns(&["a.b"]), "k", 1));
        assert!(matches!(store.batch(vec![put("new", 9), refused]).await, Err(Error::Invalid(_))));
        assert_eq!(store.get(&at, "new").await.unwrap().unwrap().value, 2.into());
    }
}

#[tokio::test]
async fn namespaces_are_found_by_pattern_depth_and_page() {
    let (_database, stores) = stores().await;
    for store in stores {
        for labels in [&["u", "ann"][..], &["u", "bob"], &["u", "ann", "old"], &["u_2"], &["U"]] {
            store.put(&ns(labels), "k", Value::Null).await.unwrap();
        }
        let cases: [(NamespaceQuery, &[&[&str]]); 6] = [
            (NamespaceQuery::below(["u"]), &[&["u", "ann"], &["u", "ann", "old"], &["u", "bob"]]),
            (NamespaceQuery::below(["*", "ann"]), &[&["u", "ann"], &["u", "ann", "old"]]),
            (NamespaceQuery::default().ending(["ann", "*"]), &[&["u", "ann", "old"]]),
            (NamespaceQuery::default().max_depth(1), &[&["U"], &["u"], &["u_2"]]),
            (NamespaceQuery::default().max_depth(1).page(1, 1), &[&["u"]]),
            (NamespaceQuery::below(["nobody"]), &[]),
        ];
        for (query, expected) in cases {
            let found = store.namespaces(query.clone()).await.unwrap();
            let expected: Vec<_> = expected.iter().map(|labels| ns(labels)).collect();
            assert_eq!(found, expected, "{query:?} in {store:?}");
        }
    }
}
