use superstep_checkpoint::{Query, Value};

use super::Subject;
use super::kit::*;

pub(crate) async fn newest_first(Subject { checkpointer, .. }: Subject) -> Case {
    let mut a = Line::new(&checkpointer, "a", "");
    let mut wanted = a.puts(3).await?;
    let mut b = Line::new(&checkpointer, "b", "");
    b.head = wanted.last().copied();
    // Ids grow with their parents', so the other thread is newer whatever the clock says.
    let mut put = b.next();
    (put.parent, put.head) = (None, None);
    wanted.push(b.store(put).await?);
    wanted.sort_by(|a, b| b.cmp(a));
    same(ids(&checkpointer, Query::default()).await?, wanted, "all checkpoints")
}

pub(crate) async fn by_thread_and_namespace(Subject { checkpointer, .. }: Subject) -> Case {
    let mut root = Line::new(&checkpointer, "a", "").puts(2).await?;
    let child = Line::new(&checkpointer, "a", "child:1").puts(1).await?;
    let other = Line::new(&checkpointer, "b", "").puts(1).await?;
    root.reverse();
    let ns = |ns: &str| Query { ns: Some(ns.into()), ..of("a") };
    same(ids(&checkpointer, ns("")).await?, root.clone(), "the root namespace")?;
    same(ids(&checkpointer, ns("child:1")).await?, child.clone(), "the child")?;
    same(ids(&checkpointer, of("b")).await?, other, "the other thread")?;
    let mut all = [root, child].concat();
    all.sort_by(|a, b| b.cmp(a));
    same(ids(&checkpointer, of("a")).await?, all, "both namespaces")?;
    let everywhere = Query { ns: Some("".into()), ..Query::default() };
    same(ids(&checkpointer, everywhere).await?.len(), 3, "the root of every thread")
}

pub(crate) async fn by_id(Subject { checkpointer, .. }: Subject) -> Case {
    let all = Line::new(&checkpointer, "a", "").puts(3).await?;
    let query = Query { id: Some(all[1]), ..of("a") };
    same(ids(&checkpointer, query).await?, [all[1]], "the one")?;
    let query = Query { id: Some(all[1]), ..of("b") };
    ensure(ids(&checkpointer, query).await?.is_empty(), "found on another thread")
}

pub(crate) async fn before_and_limit(Subject { checkpointer, .. }: Subject) -> Case {
    let all = Line::new(&checkpointer, "a", "").puts(5).await?;
    let before = Query { before: Some(all[3]), ..of("a") };
    same(ids(&checkpointer, before.clone()).await?, [all[2], all[1], all[0]], "before")?;
    let limit = |query: Query, limit| Query { limit: Some(limit), ..query };
    same(ids(&checkpointer, limit(of("a"), 2)).await?, [all[4], all[3]], "two")?;
    same(ids(&checkpointer, limit(before, 1)).await?, [all[2]], "the one before")?;
    ensure(ids(&checkpointer, limit(of("a"), 0)).await?.is_empty(), "none were asked for")?;
    same(ids(&checkpointer, limit(of("a"), 99)).await?.len(), 5, "more than there are")
}

async fn attached(
    checkpointer: &superstep_checkpoint::AnyCheckpointer,
) -> Result<Vec<superstep_checkpoint::CheckpointId>, Fault> {
    let mut line = Line::new(checkpointer, "a", "");
    let mut all = Vec::new();
    for nth in 0..4 {
        let mut put = line.next();
        put.metadata.extra.insert("even".into(), (nth % 2 == 0).into());
        put.metadata.extra.insert("nth".into(), nth.into());
        put.metadata.extra.insert("who".into(), "it's \"me\"".into());
        all.push(line.store(put).await?);
    }
    Ok(all)
}

fn filtered(filter: &[(&str, Value)]) -> Query {
    let filter = filter.iter().map(|(key, value)| ((*key).into(), value.clone())).collect();
    Query { filter, ..of("a") }
}

pub(crate) async fn by_metadata(Subject { checkpointer, .. }: Subject) -> Case {
    let all = attached(&checkpointer).await?;
    for (filter, wanted) in [
        (("source", Value::from("input")), vec![all[0]]),
        (("source", "loop".into()), vec![all[3], all[2], all[1]]),
        (("step", 1.into()), vec![all[2]]),
        (("step", (-1).into()), vec![all[0]]),
        (("even", true.into()), vec![all[2], all[0]]),
        (("nth", 3.into()), vec![all[3]]),
        (("who", "it's \"me\"".into()), vec![all[3], all[2], all[1], all[0]]),
        (("who", "me".into()), vec![]),
        (("missing", 1.into()), vec![]),
    ] {
        let what = format!("{filter:?}");
        same(ids(&checkpointer, filtered(&[filter])).await?, wanted, &what)?;
    }
    let one =
        Query { limit: Some(1), before: Some(all[3]), ..filtered(&[("source", "loop".into())]) };
    same(ids(&checkpointer, one).await?, [all[2]], "the newest that matches")
}

pub(crate) async fn all_keys_of_a_filter_must_match(Subject { checkpointer, .. }: Subject) -> Case {
    let all = attached(&checkpointer).await?;
    let both = |nth: i64| filtered(&[("even", true.into()), ("nth", nth.into())]);
    same(ids(&checkpointer, both(2)).await?, [all[2]], "both match")?;
    ensure(ids(&checkpointer, both(3)).await?.is_empty(), "only one of them matches")
}

pub(crate) async fn with_their_writes(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "a", "");
    let all = line.puts(2).await?;
    line.add(all[0], vec![writes(2, &[("a", 1)]), writes(1, &[("b", 2)])]).await?;
    let listed = checkpointer.list(of("a")).await?;
    ensure(listed[0].writes.is_empty(), "the newest has no writes")?;
    same(shown(&listed[1].writes), ["1 1 0 b=2", "2 2 0 a=1"], "writes of the older")?;
    same(listed[0].parent, Some(all[0]), "the parent")
}

pub(crate) async fn nothing_where_nothing_matches(Subject { checkpointer, .. }: Subject) -> Case {
    ensure(
        ids(&checkpointer, Query::default()).await?.is_empty(),
        "an empty checkpointer lists something",
    )?;
    Line::new(&checkpointer, "a", "").put().await?;
    ensure(ids(&checkpointer, of("b")).await?.is_empty(), "an unknown thread lists something")
}

pub(crate) async fn an_abandoned_list_blocks_nobody(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "a", "");
    line.puts(20).await?;
    for _ in 0..20 {
        super::abandoned::poll_once(subject.checkpointer.list(Query::default()));
        line.put().await?;
    }
    let listed = subject.checkpointer.list(of("a")).await?;
    // A list in hand holds nothing either.
    line.put().await?;
    same(listed.len(), 40, "checkpoints")
}
