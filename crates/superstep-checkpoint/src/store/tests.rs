use super::*;

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
