//! Items that are kept for a time only.

use std::time::Duration;

use superstep_checkpoint::{NamespaceQuery, PutItem, Search, StoreAnswer, StoreOp};

use super::{Subject, keys, ns};
use crate::checkpointers::kit::{Case, ensure, same};

async fn put(subject: &Subject, key: &str, minutes: u64) -> Case {
    let ttl = Duration::from_secs(60 * minutes);
    Ok(subject.store.put_item(PutItem::new(&ns(&["n"]), key, 1).ttl(ttl)).await?)
}

async fn is_there(
    subject: &Subject,
    key: &str,
    refresh: bool,
) -> Result<bool, crate::checkpointers::kit::Fault> {
    let get = StoreOp::Get { namespace: ns(&["n"]), key: key.into(), refresh: Some(refresh) };
    let answers = subject.store.batch(vec![get]).await?;
    Ok(matches!(answers.first(), Some(StoreAnswer::Item(Some(_)))))
}

pub(super) async fn an_item_whose_time_is_over_is_gone(subject: Subject) -> Case {
    put(&subject, "short", 5).await?;
    put(&subject, "long", 60).await?;
    subject.store.put(&ns(&["n"]), "for ever", 1.into()).await?;
    subject
        .store
        .put_item(PutItem::new(&ns(&["gone"]), "k", 1).ttl(Duration::from_secs(60)))
        .await?;
    subject.pass(6).await?;
    ensure(!is_there(&subject, "short", false).await?, "it is given after its time")?;
    let found = subject.store.search(Search::below(["n"])).await?;
    same(keys(&found), vec!["long", "for ever"], "what is found")?;
    let spaces = subject.store.namespaces(NamespaceQuery::default()).await?;
    same(spaces, vec![ns(&["n"])], "the namespaces")
}

pub(super) async fn reading_starts_the_time_anew(subject: Subject) -> Case {
    put(&subject, "got", 10).await?;
    put(&subject, "found", 10).await?;
    subject.pass(8).await?;
    ensure(is_there(&subject, "got", true).await?, "it ended too early")?;
    let search = Search::below(["n"]).offset(1).refresh(true);
    same(keys(&subject.store.search(search).await?), vec!["found"], "what is found")?;
    subject.pass(8).await?;
    ensure(is_there(&subject, "got", false).await?, "getting it did not start its time anew")?;
    ensure(is_there(&subject, "found", false).await?, "finding it did not start its time anew")
}

pub(super) async fn a_reader_may_leave_the_time_alone(subject: Subject) -> Case {
    put(&subject, "k", 10).await?;
    subject.pass(8).await?;
    ensure(is_there(&subject, "k", false).await?, "it ended too early")?;
    subject.store.search(Search::below(["n"]).refresh(false)).await?;
    subject.pass(3).await?;
    ensure(!is_there(&subject, "k", false).await?, "reading it started its time anew")
}

pub(super) async fn sweeping_removes_what_is_over_and_nothing_else(subject: Subject) -> Case {
    put(&subject, "a", 5).await?;
    put(&subject, "b", 5).await?;
    put(&subject, "c", 60).await?;
    subject.store.put(&ns(&["n"]), "d", 1.into()).await?;
    same(subject.store.sweep().await?, 0, "what was swept too early")?;
    subject.pass(6).await?;
    same(subject.store.sweep().await?, 2, "what was swept")?;
    same(subject.store.sweep().await?, 0, "what was swept again")?;
    same(keys(&subject.store.search(Search::below(["n"])).await?), vec!["c", "d"], "what is left")
}

pub(super) async fn an_item_that_is_put_after_its_end_is_a_new_one(subject: Subject) -> Case {
    put(&subject, "k", 5).await?;
    let first = subject.store.get(&ns(&["n"]), "k").await?;
    subject.pass(6).await?;
    put(&subject, "k", 5).await?;
    let second = subject.store.get(&ns(&["n"]), "k").await?;
    let times = first.zip(second).map(|(first, second)| second.created_at > first.created_at);
    same(times, Some(true), "whether it was first put later")
}
