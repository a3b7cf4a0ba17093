mod alarms;
mod maintain;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use crate::{
    AlarmPage, Blob, Checkpoint, CheckpointId, Checkpointer, DeltaHistory, Error, Inventory,
    Metadata, PendingWrite, Prune, Put, Query, StorageId, Stored, TaskId, TaskWrites, ThreadPage,
    ThreadQuery, reserved_index, wire,
};

/// Stores checkpoints in memory, for tests and for runs that need not outlive the process.
///
/// Clones share their storage.
#[derive(Clone, Default)]
#[doc(alias = "InMemorySaver")]
pub struct MemorySaver {
    threads: Arc<Mutex<Threads>>,
    /// Locked after the threads.
    alarms: Arc<Mutex<Alarms>>,
}

use alarms::Alarms;

/// By thread, then by namespace.
type Threads = BTreeMap<Arc<str>, BTreeMap<Arc<str>, Line>>;

/// The checkpoints of one namespace of a thread; the last one is the head.
type Line = BTreeMap<CheckpointId, Row>;

#[derive(Clone)]
struct Row {
    checkpoint: Checkpoint,
    metadata: Metadata,
    parent: Option<CheckpointId>,
    writes: BTreeMap<(TaskId, i64), Written>,
}

#[derive(Clone)]
struct Written {
    path: String,
    channel: Arc<str>,
    value: Blob,
}

impl MemorySaver {
    /// An empty checkpointer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every change is completed under the lock, so a panic elsewhere cannot leave a partial
    /// change.
    fn lock(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn alarms(&self) -> MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemorySaver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySaver").field("threads", &self.lock().len()).finish_non_exhaustive()
    }
}

impl Checkpointer for MemorySaver {
    fn storage(&self) -> Option<StorageId> {
        Some(StorageId::shared(&self.threads))
    }

    async fn put(&self, put: Put) -> Result<(), Error> {
        let mut threads = self.lock();
        let beside = Beside::of(&put);
        store(&mut threads, put)?;
        beside.note(&mut self.alarms());
        Ok(())
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        let mut threads = self.lock();
        let mut before = Vec::with_capacity(puts.len());
        let beside: Vec<_> = puts.iter().map(Beside::of).collect();
        for put in puts {
            before.push(Before::of(&threads, &put));
            if let Err(refused) = store(&mut threads, put) {
                before.into_iter().rev().for_each(|before| before.restore(&mut threads));
                return Err(refused);
            }
        }
        beside.iter().for_each(|beside| beside.note(&mut self.alarms()));
        Ok(())
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let mut threads = self.lock();
        let line = threads.get_mut(thread).and_then(|spaces| spaces.get_mut(ns));
        let row = line.and_then(|line| line.get_mut(&checkpoint));
        let row = row.ok_or_else(|| unknown(thread, ns, checkpoint))?;
        row.check_expected(thread, ns, &writes)?;
        self.alarms().note(thread, ns, checkpoint, &writes);
        row.add(writes);
        Ok(())
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        let threads = self.lock();
        let Some((thread, spaces)) = threads.get_key_value(thread) else {
            return Ok(None);
        };
        let Some((ns, line)) = spaces.get_key_value(ns) else {
            return Ok(None);
        };
        let row = match id {
            Some(id) => line.get(&id),
            None => line.last_key_value().map(|(_, row)| row),
        };
        Ok(row.map(|row| row.stored(thread, ns)))
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        let threads = self.lock();
        let limit = query.limit.unwrap_or(usize::MAX);
        let mut found = Vec::new();
        for (thread, spaces) in among(&threads, query.thread.as_deref()) {
            for (ns, line) in among(spaces, query.ns.as_deref()) {
                // The newest of all are among the newest of each line, so no line has to give more.
                let rows = rows(line, &query).take(limit);
                found.extend(rows.map(|row| (Reverse(row.checkpoint.id), thread, ns, row)));
            }
        }
        found.sort_by_key(|(id, thread, ns, _)| (*id, *thread, *ns));
        found.truncate(limit);
        Ok(found.into_iter().map(|(_, thread, ns, row)| row.stored(thread, ns)).collect())
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.lock().remove(thread);
        Ok(())
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        let threads = self.lock();
        let mut found: BTreeMap<Arc<str>, DeltaHistory> =
            channels.iter().map(|channel| (channel.clone(), DeltaHistory::default())).collect();
        let Some(line) = threads.get(thread).and_then(|spaces| spaces.get(ns)) else {
            return Ok(found);
        };
        let mut open: Vec<(&Arc<str>, &mut DeltaHistory)> = found.iter_mut().collect();
        let mut parent = line.get(&id).and_then(|row| row.parent);
        // Parents are given by callers, so nothing but the count keeps a ring of them from turning
        // forever.
        for _ in 0..line.len() {
            let Some(at) = parent else { break };
            let row = line.get(&at).ok_or_else(|| wire::broken_chain(thread, ns, at, id))?;
            let writes = row.ordered();
            open.retain_mut(|(channel, history)| {
                history.take(at, channel, &writes);
                history.seed = row.checkpoint.value(channel).cloned();
                history.seed_version = row.checkpoint.version(channel).cloned();
                history.seed.is_none()
            });
            if open.is_empty() {
                break;
            }
            parent = row.parent;
        }
        found.values_mut().for_each(DeltaHistory::reverse);
        Ok(found)
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        let mut threads = self.lock();
        maintain::copy_thread(&mut threads, from, to)?;
        self.alarms().note_thread(&threads, to);
        Ok(())
    }

