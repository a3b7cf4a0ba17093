use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, CheckpointerLayer, DeltaHistory, Error, Stored,
};

/// A checkpointer for reading the checkpoints of a thread newest first, which reads each chain of deltas once.
///
/// The history of a checkpoint is that of its child without the writes that stand beside the checkpoint itself. Reading it
/// anew for each checkpoint would read a thread as often as it has checkpoints.
#[derive(Clone)]
pub(super) struct Chains {
    inner: AnyCheckpointer,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    /// The checkpoint that is being read, and its parent.
    at: Option<(CheckpointId, Option<CheckpointId>)>,
    /// The histories of a child, by its parent. Each branch has one.
    children: BTreeMap<CheckpointId, BTreeMap<Arc<str>, DeltaHistory>>,
}

impl Chains {
    pub(super) fn new(inner: AnyCheckpointer) -> Self {
        Self { inner, known: Arc::default() }
    }

    /// Goes to a checkpoint that is older than all before it.
    pub(super) fn go_to(&self, stored: &Stored) {
        let mut known = self.known();
        let id = stored.checkpoint.id;
        known.at = Some((id, stored.parent));
        // Newer ones were there already, or are not part of what is read.
        known.children.retain(|parent, _| *parent <= id);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CheckpointerLayer for Chains {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        let mut of_child = self.known().children.remove(&id).unwrap_or_default();
        let mut found = BTreeMap::new();
        let mut missing = Vec::new();
        for channel in channels {
            match of_child.remove(channel).and_then(|history| without(history, id)) {
                Some(history) => drop(found.insert(channel.clone(), history)),
                None => missing.push(channel.clone()),
            }
        }
        if !missing.is_empty() {
            found.extend(self.inner.delta_history(thread, ns, id, &missing).await?);
        }
        let mut known = self.known();
        if let Some((at, Some(parent))) = known.at
            && at == id
        {
            known.children.insert(parent, found.clone());
        }
        Ok(found)
    }
}

/// The history of a parent, from that of its child. `None` if the places of the writes are not known.
fn without(mut history: DeltaHistory, parent: CheckpointId) -> Option<DeltaHistory> {
    if history.places.len() != history.writes.len() {
        return None;
    }
    let before = history.places.iter().rposition(|place| place.checkpoint != parent);
    let left = before.map_or(0, |last| last + 1);
    history.writes.truncate(left);
    history.places.truncate(left);
    Some(history)
}
