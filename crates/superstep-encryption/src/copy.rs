//! Copying a thread: every value is encrypted again for its new place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use superstep_checkpoint::{
    CheckpointId, Checkpointer, Error, PendingWrite, Put, Query, Stored, TaskId, Version, wire,
};

use crate::{Encrypted, in_slots};

pub(crate) async fn copy_thread(
    checkpointer: &Encrypted,
    from: &str,
    to: &str,
) -> Result<(), Error> {
    let there = Query { thread: Some(to.into()), limit: Some(1), ..Query::default() };
    if !checkpointer.inner.list(there).await?.is_empty() {
        return Err(wire::target_exists(from, to));
    }
    let mut all =
        checkpointer.list(Query { thread: Some(from.into()), ..Query::default() }).await?;
    all.sort_by_key(|stored| stored.checkpoint.id);
    let copied = copy_all(checkpointer, to, all).await;
    if copied.is_err() {
        // Removes the partial copy. The error that led here is the one to report.
        let _ = checkpointer.inner.delete_thread(to).await;
    }
    copied
}

async fn copy_all(checkpointer: &Encrypted, to: &str, all: Vec<Stored>) -> Result<(), Error> {
    let mut heads: BTreeMap<Arc<str>, CheckpointId> = BTreeMap::new();
    let mut kept: BTreeSet<(Arc<str>, Arc<str>, Version)> = BTreeSet::new();
    for Stored { ns, checkpoint, metadata, parent, writes, .. } in all {
        let id = checkpoint.id;
        let versions = checkpoint.channel_versions.iter();
        let is_new = versions.filter(|(channel, version)| {
            kept.insert((ns.clone(), (*channel).clone(), (*version).clone()))
        });
        let changed = is_new.map(|(channel, _)| channel.clone()).collect();
        let head = heads.insert(ns.clone(), id);
        let put = Put {
            thread: to.into(),
            ns: ns.clone(),
            parent,
            head,
            writes: Vec::new(),
            checkpoint,
            metadata,
            changed,
        };
        checkpointer.put(put).await?;
        let mut tasks: BTreeMap<(TaskId, &str), Vec<&PendingWrite>> = BTreeMap::new();
        for write in &writes {
            tasks.entry((write.task, &write.path)).or_default().push(write);
        }
        let tasks = tasks.iter().map(|((task, path), writes)| in_slots(*task, path, writes));
        let tasks = tasks.collect::<Result<Vec<_>, _>>()?;
        if !tasks.is_empty() {
            checkpointer.put_writes(to, &ns, id, tasks).await?;
        }
    }
    Ok(())
}