    async fn delete_for_runs(&self, runs: &[String]) -> Result<(), Error> {
        let mut threads = self.lock();
        for thread in maintain::delete_for_runs(&mut threads, runs)? {
            self.alarms().note_thread(&threads, &thread);
        }
        Ok(())
    }

    async fn prune(&self, prune: Prune) -> Result<usize, Error> {
        Ok(maintain::prune(&mut self.lock(), &prune))
    }

    async fn threads(&self, query: ThreadQuery) -> Result<ThreadPage, Error> {
        Ok(maintain::threads(&self.lock(), &query))
    }

    async fn alarms(&self, until: SystemTime, limit: usize) -> Result<AlarmPage, Error> {
        let threads = self.lock();
        Ok(self.alarms().page(&threads, until, limit))
    }

    async fn inventory(&self) -> Result<Inventory, Error> {
        Ok(maintain::inventory(&self.lock()))
    }
}

fn store(threads: &mut Threads, put: Put) -> Result<(), Error> {
    check(threads, &put)?;
    let line = threads.entry(put.thread).or_default().entry(put.ns).or_default();
    if let Some(parent) = put.parent.and_then(|parent| line.get_mut(&parent)) {
        parent.add(put.writes);
    }
    let Put { checkpoint, metadata, parent, .. } = put;
    let writes = line.remove(&checkpoint.id).map(|row| row.writes).unwrap_or_default();
    line.insert(checkpoint.id, Row { checkpoint, metadata, parent, writes });
    Ok(())
}

/// The alarms among the writes that a checkpoint carries.
struct Beside {
    thread: Arc<str>,
    ns: Arc<str>,
    alarms: Vec<(CheckpointId, TaskWrites)>,
}

impl Beside {
    fn of(put: &Put) -> Self {
        let alarms = put.writes.iter().filter(|writes| writes.task == TaskId::ALARM);
        let alarms = alarms.filter_map(|alarm| Some((put.parent?, alarm.clone())));
        Self { thread: put.thread.clone(), ns: put.ns.clone(), alarms: alarms.collect() }
    }

    fn note(&self, alarms: &mut Alarms) {
        for (checkpoint, alarm) in &self.alarms {
            alarms.note(&self.thread, &self.ns, *checkpoint, std::slice::from_ref(alarm));
        }
    }
}

/// The previous rows that a checkpoint changes.
struct Before {
    thread: Arc<str>,
    ns: Arc<str>,
    rows: [(Option<CheckpointId>, Option<Row>); 2],
}

impl Before {
    fn of(threads: &Threads, put: &Put) -> Self {
        let line = threads.get(&put.thread).and_then(|spaces| spaces.get(&put.ns));
        let row = |id: Option<CheckpointId>| (id, line.and_then(|line| line.get(&id?)).cloned());
        let rows = [row(put.parent), row(Some(put.checkpoint.id))];
        Self { thread: put.thread.clone(), ns: put.ns.clone(), rows }
    }

