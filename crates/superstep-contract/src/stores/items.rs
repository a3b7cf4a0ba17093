//! Keeping and reading items.

use superstep_checkpoint::{Error, Item, PutItem, Search, StoreAnswer, StoreOp, Value};

use super::{Subject, keys, map, ns};
use crate::checkpointers::kit::{Case, Fault, ensure, fail, same};

async fn read(subject: &Subject, labels: &[&str], key: &str) -> Result<Item, Fault> {
    match subject.store.get(&ns(labels), key).await? {
        Some(item) => Ok(item),
        None => fail(format_args!("no item `{key}` in {labels:?}")),
    }
}

pub(super) async fn an_item_is_kept_until_it_is_deleted(subject: Subject) -> Case {
    let (store, at) = (&subject.store, ns(&["users", "ann"]));
    same(store.get(&at, "k").await?, None, "before it was put")?;
    store.put(&at, "k", 1.into()).await?;
    let item = read(&subject, &["users", "ann"], "k").await?;
    same((item.namespace, &*item.key, item.value), (at.clone(), "k", 1.into()), "the item")?;
    same(store.get(&at, "other").await?, None, "another key")?;
    same(store.get(&ns(&["users"]), "k").await?, None, "another namespace")?;
    store.delete(&at, "k").await?;
    store.delete(&at, "k").await?;
    same(store.get(&at, "k").await?, None, "after it was deleted")
}

pub(super) async fn a_value_comes_back_as_it_was(subject: Subject) -> Case {
    let values = [
        Value::Null,
        true.into(),
        i64::MIN.into(),
        u64::MAX.into(),
        0.1.into(),
        1e300.into(),
        "Zo\u{eb} \u{1f980} \" \\ '".into(),
        Value::List(vec![Value::Null, 2.5.into(), Value::List(vec![])]),
        map(&[("b", 1.into()), ("a", map(&[("x.y", "z".into())])), ("", Value::Null)]),
    ];
    for value in values {
        subject.store.put(&ns(&["n"]), "k", value.clone()).await?;
        same(read(&subject, &["n"], "k").await?.value, value, "the value")?;
    }
    Ok(())
}

pub(super) async fn an_item_that_is_put_again_keeps_the_time_it_was_first_put(
    subject: Subject,
) -> Case {
    subject.store.put(&ns(&["n"]), "k", 1.into()).await?;
    let first = read(&subject, &["n"], "k").await?;
    subject.store.put(&ns(&["n"]), "k", 2.into()).await?;
    let second = read(&subject, &["n"], "k").await?;
    same(second.created_at, first.created_at, "when it was first put")?;
    ensure(second.updated_at > first.updated_at, "the second put is not later than the first")
}

pub(super) async fn what_one_handle_put_the_other_sees(subject: Subject) -> Case {
    let at = ns(&["n"]);
    subject.store.put(&at, "k", 1.into()).await?;
    let seen = subject.other.get(&at, "k").await?.map(|item| item.value);
    same(seen, Some(1.into()), "what the other handle sees")?;
    subject.other.delete(&at, "k").await?;
    same(subject.store.get(&at, "k").await?, None, "what the other handle deleted")
}

pub(super) async fn keys_of_any_text_are_apart(subject: Subject) -> Case {
    let at = ns(&["n", "a'b\\ %_*?["]);
    let names = ["k", "K", "k ", "", "a.b", "%", "_", "'; DROP TABLE store; --", "\u{1f980}"];
    for (nth, key) in (0..).zip(names) {
        subject.store.put(&at, key, Value::Int(nth)).await?;
    }
    for (nth, key) in (0..).zip(names) {
        let found = subject.store.get(&at, key).await?.map(|item| item.value);
        same(found, Some(Value::Int(nth)), key)?;
    }
    Ok(())
}

pub(super) async fn a_batch_reads_what_was_there_before(subject: Subject) -> Case {
    let at = ns(&["n"]);
    subject.store.put(&at, "old", 1.into()).await?;
    let get = |key: &str| StoreOp::Get { namespace: at.clone(), key: key.into(), refresh: None };
    let answers = subject
        .store
        .batch(vec![
            StoreOp::Put(PutItem::new(&at, "new", 1)),
            get("new"),
            StoreOp::Delete { namespace: at.clone(), key: "old".into() },
            get("old"),
            StoreOp::Search(Search::below(["n"])),
        ])
        .await?;
    same(answers.len(), 5, "the number of answers")?;
    same(&answers[0], &StoreAnswer::Done, "the answer to a put")?;
    same(&answers[1], &StoreAnswer::Item(None), "what was put in the same batch")?;
    ensure(matches!(&answers[3], StoreAnswer::Item(Some(_))), "what was deleted is not read")?;
    match &answers[4] {
        StoreAnswer::Items(items) => same(keys(items), vec!["old"], "what was found")?,
        other => fail(format_args!("a search was answered with {other:?}"))?,
    }
    same(subject.store.batch(vec![]).await?, vec![], "the answers to nothing")
}

pub(super) async fn the_last_of_several_puts_of_a_batch_counts(subject: Subject) -> Case {
    let at = ns(&["n"]);
    let put = |key: &str, value: i32| StoreOp::Put(PutItem::new(&at, key, value));
    let delete = |key: &str| StoreOp::Delete { namespace: at.clone(), key: key.into() };
    let ops = vec![put("b", 1), put("a", 1), delete("b"), put("a", 2), put("b", 3), put("c", 1)];
    subject.store.batch(ops).await?;
    subject.store.batch(vec![put("c", 2), delete("c")]).await?;
    let found = subject.store.search(Search::below(["n"])).await?;
    same(keys(&found), vec!["a", "b"], "what is kept")?;
    let values: Vec<Value> = found.into_iter().map(|item| item.value).collect();
    same(values, vec![2.into(), 3.into()], "the values")
}

pub(super) async fn a_batch_with_something_refused_does_nothing(subject: Subject) -> Case {
    let good = StoreOp::Put(PutItem::new(&ns(&["n"]), "k", 1));
    let bad = StoreOp::Put(PutItem::new(&ns(&["a.b"]), "k", 1));
    let refused = subject.store.batch(vec![good, bad]).await;
    ensure(matches!(refused, Err(Error::Invalid(_))), "a label with a dot was taken")?;
    same(subject.store.get(&ns(&["n"]), "k").await?, None, "the rest of the batch")
}

pub(super) async fn namespaces_that_cannot_be_are_refused(subject: Subject) -> Case {
    let store = &subject.store;
    let none: &[&str] = &[];
    for labels in [none, &[""], &["a", ""], &["a.b"], &["a\0"], &["langgraph"]] {
        let at = ns(labels);
        let put = matches!(store.put(&at, "k", 1.into()).await, Err(Error::Invalid(_)));
        let get = matches!(store.get(&at, "k").await, Err(Error::Invalid(_)));
        let delete = matches!(store.delete(&at, "k").await, Err(Error::Invalid(_)));
        ensure(put && get && delete, format_args!("namespace {labels:?} was taken"))?;
    }
    Ok(())
}
