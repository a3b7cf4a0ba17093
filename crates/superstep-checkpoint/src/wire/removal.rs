//! Which checkpoints of a thread can be deleted without damage to the others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{CheckpointId, Error, Keep, Metadata, Value};

/// The information about a stored checkpoint that decides whether it can be deleted.
#[derive(Clone, Debug)]
pub struct Row {
    ns: Arc<str>,
    id: CheckpointId,
    parent: Option<CheckpointId>,
    /// Checkpoints of the graphs that enclose it.
    around: BTreeMap<String, CheckpointId>,
    /// Channels whose value has to be rebuilt from what was written before.
    deltas: Vec<Arc<str>>,
    /// Channels with a value.
    values: BTreeSet<Arc<str>>,
}

impl Row {
    /// A row with this namespace, id and parent. `values` are the channels that have a stored value; those that no
    /// metadata of the thread counts as delta channels may be left out.
    pub fn new(
        ns: &Arc<str>,
        id: CheckpointId,
        parent: Option<CheckpointId>,
        metadata: &Metadata,
        values: BTreeSet<Arc<str>>,
    ) -> Self {
        Self {
            ns: ns.clone(),
            id,
            parent,
            around: metadata.parents.clone(),
            deltas: metadata.delta_counters.keys().cloned().collect(),
            values,
        }
    }
}

/// The changes of a thread: namespace and id of each checkpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Removal {
    /// Checkpoints to delete, with their writes.
    pub gone: Vec<(Arc<str>, CheckpointId)>,
    /// Remaining checkpoints whose parent is deleted; they lose it.
    pub orphaned: Vec<(Arc<str>, CheckpointId)>,
}

/// Which rows of a thread are deleted when some are to be kept; see
/// [`Checkpointer::prune`](crate::Checkpointer::prune).
///
/// `rows` are all rows of the thread.
pub fn thin_out(rows: &[Row], keep: Keep) -> Removal {
    let places = places(rows);
    let mut lines: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        lines.entry(&row.ns).or_default().push(at);
    }
    let mut stay = vec![false; rows.len()];
    for line in lines.values_mut() {
        line.sort_by_key(|at| std::cmp::Reverse(rows[*at].id));
        for (nth, at) in line.iter().enumerate() {
            stay[*at] = nth == 0
                || match keep {
                    Keep::Latest => false,
                    Keep::Newest(count) => nth < count,
                    Keep::Since(id) => rows[*at].id >= id,
                };
        }
    }
    // From the outside in, so that what goes with its caller goes with callers that go with theirs. Namespaces of
    // callers are shorter.
    let mut inward: Vec<usize> = (0..rows.len()).collect();
    inward.sort_by_key(|at| rows[*at].ns.len());
    for at in inward {
        stay[at] &= !called_from_gone(rows, &places, &stay, at);
    }
    keep_chains(rows, &places, &mut stay);
    removal(rows, &places, &stay)
}

/// Which rows are deleted with those in `chosen`.
///
/// # Errors
/// [`Error::Invalid`] if a row that is to stay could not be read any more.
pub fn remove_runs(thread: &str, rows: &[Row], chosen: &BTreeSet<usize>) -> Result<Removal, Error> {
    let places = places(rows);
    let asked: Vec<bool> = (0..rows.len()).map(|at| !chosen.contains(&at)).collect();
    let mut stay = asked.clone();
    keep_chains(rows, &places, &mut stay);
    match (0..rows.len()).find(|at| stay[*at] != asked[*at]) {
        None => Ok(removal(rows, &places, &stay)),
        Some(at) => Err(Error::invalid(format_args!(
            "checkpoint {} of thread `{thread}` holds writes from which later checkpoints are rebuilt; delete the runs that came after it too, or the thread",
            rows[at].id
        ))),
    }
}

/// Whether metadata has one of these as `run_id`.
pub fn is_of_runs(metadata: &Metadata, runs: &[String]) -> bool {
    let run = metadata.extra.get("run_id").and_then(Value::as_str);
    run.is_some_and(|run| runs.iter().any(|wanted| wanted == run))
}

type Places<'a> = BTreeMap<(&'a str, CheckpointId), usize>;

fn places(rows: &[Row]) -> Places<'_> {
    rows.iter().enumerate().map(|(at, row)| ((&*row.ns, row.id), at)).collect()
}

/// Whether a row belongs to one call of a graph whose caller goes.
fn called_from_gone(rows: &[Row], places: &Places<'_>, stay: &[bool], at: usize) -> bool {
    let row = &rows[at];
    let mut around = row.around.iter().filter_map(|(ns, id)| places.get(&(ns.as_str(), *id)));
    row.ns.contains(':') && around.any(|caller| !stay[*caller])
}

/// Keeps everything from which a remaining row is rebuilt.
fn keep_chains(rows: &[Row], places: &Places<'_>, stay: &mut [bool]) {
    let wanted: Vec<usize> = (0..rows.len()).filter(|at| stay[*at]).collect();
    for at in wanted {
        let row = &rows[at];
        let mut open: Vec<&Arc<str>> =
            row.deltas.iter().filter(|channel| !row.values.contains(*channel)).collect();
        let mut parent = row.parent;
        // A ring of parents would turn forever; no chain is longer than the thread.
        for _ in 0..rows.len() {
            let next = parent.and_then(|parent| places.get(&(&*row.ns, parent)));
            let (Some(next), false) = (next, open.is_empty()) else { break };
            stay[*next] = true;
            open.retain(|channel| !rows[*next].values.contains(*channel));
            parent = rows[*next].parent;
        }
    }
}

fn removal(rows: &[Row], places: &Places<'_>, stay: &[bool]) -> Removal {
    let mut removal = Removal::default();
    for (row, stays) in rows.iter().zip(stay) {
        let parent = row.parent.and_then(|parent| places.get(&(&*row.ns, parent)));
        if !stays {
            removal.gone.push((row.ns.clone(), row.id));
        } else if parent.is_some_and(|parent| !stay[*parent]) {
            removal.orphaned.push((row.ns.clone(), row.id));
        }
    }
    removal
}
