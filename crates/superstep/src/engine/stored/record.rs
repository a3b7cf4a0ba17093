//! Between the head in memory and what is stored of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

use superstep_checkpoint::{
    AnyCheckpointer, Blob, Checkpoint, CheckpointId, Error, Metadata, SharedMap, Stored, Value,
    Version, wire::UtcTime,
};

use crate::engine::kernel::head::Head;
use crate::engine::kernel::layout::{Layout, Slot};
use crate::engine::kernel::plan::is_at_rest;
use crate::engine::stored::old;
use crate::engine::stored::slots;
use crate::engine::stored::slots::Unstorable;
use crate::state::{Deltas, Kind};

pub(crate) const ERROR: &str = "__error__";
pub(crate) const ERROR_SOURCE: &str = "__error_source_node__";
pub(crate) const INTERRUPT: &str = "__interrupt__";
pub(crate) const RESUME: &str = "__resume__";
pub(crate) const NO_WRITES: &str = "__no_writes__";
/// What the arguments of a recorded call came to, beside its result.
pub(crate) const ARGS: &str = "__args__";
pub(crate) const RETURN: &str = "__return__";
const INPUT: &str = "__input__";
const BUMPS: &str = "__snapshot_bumps__";

/// A delta channel stores its whole value at the latest after this many supersteps.
const SUPERSTEPS_MAX: u64 = 5000;

/// Turns heads into checkpoints: what changed is encoded, and the rest shared with the checkpoint before.
#[derive(Debug)]
pub(crate) struct Recorder {
    names: Vec<Arc<str>>,
    deltas: Vec<(usize, Deltas)>,
    values: SharedMap<Blob>,
    versions: SharedMap<Version>,
    seen: SharedMap<SharedMap<Version>>,
    texts: BTreeMap<u64, Version>,
    /// Updates and supersteps of each delta channel since its last whole value.
    counters: BTreeMap<usize, (u64, u64)>,
    /// Updates of each delta channel since the thread was loaded.
    added: BTreeMap<usize, u64>,
    /// Delta channels whose next checkpoint must hold the whole value.
    pub(crate) forced: BTreeSet<usize>,
    /// Those of them that are stored whole even if nothing has ever been written to them.
    sealed: BTreeSet<usize>,
    random: u64,
}

impl Recorder {
    pub(crate) fn new(layout: &Layout) -> Self {
        let deltas = layout.channels.iter().enumerate();
        let deltas = deltas.filter_map(|(at, spec)| match spec.kind {
            Kind::Delta(deltas) => Some((at, deltas)),
            _ => None,
        });
        Self {
            names: (0..layout.slots()).map(|slot| layout.slot_name(slot)).collect(),
            deltas: deltas.collect(),
            values: SharedMap::new_sync(),
            versions: SharedMap::new_sync(),
            seen: SharedMap::new_sync(),
            texts: BTreeMap::new(),
            counters: BTreeMap::new(),
            added: BTreeMap::new(),
            forced: BTreeSet::new(),
            sealed: BTreeSet::new(),
            random: uuid::Uuid::new_v4().as_u128() as u64,
        }
    }

