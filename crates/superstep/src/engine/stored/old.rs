//! Checkpoints of older formats.
//!
//! Before format 3, what triggers a node had several names: `start:NODE` for the first one, `branch:FROM:ROUTER:NODE` for one
//! that a router chose, and the name of the node before for one at the end of an edge. Since then it is `branch:to:NODE`
//! wherever it comes from. In format 1, the ids of tasks are hashes of another kind.

use std::borrow::Cow;
use std::sync::Arc;

use superstep_checkpoint::{Blob, Checkpoint, Error, SharedMap, Stored, TaskId, Version};

use crate::engine::kernel::layout::{ControlKind, Layout, START};
use crate::engine::stored::record::INTERRUPT;

/// The checkpoint as this version of the engine would have stored it.
///
/// # Errors
/// It is of the first format and tasks have left something beside it, which cannot be told whose it is.
pub(in crate::engine) fn migrated<'a>(
    layout: &Layout,
    stored: &'a Stored,
) -> Result<Cow<'a, Checkpoint>, Error> {
    let checkpoint = &stored.checkpoint;
    let of_task = |task: TaskId| !task.is_reserved();
    if checkpoint.v < 2 && stored.writes.iter().any(|write| of_task(write.task)) {
        return Err(Error::codec(format_args!(
            "checkpoint {} of thread `{}` has format {}, and tasks that it names in a way that is not known here have left their \
             work beside it; let LangGraph finish that superstep first, or begin a branch from an earlier checkpoint",
            checkpoint.id, stored.thread, checkpoint.v
        )));
    }
    if checkpoint.v > 2 {
        return Ok(Cow::Borrowed(checkpoint));
    }
    let mut renamed = checkpoint.clone();
    for name in checkpoint.channel_versions.keys() {
        if let Some(nodes) = triggered_by(layout, name) {
            rename(layout, &mut renamed, name, &nodes);
            // It would name the old channels, and is only a hint.
            renamed.updated_channels = None;
        }
    }
    Ok(Cow::Owned(renamed))
}

/// The nodes that a channel with an old name triggers; nothing if it has no such name.
fn triggered_by(layout: &Layout, name: &str) -> Option<Vec<usize>> {
    let parts: Vec<&str> = name.split(':').collect();
    match parts.as_slice() {
        ["start", node] | ["branch", _, _, node] => Some(vec![layout.node(node)?]),
        [node] if *node != START => {
            let controls = layout.nodes[layout.node(node)?].edges.iter().copied();
            let branches = controls.filter(|control| {
                matches!(layout.controls[*control].kind, ControlKind::Branch { .. })
            });
            Some(branches.flat_map(|control| layout.triggered[control].iter().copied()).collect())
        }
        _ => None,
    }
}

/// Takes a channel out and gives what it held to the ones that trigger these nodes now.
fn rename(layout: &Layout, checkpoint: &mut Checkpoint, old: &Arc<str>, nodes: &[usize]) {
    let version = checkpoint.channel_versions.get(old).cloned();
    let value = checkpoint.channel_values.get(old).cloned();
    checkpoint.channel_versions.remove_mut(old);
    checkpoint.channel_values.remove_mut(old);
    for node in nodes {
        let Some(control) = layout.branch_of[*node] else { continue };
        let new = &layout.controls[control].name;
        raise(&mut checkpoint.channel_versions, new, version.clone());
        keep_first(&mut checkpoint.channel_values, new, value.clone());
        for seen_by in [&layout.nodes[*node].name, &Arc::from(INTERRUPT)] {
            let Some(mut seen) = checkpoint.versions_seen.get(seen_by).cloned() else { continue };
            let version = seen.get(old).cloned();
            raise(&mut seen, new, version);
            checkpoint.versions_seen.insert_mut(seen_by.clone(), seen);
        }
    }
}

/// The newer of two versions counts.
fn raise(versions: &mut SharedMap<Version>, name: &Arc<str>, version: Option<Version>) {
    let Some(version) = version else { return };
    if versions.get(name).is_none_or(|known| *known < version) {
        versions.insert_mut(name.clone(), version);
    }
}

fn keep_first(values: &mut SharedMap<Blob>, name: &Arc<str>, value: Option<Blob>) {
    let Some(value) = value else { return };
    if !values.contains_key(name) {
        values.insert_mut(name.clone(), value);
    }
}
