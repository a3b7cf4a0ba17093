use std::collections::BTreeMap;
use std::sync::Arc;

use superstep_checkpoint::{Blob, CheckpointId, DeltaHistory, Ext, SharedMap, Value, Version};

use super::Subject;
use super::kit::*;

fn snapshot(value: i64) -> Blob {
    blob(Value::Ext(Box::new(Ext::Snapshot(value.into()))))
}

fn names(channels: &[&str]) -> Vec<Arc<str>> {
    channels.iter().map(|name| (*name).into()).collect()
}

type Histories = BTreeMap<Arc<str>, DeltaHistory>;

async fn history(line: &Line, id: CheckpointId, channels: &[&str]) -> Result<Histories, Fault> {
    Ok(line.checkpointer.delta_history(&line.thread, &line.ns, id, &names(channels)).await?)
}

/// Stores the next checkpoint, with these values for delta channels, and writes next to it.
async fn step(
    line: &mut Line,
    seeds: &[(&str, Blob)],
    written: &[(&str, i64)],
) -> Result<CheckpointId, Fault> {
    let mut put = line.next();
    put.checkpoint.channel_values = SharedMap::new_sync();
    put.checkpoint.channel_versions = SharedMap::new_sync();
    put.changed.clear();
    for (name, seed) in seeds {
        put.checkpoint.channel_values.insert_mut((*name).into(), seed.clone());
        let version = Version::after(line.step as u64, 1 << 59);
        put.checkpoint.channel_versions.insert_mut((*name).into(), version);
        put.changed.push((*name).into());
    }
    let id = line.store(put).await?;
    line.add(id, vec![writes(1, written)]).await?;
    Ok(id)
}

fn wanted(seed: Option<Blob>, writes: &[i64]) -> DeltaHistory {
    let writes = writes.iter().map(|value| blob(*value)).collect();
    DeltaHistory { seed, writes, ..DeltaHistory::default() }
}

pub(crate) async fn writes_come_oldest_first(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    step(&mut line, &[], &[("log", 1), ("other", 0), ("log", 2)]).await?;
    let middle = step(&mut line, &[], &[("log", 3)]).await?;
    line.add(middle, vec![writes(9, &[("log", 5)]), writes(8, &[("log", 4)])]).await?;
    let id = step(&mut line, &[], &[]).await?;
    let found = history(&line, id, &["log"]).await?;
    same(&found["log"], &wanted(None, &[1, 2, 3, 4, 5]), "the history")
}

pub(crate) async fn the_seed_is_the_nearest_value(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    step(&mut line, &[("log", snapshot(1))], &[("log", 1)]).await?;
    step(&mut line, &[("log", snapshot(2))], &[("log", 2)]).await?;
    step(&mut line, &[], &[("log", 3)]).await?;
    let id = step(&mut line, &[], &[]).await?;
    let found = history(&line, id, &["log"]).await?;
    same(&found["log"], &wanted(Some(snapshot(2)), &[2, 3]), "the history")?;
    // A plain value, left by a channel that used to be of another kind, is as good.
    step(&mut line, &[("log", blob(7))], &[("log", 8)]).await?;
    let id = step(&mut line, &[], &[]).await?;
    let found = history(&line, id, &["log"]).await?;
    same(&found["log"], &wanted(Some(blob(7)), &[8]), "the history after a plain value")
}

pub(crate) async fn writes_of_the_checkpoint_itself_are_left_out(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    step(&mut line, &[], &[("log", 1)]).await?;
    let id = step(&mut line, &[("log", snapshot(9))], &[("log", 2)]).await?;
    let found = history(&line, id, &["log"]).await?;
    same(&found["log"], &wanted(None, &[1]), "the history")
}

pub(crate) async fn channels_end_independently(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    step(&mut line, &[("a", snapshot(1))], &[("a", 1), ("b", 1)]).await?;
    step(&mut line, &[("b", snapshot(2))], &[("a", 2), ("b", 2)]).await?;
    let id = step(&mut line, &[], &[]).await?;
    let found = history(&line, id, &["a", "b", "none"]).await?;
    same(&found["a"], &wanted(Some(snapshot(1)), &[1, 2]), "a")?;
    same(&found["b"], &wanted(Some(snapshot(2)), &[2]), "b")?;
    same(&found["none"], &DeltaHistory::default(), "a channel nobody wrote")
}

pub(crate) async fn no_channels_no_history(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = step(&mut line, &[], &[]).await?;
    ensure(history(&line, id, &[]).await?.is_empty(), "a history of no channel")
}

pub(crate) async fn without_a_seed_the_walk_goes_to_the_root(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "child:1");
    for value in 0..5 {
        step(&mut line, &[], &[("log", value)]).await?;
    }
    let id = step(&mut line, &[], &[]).await?;
    let found = history(&line, id, &["log"]).await?;
    same(&found["log"], &wanted(None, &[0, 1, 2, 3, 4]), "the history")
}

pub(crate) async fn writes_beside_the_seed_count(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    step(&mut line, &[("log", snapshot(5))], &[("log", 6)]).await?;
    let id = step(&mut line, &[], &[]).await?;
    let found = history(&line, id, &["log"]).await?;
    same(&found["log"], &wanted(Some(snapshot(5)), &[6]), "the history")
}

pub(crate) async fn branches_do_not_mix(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let fork = step(&mut line, &[], &[("log", 1)]).await?;
    step(&mut line, &[], &[("log", 2)]).await?;
    let main = step(&mut line, &[], &[]).await?;
    let mut branch = line.next();
    branch.parent = Some(fork);
    branch.checkpoint.channel_values = SharedMap::new_sync();
    let branch = line.store(branch).await?;
    let found = history(&line, branch, &["log"]).await?;
    same(&found["log"], &wanted(None, &[1]), "the branch")?;
    let found = history(&line, main, &["log"]).await?;
    same(&found["log"], &wanted(None, &[1, 2]), "the line it left")
}

pub(crate) async fn a_missing_ancestor_is_an_error(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let mut put = line.next();
    let missing = CheckpointId::from_bytes([7; 16]);
    put.parent = Some(missing);
    put.checkpoint.channel_values = SharedMap::new_sync();
    let id = line.store(put).await?;
    match line.checkpointer.delta_history("t", "", id, &names(&["log"])).await {
        Ok(found) => fail(format_args!("{found:?} instead of an error")),
        Err(error) => {
            let text = error.to_string();
            let named = text.contains("`t`") && text.contains(&missing.to_string());
            ensure(named, format_args!("`{text}` does not name thread and checkpoint"))
        }
    }
}

pub(crate) async fn a_ring_of_parents_ends(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let (mut first, second) = (line.next(), line.next());
    let ring = second.checkpoint.id;
    first.parent = Some(ring);
    let mut second = second;
    second.parent = Some(first.checkpoint.id);
    for put in [&mut first, &mut second] {
        put.checkpoint.channel_values = SharedMap::new_sync();
    }
    line.store(first).await?;
    second.head = line.head;
    line.store(second).await?;
    history(&line, ring, &["log"]).await.map(drop)
}

pub(crate) async fn a_long_chain_is_walked(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    for value in 0..1200 {
        step(&mut line, &[], &[("log", value)]).await?;
    }
    let id = step(&mut line, &[], &[]).await?;
    let found = history(&line, id, &["log"]).await?;
    same(found["log"].writes.len(), 1200, "writes")?;
    same(found["log"].writes.last(), Some(&blob(1199)), "the last one")
}