    fn text(&mut self, number: u64) -> Version {
        if let Some(text) = self.texts.get(&number) {
            return text.clone();
        }
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let mixed = self.random ^ (self.random >> 29);
        let text =
            Version::after(number.saturating_sub(1), mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        self.texts.insert(number, text.clone());
        text
    }

    /// Counts a superstep for the delta channels.
    pub(crate) fn count(&mut self, head: &Head) {
        for (at, _) in &self.deltas {
            let (updates, supersteps) = self.counters.entry(*at).or_default();
            *supersteps = supersteps.saturating_add(1);
            if head.updated.as_ref().is_some_and(|updated| updated.contains(at)) {
                *updates = updates.saturating_add(1);
                let added = self.added.entry(*at).or_default();
                *added = added.saturating_add(1);
            }
        }
    }

    fn snapshot_due(&self, layout: &Layout, head: &Head, at: usize, deltas: Deltas) -> bool {
        let (updates, supersteps) = self.counters.get(&at).copied().unwrap_or_default();
        let due = match deltas {
            Deltas::Every(updates_max) => updates >= updates_max,
            Deltas::Growing(updates_min) => {
                // On the way the value grows to eight times its size from one whole value to the next. What is at rest is read
                // more often, so there it is stored whole if an eighth of it is new since the last time, or of this run. Either
                // way whole values grow in proportion, so that all of them together do, too.
                // A value that does not tell its size is as large as it can be for all we know.
                let size = head.row.size(at).map(|size| size as u64);
                let added = self.added.get(&at).copied().unwrap_or_default().max(updates);
                updates >= updates_min.max((size.unwrap_or(0) / 8).saturating_mul(7))
                    || updates > 0
                        && added >= size.map_or(updates_min, |size| size / 8)
                        && is_at_rest(layout, head)
            }
        };
        let due = due || supersteps >= SUPERSTEPS_MAX || self.forced.contains(&at);
        due && head.filled[at] && (head.versions[at] > 0 || self.sealed.contains(&at))
    }

    /// Makes the next checkpoint hold the whole value of a channel, because writes are stored beside its parent that do not
    /// belong to the value. Without this, a later load would replay them.
    pub(crate) fn seal(&mut self, layout: &Layout, channel: &str) {
        if let Some(at) = layout.slot_by_name.get(channel) {
            self.forced.insert(*at);
            self.sealed.insert(*at);
        }
    }

    /// The checkpoint of a head, and the names of the channels that changed since the last one.
    pub(crate) fn checkpoint(
        &mut self,
        layout: &Layout,
        head: &mut Head,
        id: CheckpointId,
    ) -> Result<(Checkpoint, Vec<Arc<str>>), Unstorable> {
        let whole = self.take_snapshots(layout, head)?;
        let mut slots = std::mem::take(&mut head.news.slots);
        slots.sort_unstable();
        slots.dedup();
        for slot in &slots {
            let text = self.text(head.versions[*slot]);
            self.versions.insert_mut(self.names[*slot].clone(), text);
            if is_delta(layout, *slot) {
                continue;
            }
            match slots::encode_slot(layout, head, *slot)? {
                Some(blob) => self.values.insert_mut(self.names[*slot].clone(), blob),
                None => {
                    self.values.remove_mut(&self.names[*slot]);
                }
            }
        }
        self.note_seen(layout, head);
        let updated = head.updated.as_ref().map(|updated| {
            let mut names: Vec<_> = updated.iter().map(|slot| self.names[*slot].clone()).collect();
            names.sort();
            names
        });
        // A delta snapshot belongs to this checkpoint only; the next ones store what is written after it.
        let mut channel_values = self.values.clone();
        for (at, blob) in whole {
            channel_values.insert_mut(self.names[at].clone(), blob);
        }
        let checkpoint = Checkpoint {
            v: Checkpoint::FORMAT,
            id,
            ts: timestamp(SystemTime::now()),
            channel_values,
            channel_versions: self.versions.clone(),
            versions_seen: self.seen.clone(),
            updated_channels: updated,
        };
        let changed = slots.iter().map(|slot| self.names[*slot].clone()).collect();
        slots.clear();
        head.news.slots = slots;
        // Old texts are in the maps; only the newest can be needed again.
        self.texts = self.texts.split_off(&head.newest);
        Ok((checkpoint, changed))
    }

    /// Whole values of delta channels that are due.
    fn take_snapshots(
        &mut self,
        layout: &Layout,
        head: &mut Head,
    ) -> Result<Vec<(usize, Blob)>, Unstorable> {
        let mut whole = Vec::new();
        for (at, deltas) in self.deltas.clone() {
            if !self.snapshot_due(layout, head, at, deltas) {
                continue;
            }
            let unstorable = |cause| Unstorable::in_channel(layout, at, cause);
            let blob = head.row.encode(at).and_then(|blob| blob.to_snapshot());
            whole.push((at, blob.map_err(unstorable)?));
            self.counters.insert(at, (0, 0));
            self.forced.remove(&at);
            self.sealed.remove(&at);
            if !head.news.slots.contains(&at) {
                // Checkpointers store only channels that moved on, and no breakpoint may take this for a change.
                let before = head.versions[at];
                head.newest = head.newest.saturating_add(1);
                head.versions[at] = head.newest;
                head.news.slots.push(at);
                if let Some(seen) = head.seen_interrupt.as_mut().filter(|seen| seen[at] == before) {
                    seen[at] = head.newest;
                    head.news.interrupt = true;
                    if before > 0 {
                        self.note_bump(at, before, head.newest);
                    }
                }
            }
        }
        Ok(whole)
    }

    pub(crate) fn delta_counters(&self) -> BTreeMap<Arc<str>, (u64, u64)> {
        let counted = self.counters.iter().filter(|(_, counts)| **counts != (0, 0));
        counted.map(|(at, counts)| (self.names[*at].clone(), *counts)).collect()
    }

    fn note_seen(&mut self, layout: &Layout, head: &mut Head) {
        for node in std::mem::take(&mut head.news.nodes) {
            let Some(seen) = &head.seen[node] else { continue };
            let def = &layout.nodes[node];
            let mut entry = SharedMap::new_sync();
            for (control, version) in def.triggers.iter().zip(seen).filter(|(_, v)| **v > 0) {
                let name = &layout.controls[*control].name;
                // A version that was seen is the one that was stored with its channel, or one stored before.
                let kept = self.seen.get(&def.name).and_then(|seen| seen.get(name)).cloned();
                let text = kept.filter(|text| text.number() == Some(*version));
                entry.insert_mut(name.clone(), text.unwrap_or_else(|| self.text(*version)));
            }
            self.seen.insert_mut(def.name.clone(), entry);
        }
        for call in std::mem::take(&mut head.news.calls) {
            if !self.seen.contains_key(&call) {
                self.seen.insert_mut(call, SharedMap::new_sync());
            }
        }
        if std::mem::take(&mut head.news.input) {
            self.seen.insert_mut(INPUT.into(), SharedMap::new_sync());
        }
        if std::mem::take(&mut head.news.interrupt) {
            self.note_interrupt(head);
        }
    }

    /// Records which version was really seen, for readers of the checkpoint.
    fn note_bump(&mut self, at: usize, before: u64, after: u64) {
        let name = self.names[at].clone();
        let mut bumps = self.seen.get(BUMPS).cloned().unwrap_or_else(SharedMap::new_sync);
        let (before, after) = (self.text(before), self.text(after));
        bumps.insert_mut(format!("{INTERRUPT}:{name}").into(), before);
        bumps.insert_mut(format!("{INTERRUPT}|{name}").into(), after);
        self.seen.insert_mut(BUMPS.into(), bumps);
    }

    fn note_interrupt(&mut self, head: &Head) {
        let Some(seen) = &head.seen_interrupt else { return };
        let mut entry = SharedMap::new_sync();
        for (slot, version) in seen.iter().enumerate().filter(|(_, version)| **version > 0) {
            let name = self.names[slot].clone();
            let kept =
                self.versions.get(&name).filter(|text| text.number() == Some(*version)).cloned();
            let text = kept.unwrap_or_else(|| self.text(*version));
            entry.insert_mut(name, text);
        }
        self.seen.insert_mut(INTERRUPT.into(), entry);
    }

    /// Stored values of channels that the graph does not have.
    pub(crate) fn unknown<'a>(
        &'a self,
        layout: &'a Layout,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Blob)> {
        self.values.iter().filter(|(name, _)| !layout.slot_by_name.contains_key(*name))
    }

