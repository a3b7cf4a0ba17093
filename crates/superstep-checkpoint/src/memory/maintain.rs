//! Copying, pruning and looking over what is kept in memory.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use super::{Line, Row, Threads};
use crate::wire::{self, Removal, Row as Known};
use crate::{
    Alarm, CheckpointId, Error, Inventory, Keep, Prune, StoredKey, TaskId, ThreadInfo, ThreadPage,
    ThreadQuery,
};

pub(super) fn copy_thread(threads: &mut Threads, from: &str, to: &str) -> Result<(), Error> {
    if threads.contains_key(to) {
        return Err(wire::target_exists(from, to));
    }
    if let Some(spaces) = threads.get(from).cloned() {
        threads.insert(to.into(), spaces);
    }
    Ok(())
}

/// Deletes the checkpoints of runs. Returns the threads that have changed, whose alarms are on again.
pub(super) fn delete_for_runs(
    threads: &mut Threads,
    runs: &[String],
) -> Result<Vec<Arc<str>>, Error> {
    let mut removals = Vec::new();
    for (thread, spaces) in threads.iter() {
        let (known, of_runs) = know(spaces, |row| wire::is_of_runs(&row.metadata, runs));
        if !of_runs.is_empty() {
            removals.push((thread.clone(), wire::remove_runs(thread, &known, &of_runs)?));
        }
    }
    let mut changed = Vec::with_capacity(removals.len());
    for (thread, removal) in removals {
        apply(threads, &thread, &removal);
        rearm(threads, &thread);
        changed.push(thread);
    }
    Ok(changed)
}

/// Turns on the alarm of the head, which may have been turned off when it was no longer the head.
fn rearm(threads: &mut Threads, thread: &str) {
    let line = threads.get_mut(thread).and_then(|spaces| spaces.get_mut(""));
    let Some((_, head)) = line.and_then(|line| line.iter_mut().next_back()) else { return };
    for ((task, _), alarm) in &mut head.writes {
        if *task == TaskId::ALARM && alarm.path.is_empty() {
            alarm.path = Alarm::path(UNIX_EPOCH);
        }
    }
}

pub(super) fn prune(threads: &mut Threads, prune: &Prune) -> usize {
    let named = prune.threads.as_ref();
    let all = threads.keys().filter(|thread| named.is_none_or(|named| has(named, thread)));
    let mut gone = 0;
    for thread in all.cloned().collect::<Vec<_>>() {
        let Some(spaces) = threads.get(&thread) else { continue };
        let removal = plan(spaces, prune.keep);
        gone += removal.gone.len();
        apply(threads, &thread, &removal);
    }
    gone
}

fn has(named: &[String], thread: &str) -> bool {
    named.iter().any(|name| name == thread)
}

fn plan(spaces: &Spaces, keep: Keep) -> Removal {
    let (known, _) = know(spaces, |_| false);
    wire::thin_out(&known, keep)
}

type Spaces = std::collections::BTreeMap<Arc<str>, Line>;

/// The information about the rows of a thread that decides which can be deleted, and the positions
/// of those that are `chosen`.
fn know(spaces: &Spaces, chosen: impl Fn(&Row) -> bool) -> (Vec<Known>, BTreeSet<usize>) {
    let mut known = Vec::new();
    let mut places = BTreeSet::new();
    for (ns, line) in spaces {
        for row in line.values() {
            if chosen(row) {
                places.insert(known.len());
            }
            let values = row.checkpoint.channel_values.keys().cloned().collect();
            known.push(Known::new(ns, row.checkpoint.id, row.parent, &row.metadata, values));
        }
    }
    (known, places)
}

fn apply(threads: &mut Threads, thread: &str, removal: &Removal) {
    let Some(spaces) = threads.get_mut(thread) else { return };
    for (ns, id) in &removal.gone {
        if let Some(line) = spaces.get_mut(ns) {
            line.remove(id);
        }
    }
    for (ns, id) in &removal.orphaned {
        if let Some(row) = spaces.get_mut(ns).and_then(|line| line.get_mut(id)) {
            row.parent = None;
        }
    }
    spaces.retain(|_, line| !line.is_empty());
    if spaces.is_empty() {
        threads.remove(thread);
    }
}

pub(super) fn threads(threads: &Threads, query: &ThreadQuery) -> ThreadPage {
    let mut heads: Vec<(CheckpointId, &Arc<str>, &Row)> = threads
        .iter()
        .filter_map(|(thread, spaces)| {
            let (id, row) = spaces.get("")?.last_key_value()?;
            Some((*id, thread, row))
        })
        .filter(|(id, thread, _)| match &query.after {
            Some(after) => (*id, &after.thread) < (after.head, thread),
            None => true,
        })
        .collect();
    heads.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let mut page = ThreadPage::default();
    for (_, thread, row) in heads {
        let info = ThreadInfo::of(row.stored(thread, &"".into()));
        if query.matches(&info) && !page.add(info, query.limit) {
            break;
        }
    }
    page
}

/// The names of everything. Writes are kept in the row of their checkpoint, so none can be without one.
pub(super) fn inventory(threads: &Threads) -> Inventory {
    let mut checkpoints = Vec::new();
    for (thread, spaces) in threads {
        for (ns, line) in spaces {
            checkpoints.extend(line.iter().map(|(id, row)| StoredKey {
                thread: thread.clone(),
                ns: ns.clone(),
                id: id.to_string(),
                parent: row.parent.map(|parent| parent.to_string()),
            }));
        }
    }
    Inventory { checkpoints, stray_writes: Vec::new() }
}
