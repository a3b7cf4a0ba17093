//! Listing namespaces.

use superstep_checkpoint::{NamespaceQuery, Value};

use super::{Subject, ns};
use crate::checkpointers::kit::{Case, same};

async fn filled(subject: &Subject) -> Case {
    for labels in [&["u", "bob"][..], &["u", "ann"], &["u", "ann", "old"], &["u_2"], &["U"]] {
        subject.store.put(&ns(labels), "k", Value::Null).await?;
        subject.store.put(&ns(labels), "l", Value::Null).await?;
    }
    Ok(())
}

async fn lists(subject: &Subject, query: NamespaceQuery, wanted: &[&[&str]]) -> Case {
    let found = subject.store.namespaces(query.clone()).await?;
    let wanted: Vec<_> = wanted.iter().map(|labels| ns(labels)).collect();
    same(found, wanted, &format!("{query:?}"))
}

pub(super) async fn namespaces_are_listed_in_the_order_of_their_labels(subject: Subject) -> Case {
    filled(&subject).await?;
    let all: &[&[&str]] = &[&["U"], &["u", "ann"], &["u", "ann", "old"], &["u", "bob"], &["u_2"]];
    lists(&subject, NamespaceQuery::default(), all).await?;
    lists(&subject, NamespaceQuery::default().page(1, 2), &all[1..3]).await?;
    lists(&subject, NamespaceQuery::default().page(9, 2), &[]).await
}

pub(super) async fn namespaces_are_found_by_pattern(subject: Subject) -> Case {
    filled(&subject).await?;
    let below: &[&[&str]] = &[&["u", "ann"], &["u", "ann", "old"], &["u", "bob"]];
    lists(&subject, NamespaceQuery::below(["u"]), below).await?;
    lists(&subject, NamespaceQuery::below(["*", "ann"]), &below[..2]).await?;
    lists(&subject, NamespaceQuery::default().ending(["ann", "*"]), &below[1..2]).await?;
    lists(&subject, NamespaceQuery::below(["u"]).ending(["bob"]), &below[2..]).await?;
    lists(&subject, NamespaceQuery::below(["nobody"]), &[]).await
}

pub(super) async fn namespaces_are_cut_and_listed_once(subject: Subject) -> Case {
    filled(&subject).await?;
    let one: &[&[&str]] = &[&["U"], &["u"], &["u_2"]];
    lists(&subject, NamespaceQuery::default().max_depth(1), one).await?;
    lists(&subject, NamespaceQuery::default().max_depth(1).page(1, 1), &one[1..2]).await
}

pub(super) async fn an_empty_namespace_is_not_listed(subject: Subject) -> Case {
    subject.store.put(&ns(&["a"]), "k", Value::Null).await?;
    subject.store.delete(&ns(&["a"]), "k").await?;
    lists(&subject, NamespaceQuery::default(), &[]).await
}