    /// Forgets triggers of nodes that the graph does not have: what was to run is dropped.
    pub(crate) fn drop_unknown_triggers(&mut self, layout: &Layout) {
        let is_trigger = |name: &str| name.starts_with("branch:to:") || name.starts_with("join:");
        let names: Vec<Arc<str>> = self.unknown(layout).map(|(name, _)| name.clone()).collect();
        for name in names.into_iter().filter(|name| is_trigger(name)) {
            self.values.remove_mut(&name);
        }
    }

    /// The head that was stored. What else is in the checkpoint is kept for the next one.
    pub(crate) async fn load(
        &mut self,
        layout: &Layout,
        stored: &Stored,
        checkpointer: &AnyCheckpointer,
    ) -> Result<Head, Error> {
        check_step(stored)?;
        let mut head = Head::new(layout);
        let checkpoint = &*old::migrated(layout, stored)?;
        self.values = checkpoint.channel_values.clone();
        self.versions = checkpoint.channel_versions.clone();
        self.seen = checkpoint.versions_seen.clone();
        for (name, version) in &checkpoint.channel_versions {
            let number = number_of(stored, name, version)?;
            head.newest = head.newest.max(number);
            self.texts.entry(number).or_insert_with(|| version.clone());
            if let Some(slot) = layout.slot_by_name.get(name) {
                head.versions[*slot] = number;
            }
        }
        for (name, blob) in &checkpoint.channel_values {
            let Some(slot) = layout.slot_by_name.get(name) else { continue };
            slots::decode_slot(layout, &mut head, *slot, blob)
                .map_err(|error| damaged(stored, name, &error))?;
            if is_delta(layout, *slot) {
                self.values.remove_mut(name);
            }
        }
        self.replay_deltas(layout, &mut head, stored, checkpointer).await?;
        self.load_seen(layout, &mut head, stored, checkpoint)?;
        for (name, counts) in &stored.metadata.delta_counters {
            if let Some(at) = layout.slot_by_name.get(name) {
                self.counters.insert(*at, *counts);
            }
        }
        head.updated = checkpoint.updated_channels.as_ref().map(|names| {
            names.iter().filter_map(|name| layout.slot_by_name.get(name).copied()).collect()
        });
        head.volatile = (0..head.versions.len())
            .filter(|slot| layout.is_volatile(*slot) && head.is_available(layout, *slot))
            .collect();
        Ok(head)
    }

