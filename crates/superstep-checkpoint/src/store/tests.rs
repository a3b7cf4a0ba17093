use super::*;
use crate::Map;

fn ns(labels: &[&str]) -> Namespace {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

fn keys(items: &[Item]) -> Vec<&str> {
    items.iter().map(|item| item.key.as_str()).collect()
}

/// A store with items `a` to `d`, put in that order.
async fn filled() -> AnyStore {
    let store = AnyStore::new(MemoryStore::new());
    for (labels, key, kind) in [
        (&["users", "ann"][..], "a", "note"),
        (&["users", "bob"], "b", "task"),
        (&["users", "ann", "old"], "c", "note"),
        (&["users_2"], "d", "note"),
    ] {
        let value = [("kind", kind)].into_iter().collect();
        store.put(&ns(labels), key, value).await.expect("stored");
    }
    store
}

#[tokio::test]
async fn an_item_is_kept_until_it_is_deleted() {
    let store = filled().await;
    let at = ns(&["users", "ann"]);
    let item = store.get(&at, "a").await.expect("read").expect("an item");
    assert_eq!((item.namespace.clone(), item.key.as_str()), (at.clone(), "a"));
    assert_eq!(item.created_at, item.updated_at);
    assert_eq!(store.get(&at, "b").await.expect("read"), None);

    store.put(&at, "a", 5.into()).await.expect("stored");
    let newer = store.get(&at, "a").await.expect("read").expect("an item");
    assert_eq!((newer.value, newer.created_at), (5.into(), item.created_at));
    assert!(newer.updated_at > item.updated_at);

    store.delete(&at, "a").await.expect("deleted");
    store.delete(&at, "a").await.expect("nothing to delete");
    assert_eq!(store.get(&at, "a").await.expect("read"), None);
}

#[tokio::test]
async fn search_finds_by_whole_labels_in_the_order_of_the_last_put() {
    let store = filled().await;
    store
        .put(&ns(&["users", "ann"]), "a", [("kind", "note")].into_iter().collect())
        .await
        .expect("stored");
    let none: [&str; 0] = [];
    let cases = [
        (Search::below(none), vec!["b", "c", "d", "a"]),
        (Search::below(["users"]), vec!["b", "c", "a"]),
        (Search::below(["users", "ann"]), vec!["c", "a"]),
        (Search::below(["user"]), vec![]),
        (Search::below(none).filter("kind", "note"), vec!["c", "d", "a"]),
        (Search::below(none).filter("kind", "note").filter("x", 1), vec![]),
        (Search::below(none).limit(2), vec!["b", "c"]),
        (Search::below(none).limit(2).offset(3), vec!["a"]),
        (Search::below(none).offset(4), vec![]),
    ];
    for (search, expected) in cases {
        let found = store.search(search.clone()).await.expect("items");
        assert_eq!(keys(&found), expected, "{search:?}");
    }
}

#[tokio::test]
async fn a_search_gives_ten_unless_asked_for_more() {
    let store = AnyStore::new(MemoryStore::new());
    for number in 0..12 {
        store.put(&ns(&["n"]), &format!("{number:02}"), number.into()).await.expect("stored");
    }
    assert_eq!(store.search(Search::below(["n"])).await.expect("items").len(), 10);
    assert_eq!(store.search(Search::below(["n"]).limit(20)).await.expect("items").len(), 12);
}

#[tokio::test]
async fn namespaces_are_listed_cut_to_a_depth() {
    let store = filled().await;
    type Labels<'a> = &'a [&'a str];
    let cases: [(Labels<'_>, Option<usize>, &[Labels<'_>]); 5] = [
        (
            &[],
            None,
            &[&["users", "ann"], &["users", "ann", "old"], &["users", "bob"], &["users_2"]],
        ),
        (&[], Some(1), &[&["users"], &["users_2"]]),
        (&["users"], Some(2), &[&["users", "ann"], &["users", "bob"]]),
        (&["users", "ann", "old"], None, &[&["users", "ann", "old"]]),
        (&["nobody"], None, &[]),
    ];
    for (prefix, depth, expected) in cases {
        let found = store.list_namespaces(&ns(prefix), depth).await.expect("namespaces");
        let expected: Vec<_> = expected.iter().map(|labels| ns(labels)).collect();
        assert_eq!(found, expected, "{prefix:?} {depth:?}");
    }
    store.delete(&ns(&["users_2"]), "d").await.expect("deleted");
    let left = store.list_namespaces(&[], Some(1)).await.expect("namespaces");
    assert_eq!(left, [ns(&["users"])]);
}

#[tokio::test]
async fn namespaces_that_the_other_engine_refuses_are_refused() {
    let store = AnyStore::new(MemoryStore::new());
    let cases: [(&[&str], &str); 5] = [
        (&[], "a namespace needs at least one label"),
        (&["a", ""], "a label of a namespace cannot be empty"),
        (&["a.b"], "label \"a.b\" of a namespace contains a dot or NUL"),
        (&["a\0"], "label \"a\\0\" of a namespace contains a dot or NUL"),
        (&["langgraph"], "a namespace cannot begin with `langgraph`; choose another label"),
    ];
    for (labels, message) in cases {
        let at = ns(labels);
        let errors = [
            store.put(&at, "k", Value::Null).await.expect_err("refused"),
            store.get(&at, "k").await.expect_err("refused"),
            store.delete(&at, "k").await.expect_err("refused"),
        ];
        for error in errors {
            assert!(matches!(error, Error::Invalid(_)));
            assert_eq!(error.to_string(), message);
        }
    }
    assert!(matches!(store.search(Search::below(["a.b"])).await, Err(Error::Invalid(_))));
    assert!(matches!(store.list_namespaces(&ns(&[""]), None).await, Err(Error::Invalid(_))));
    assert!(store.put(&ns(&["a", "langgraph"]), "k", Value::Null).await.is_ok());
}

#[tokio::test]
async fn comparisons_know_numbers_from_text() {
    let store = AnyStore::new(MemoryStore::new());
    let at = ns(&["n"]);
    let values: [(&str, Value); 6] = [
        ("nine", 9.into()),
        ("fifty", 50.0.into()),
        ("hundred", 100.into()),
        ("greatest", u64::MAX.into()),
        ("text", "70".into()),
        ("null", Value::Null),
    ];
    for (key, value) in values {
        store.put(&at, key, [("n", value)].into_iter().collect()).await.expect("stored");
    }
    store.put(&at, "missing", Map::new().into()).await.expect("stored");
    let all = || Search::below(["n"]);
    let nearly: Value = (u64::MAX - 1).into();
    let cases = [
        (all().compare("n", Comparison::Greater, 10), vec!["fifty", "hundred", "greatest"]),
        (all().compare("n", Comparison::AtLeast, 100), vec!["hundred", "greatest"]),
        (all().compare("n", Comparison::Less, 50), vec!["nine"]),
        (all().compare("n", Comparison::AtMost, 50), vec!["nine", "fifty"]),
        (all().compare("n", Comparison::Greater, nearly), vec!["greatest"]),
        (all().compare("n", Comparison::Greater, "7"), vec!["text"]),
        (all().compare("n", Comparison::Less, true), vec![]),
        (all().filter("n", 50), vec!["fifty"]),
        (all().filter("n", Value::Null), vec!["null", "missing"]),
        (
            all().compare("n", Comparison::NotEqual, 50),
            vec!["nine", "hundred", "greatest", "text", "null", "missing"],
        ),
        (
            all().compare("n", Comparison::Greater, 9).compare("n", Comparison::Less, 100),
            vec!["fifty"],
        ),
    ];
    for (search, expected) in cases {
        let found = store.search(search.clone()).await.expect("items");
        assert_eq!(keys(&found), expected, "{search:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_is_gone_when_its_time_is_over() {
    let expiry = Expiry { default_ttl: Some(Duration::from_secs(60)), refresh_on_read: false };
    let store = AnyStore::new(MemoryStore::new().with_expiry(expiry));
    let at = ns(&["n"]);
    store.put(&at, "default", 1.into()).await.expect("stored");
    let long = PutItem::new(&at, "long", 1).ttl(Duration::from_secs(600));
    store.put_item(long).await.expect("stored");
    let refreshed = StoreOp::Get { namespace: at.clone(), key: "long".into(), refresh: Some(true) };

    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(store.get(&at, "default").await.expect("read"), None);
    assert_eq!(keys(&store.search(Search::below(["n"])).await.expect("items")), ["long"]);
    assert_eq!(store.sweep().await.expect("swept"), 1);
    store.batch(vec![refreshed]).await.expect("read");

    tokio::time::advance(Duration::from_secs(599)).await;
    assert!(store.get(&at, "long").await.expect("read").is_some(), "reading did not refresh it");
    tokio::time::advance(Duration::from_secs(2)).await;
    assert_eq!(store.get(&at, "long").await.expect("read"), None);
    assert_eq!(
        store.list_namespaces(&[], None).await.expect("namespaces"),
        Vec::<Namespace>::new()
    );
}

#[tokio::test]
async fn a_batch_reads_what_was_there_before_and_the_last_put_counts() {
    let store = filled().await;
    let at = ns(&["users", "ann"]);
    let get = StoreOp::Get { namespace: at.clone(), key: "new".into(), refresh: None };
    let put = |value: i32| StoreOp::Put(PutItem::new(&at, "new", value));
    let list = StoreOp::Namespaces(NamespaceQuery::below(["users"]).max_depth(1));
    let delete = StoreOp::Delete { namespace: at.clone(), key: "a".into() };
    let answers = store.batch(vec![put(1), get, put(2), delete, list]).await.expect("answers");
    let labels = vec![ns(&["users"])];
    assert_eq!(
        answers,
        [
            StoreAnswer::Done,
            StoreAnswer::Item(None),
            StoreAnswer::Done,
            StoreAnswer::Done,
            StoreAnswer::Namespaces(labels)
        ]
    );
    let new = store.get(&at, "new").await.expect("read").expect("an item");
    assert_eq!(new.value, 2.into());
    assert_eq!(store.get(&at, "a").await.expect("read"), None);

    let refused = StoreOp::Put(PutItem::new(&ns(&["a.b"]), "k", 1));
    assert!(store.batch(vec![put(3), refused]).await.is_err());
    let new = store.get(&at, "new").await.expect("read").expect("an item");
    assert_eq!(new.value, 2.into(), "part of a refused batch was done");
}

#[tokio::test]
async fn namespaces_are_found_by_pattern_and_page() {
    let store = filled().await;
    let cases: [(NamespaceQuery, &[&[&str]]); 5] = [
        (NamespaceQuery::below(["*", "ann"]), &[&["users", "ann"], &["users", "ann", "old"]]),
        (NamespaceQuery::default().ending(["old"]), &[&["users", "ann", "old"]]),
        (NamespaceQuery::default().ending(["ann", "*"]), &[&["users", "ann", "old"]]),
        (NamespaceQuery::below(["users"]).page(1, 1), &[&["users", "ann", "old"]]),
        (NamespaceQuery::below(["*", "*", "*", "*"]), &[]),
    ];
    for (query, expected) in cases {
        let found = store.namespaces(query.clone()).await.expect("namespaces");
        let expected: Vec<_> = expected.iter().map(|labels| ns(labels)).collect();
        assert_eq!(found, expected, "{query:?}");
    }
}