    fn restore(self, threads: &mut Threads) {
        let Some(spaces) = threads.get_mut(&self.thread) else { return };
        let Some(line) = spaces.get_mut(&self.ns) else { return };
        for (id, row) in self.rows {
            match (id, row) {
                (Some(id), Some(row)) => drop(line.insert(id, row)),
                (Some(id), None) => drop(line.remove(&id)),
                (None, _) => {}
            }
        }
        if line.is_empty() {
            spaces.remove(&self.ns);
        }
        if spaces.is_empty() {
            threads.remove(&self.thread);
        }
    }
}

/// All checks of a checkpoint, before anything is changed.
fn check(threads: &Threads, put: &Put) -> Result<(), Error> {
    let none = Line::new();
    let line = threads.get(&put.thread).and_then(|spaces| spaces.get(&put.ns)).unwrap_or(&none);
    let head = line.last_key_value().map(|(id, _)| *id);
    if head != put.head && !line.contains_key(&put.checkpoint.id) {
        return Err(Error::Conflict {
            thread: put.thread.to_string(),
            ns: put.ns.to_string(),
            expected: put.head,
            found: head,
        });
    }
    if put.writes.is_empty() {
        return Ok(());
    }
    let parent = wire::parent_of_writes(put)?;
    let row = line.get(&parent).ok_or_else(|| unknown(&put.thread, &put.ns, parent))?;
    row.check_expected(&put.thread, &put.ns, &put.writes)
}

fn unknown(thread: &str, ns: &str, id: CheckpointId) -> Error {
    Error::Unknown { thread: thread.to_owned(), ns: ns.to_owned(), id }
}

/// The entry with this key, or all of them.
fn among<'a, T>(
    map: &'a BTreeMap<Arc<str>, T>,
    key: Option<&str>,
) -> impl Iterator<Item = (&'a Arc<str>, &'a T)> {
    let bounds = key.map_or((Bound::Unbounded, Bound::Unbounded), |key| {
        (Bound::Included(key), Bound::Included(key))
    });
    map.range::<str, _>(bounds)
}

/// The rows of a line that match, newest first.
fn rows<'a>(line: &'a Line, query: &'a Query) -> impl Iterator<Item = &'a Row> {
    let older = match query.before {
        Some(before) => line.range(..before),
        None => line.range(..),
    };
    let rows = older.rev().map(|(_, row)| row);
    rows.filter(|row| query.admits(row.checkpoint.id, &row.metadata))
}

impl Row {
    fn check_expected(&self, thread: &str, ns: &str, tasks: &[TaskWrites]) -> Result<(), Error> {
        for (task, slot, expected) in wire::expectations(tasks)? {
            let found = self.writes.get(&(task, slot)).map(|written| &written.value);
            if found != expected.value.as_ref() {
                return Err(wire::overtaken(thread, ns, self.checkpoint.id, task, expected));
            }
        }
        Ok(())
    }

    fn add(&mut self, tasks: Vec<TaskWrites>) {
        for TaskWrites { task, path, writes, replaces, expected: _ } in tasks {
            if replaces {
                self.writes.retain(|(owner, _), _| *owner != task);
            }
            for (position, (channel, value)) in writes.into_iter().enumerate() {
                let reserved = reserved_index(&channel);
                let slot = (task, reserved.unwrap_or(position as i64));
                let written = Written { path: path.clone(), channel, value };
                if reserved.is_some() {
                    self.writes.insert(slot, written);
                } else {
                    self.writes.entry(slot).or_insert(written);
                }
            }
        }
    }

    fn ordered(&self) -> Vec<PendingWrite> {
        let mut writes: Vec<_> = self
            .writes
            .iter()
            .map(|((task, index), written)| PendingWrite {
                task: *task,
                path: written.path.clone(),
                index: *index,
                channel: written.channel.clone(),
                value: written.value.clone(),
            })
            .collect();
        // Task and slot are in order already, and the sort is stable.
        writes.sort_by(|a, b| a.path.cmp(&b.path));
        writes
    }

    fn stored(&self, thread: &Arc<str>, ns: &Arc<str>) -> Stored {
        Stored {
            thread: thread.clone(),
            ns: ns.clone(),
            checkpoint: self.checkpoint.clone(),
            metadata: self.metadata.clone(),
            parent: self.parent,
            writes: self.ordered(),
        }
    }
}

#[cfg(test)]
mod tests;