    /// Rebuilds channels that have a version but no stored value from what was written to them.
    async fn replay_deltas(
        &self,
        layout: &Layout,
        head: &mut Head,
        stored: &Stored,
        checkpointer: &AnyCheckpointer,
    ) -> Result<(), Error> {
        let folds = |at: &usize| matches!(layout.channels[*at].kind, Kind::Delta(_) | Kind::Reduce);
        let missing: Vec<usize> = (0..layout.channels.len())
            .filter(|at| folds(at) && head.versions[*at] > 0)
            .filter(|at| stored.checkpoint.value(&layout.channels[*at].name).is_none())
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = missing.iter().map(|at| layout.channels[*at].name.clone()).collect();
        let id = stored.checkpoint.id;
        let histories = checkpointer.delta_history(&stored.thread, &stored.ns, id, &names).await?;
        for (at, name) in missing.into_iter().zip(names) {
            let Some(history) = histories.get(&name) else { continue };
            let mut row = head.row.open();
            if let Some(seed) = &history.seed {
                row.decode(at, seed).map_err(|error| damaged(stored, &name, &error))?;
            }
            row.replay(at, &history.writes)
                .map_err(|error| damaged(stored, &name, &Error::codec(error)))?;
            head.filled[at] = true;
        }
        Ok(())
    }

    fn load_seen(
        &self,
        layout: &Layout,
        head: &mut Head,
        stored: &Stored,
        checkpoint: &Checkpoint,
    ) -> Result<(), Error> {
        for (name, seen) in &checkpoint.versions_seen {
            let number = |channel: &Arc<str>| match seen.get(channel) {
                Some(version) => number_of(stored, channel, version),
                None => Ok(0),
            };
            if let Some(node) = layout.node(name) {
                let triggers = layout.nodes[node].triggers.iter();
                let versions = triggers.map(|control| number(&layout.controls[*control].name));
                head.seen[node] = Some(versions.collect::<Result<_, _>>()?);
            } else if &**name == INTERRUPT {
                let versions = self.names.iter().map(number);
                head.seen_interrupt = Some(versions.collect::<Result<_, _>>()?);
            }
        }
        Ok(())
    }
}

/// Steps and versions are counted up from what is stored. Only damaged ones are as great as this.
const COUNT_MAX: i64 = i64::MAX / 2;

/// Refuses a checkpoint whose step cannot be followed by others.
fn check_step(stored: &Stored) -> Result<(), Error> {
    let step = stored.metadata.step;
    if (-2..=COUNT_MAX).contains(&step) {
        return Ok(());
    }
    Err(Error::codec(format_args!(
        "checkpoint {} on thread `{}` cannot be read: its step {step} is out of range",
        stored.checkpoint.id, stored.thread
    )))
}

/// The number of a version, which others can follow.
fn number_of(stored: &Stored, channel: &str, version: &Version) -> Result<u64, Error> {
    let number = version.number().filter(|number| *number <= COUNT_MAX.unsigned_abs());
    number.ok_or_else(|| {
        let error = Error::codec(format_args!("its version `{version}` has no number in range"));
        damaged(stored, channel, &error)
    })
}

fn is_delta(layout: &Layout, slot: Slot) -> bool {
    layout.channels.get(slot).is_some_and(|spec| matches!(spec.kind, Kind::Delta(_)))
}

fn damaged(stored: &Stored, channel: &str, error: &Error) -> Error {
    Error::codec(format_args!(
        "channel `{channel}` of checkpoint {} on thread `{}` cannot be read: {error}",
        stored.checkpoint.id, stored.thread
    ))
}

/// Metadata for a checkpoint of this graph.
pub(crate) fn metadata(
    source: superstep_checkpoint::Source,
    step: i64,
    parents: BTreeMap<String, CheckpointId>,
    recorder: &Recorder,
    extra: &BTreeMap<String, Value>,
) -> Metadata {
    Metadata {
        source,
        step,
        parents,
        delta_counters: recorder.delta_counters(),
        extra: extra.clone(),
    }
}

/// A time as ISO 8601 in UTC, with microseconds unless they are zero.
fn timestamp(time: SystemTime) -> String {
    let time = UtcTime::from(time);
    match time.micros {
        0 => format!("{time}+00:00"),
        micros => format!("{time}.{micros:06}+00:00"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn times_are_written_as_the_reference_does() {
        let at = |micros| timestamp(UNIX_EPOCH + Duration::from_micros(micros));
        assert_eq!(at(0), "1970-01-01T00:00:00+00:00");
        assert_eq!(at(1_794_774_987_023_418), "2026-11-15T20:36:27.023418+00:00");
        assert_eq!(at(951_782_400_000_001), "2000-02-29T00:00:00.000001+00:00");
    }
}
