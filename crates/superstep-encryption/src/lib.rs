//! Encrypts what a checkpointer stores.
//!
//! [`Encrypted`] wraps any checkpointer. It encrypts every channel value and every write before the
//! checkpointer sees it, and binds it to its place.
//!
//! ```
//! use superstep_checkpoint::MemorySaver;
//! use superstep_encryption::{Encrypted, Keys};
//!
//! # fn key_from_a_vault() -> [u8; 32] { [7; 32] }
//! # fn main() -> Result<(), superstep_checkpoint::Error> {
//! let keys = Keys::new("2026-11", &key_from_a_vault())?;
//! let checkpointer = Encrypted::new(MemorySaver::new(), keys);
//! # let _ = checkpointer;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - **Nothing readable.** No channel value, write, question or answer is stored in readable form.
//!   Only its length is visible.
//! - **Nothing changed.** A value that was modified, or moved to another thread, namespace,
//!   channel, version, checkpoint, task or slot, is refused with an error that names it.
//! - **Nothing unencrypted.** A value that is not encrypted is refused.
//! - **New keys.** See [`Keys`].
//!
//! # What it does not do
//!
//! - Names are not encrypted: ids of threads, checkpoints and tasks, namespaces, names of channels and nodes, and what the caller
//!   attached to a run as metadata, which threads are searched by. Keep secrets out of them.
//! - Anyone who can write to the storage can still delete data, or restore a complete old state.
//! - LangGraph cannot read such threads.
//! - [`copy_thread`](superstep_checkpoint::Checkpointer::copy_thread) encrypts everything again for
//!   the other thread, checkpoint by checkpoint. If the process dies meanwhile, a partial copy is
//!   left; after an error it is removed.
//! - [`threads`](superstep_checkpoint::Checkpointer::threads) reads the head of each thread that is
//!   not done. A filter by status finds the others without reading the rest.

// Stored data is untrusted.
#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)
)]

mod copy;
mod keys;
mod place;

use std::collections::BTreeMap;
use std::sync::Arc;

use superstep_checkpoint::{
    AnyCheckpointer, Blob, Checkpoint, CheckpointId, Checkpointer, CheckpointerLayer, DeltaHistory,
    Error, Expected, PendingWrite, Put, Query, SharedMap, Stored, TaskId, TaskWrites, ThreadInfo,
    ThreadPage, ThreadQuery, reserved_index, wire,
};

pub use keys::Keys;

use place::{Kind, Place};

/// A checkpointer that stores only encrypted values in another one.
///
/// See the [crate] for what is promised.
#[derive(Clone, Debug)]
#[doc(alias = "EncryptedSerializer")]
pub struct Encrypted {
    inner: AnyCheckpointer,
    keys: Arc<Keys>,
}

impl Encrypted {
    /// Encrypts what `checkpointer` keeps.
    pub fn new(checkpointer: impl Checkpointer, keys: Keys) -> Self {
        Self { inner: AnyCheckpointer::new(checkpointer), keys: Arc::new(keys) }
    }

    fn seal_values(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: &mut Checkpoint,
    ) -> Result<(), Error> {
        let versions = checkpoint.channel_versions.clone();
        let sealed = checkpoint.channel_values.iter().map(|(channel, value)| {
            let kind = Kind::Value(versions.get(channel));
            let value = self.keys.seal(&Place { thread, ns, channel, kind }, value)?;
            Ok((channel.clone(), value))
        });
        checkpoint.channel_values = sealed.collect::<Result<SharedMap<Blob>, Error>>()?;
        Ok(())
    }

    async fn seal_put(&self, mut put: Put) -> Result<Put, Error> {
        let (thread, ns) = (put.thread.clone(), put.ns.clone());
        if !put.writes.is_empty() {
            let parent = wire::parent_of_writes(&put)?;
            let writes = std::mem::take(&mut put.writes);
            put.writes = self.seal_writes(&thread, &ns, parent, writes).await?;
        }
        self.seal_values(&thread, &ns, &mut put.checkpoint)?;
        Ok(put)
    }

    async fn seal_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        mut all: Vec<TaskWrites>,
    ) -> Result<Vec<TaskWrites>, Error> {
        self.translate_expected(thread, ns, checkpoint, &mut all).await?;
        for writes in &mut all {
            let slots = wire::slots(writes).map(|(slot, channel, value)| {
                let place =
                    place::write(thread, ns, channel, (checkpoint, writes.task, slot.index));
                Ok((channel.clone(), self.keys.seal(&place, value)?))
            });
            writes.writes = slots.collect::<Result<_, Error>>()?;
        }
        Ok(all)
    }

    /// The inner checkpointer compares bytes, and a value is never encrypted to the same bytes
    /// twice. So it gets the stored bytes, if they decrypt to the expected value.
    async fn translate_expected(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        all: &mut [TaskWrites],
    ) -> Result<(), Error> {
        let names_one =
            |writes: &TaskWrites| writes.expected.as_ref().is_some_and(|e| e.value.is_some());
        if !all.iter().any(names_one) {
            return Ok(());
        }
        let stored = self.inner.get(thread, ns, Some(checkpoint)).await?;
        let stored = stored.map(|stored| stored.writes).unwrap_or_default();
        for writes in all {
            let task = writes.task;
            let Some(Expected { channel, value: Some(expected) }) = &mut writes.expected else {
                continue;
            };
            let Some(index) = reserved_index(channel) else { continue };
            let place = place::write(thread, ns, channel, (checkpoint, task, index));
            let found = stored.iter().find(|write| write.task == task && write.index == index);
            // Bytes that were never stored are what the checkpointer will not find.
            let mut bytes = self.keys.seal(&place, expected)?;
            if let Some(found) = found
                && self.keys.open(&place, &found.value)? == *expected
            {
                bytes = found.value.clone();
            }
            *expected = bytes;
        }
        Ok(())
    }

    fn open_stored(&self, mut stored: Stored) -> Result<Stored, Error> {
        let (thread, ns) = (stored.thread.clone(), stored.ns.clone());
        let checkpoint = &mut stored.checkpoint;
        let versions = &checkpoint.channel_versions;
        let opened = checkpoint.channel_values.iter().map(|(channel, value)| {
            let kind = Kind::Value(versions.get(channel));
            let place = Place { thread: &thread, ns: &ns, channel, kind };
            Ok((channel.clone(), self.keys.open(&place, value)?))
        });
        checkpoint.channel_values = opened.collect::<Result<SharedMap<Blob>, Error>>()?;
        self.open_writes(&thread, &ns, checkpoint.id, &mut stored.writes)?;
        Ok(stored)
    }

    fn open_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: &mut [PendingWrite],
    ) -> Result<(), Error> {
        for write in writes {
            let at = (checkpoint, write.task, write.index);
            write.value =
                self.keys.open(&place::write(thread, ns, &write.channel, at), &write.value)?;
        }
        Ok(())
    }

    fn open_history(
        &self,
        thread: &str,
        ns: &str,
        channel: &str,
        history: &mut DeltaHistory,
    ) -> Result<(), Error> {
        if let Some(seed) = &mut history.seed {
            let kind = Kind::Value(history.seed_version.as_ref());
            *seed = self.keys.open(&Place { thread, ns, channel, kind }, seed)?;
        }
        if history.places.len() != history.writes.len() {
            return Err(Error::codec(
                "the checkpointer does not say where the writes of a history are stored",
            ));
        }
        for (value, at) in history.writes.iter_mut().zip(&history.places) {
            let place = Place { thread, ns, channel, kind: Kind::Write(*at) };
            *value = self.keys.open(&place, value)?;
        }
        Ok(())
    }
}

impl CheckpointerLayer for Encrypted {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    async fn put(&self, put: Put) -> Result<(), Error> {
        self.inner.put(self.seal_put(put).await?).await
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        // What is expected is translated to what is stored, so what comes before has to be.
        let compares = |put: &Put| put.writes.iter().any(|writes| writes.expected.is_some());
        let together = !puts.iter().skip(1).any(compares);
        let mut sealed = Vec::with_capacity(puts.len());
        for put in puts {
            let put = self.seal_put(put).await?;
            if together {
                sealed.push(put);
            } else {
                self.inner.put(put).await?;
            }
        }
        self.inner.put_all(sealed).await
    }

    fn relaxed(&self) -> Option<Self> {
        Some(Self { inner: self.inner.clone().relaxed(), keys: self.keys.clone() })
    }

    /// What is expected is looked up before anything is stored, so a later call may overtake an earlier one.
    fn in_order(&self) -> bool {
        false
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let writes = self.seal_writes(thread, ns, checkpoint, writes).await?;
        self.inner.put_writes(thread, ns, checkpoint, writes).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        let stored = self.inner.get(thread, ns, id).await?;
        stored.map(|stored| self.open_stored(stored)).transpose()
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        let all = self.inner.list(query).await?;
        all.into_iter().map(|stored| self.open_stored(stored)).collect()
    }

    async fn delta_history(
        &self,
        thread: &str,
        ns: &str,
        id: CheckpointId,
        channels: &[Arc<str>],
    ) -> Result<BTreeMap<Arc<str>, DeltaHistory>, Error> {
        let mut found = self.inner.delta_history(thread, ns, id, channels).await?;
        for (channel, history) in &mut found {
            self.open_history(thread, ns, channel, history)?;
        }
        Ok(found)
    }

    async fn copy_thread(&self, from: &str, to: &str) -> Result<(), Error> {
        copy::copy_thread(self, from, to).await
    }

    async fn threads(&self, query: ThreadQuery) -> Result<ThreadPage, Error> {
        let mut page = ThreadPage::default();
        let mut after = query.after.clone();
        loop {
            // What the checkpointer below cannot read matches every status, so nothing is missing here.
            let mut asked = query.clone();
            asked.after = after;
            let found = self.inner.threads(asked).await?;
            for info in found.threads {
                let info = self.open_info(info).await?;
                if query.matches(&info) && !page.add(info, query.limit) {
                    return Ok(page);
                }
            }
            after = found.next;
            if after.is_none() {
                return Ok(page);
            }
            // A full page ends where it is known that another thread follows.
            if page.threads.len() == query.limit
                && query.status.is_empty()
                && query.questions.is_none()
            {
                page.next = page.threads.last().map(ThreadInfo::cursor);
                return Ok(page);
            }
        }
    }
}

impl Encrypted {
    /// The information about a thread, decrypted.
    async fn open_info(&self, info: ThreadInfo) -> Result<ThreadInfo, Error> {
        if info.status.is_some() {
            return Ok(info);
        }
        match Checkpointer::get(self, &info.thread, "", Some(info.head)).await {
            Ok(Some(head)) => Ok(ThreadInfo::of(head)),
            Ok(None) => Ok(info),
            Err(error @ Error::Codec(_)) => {
                Ok(ThreadInfo::damaged(info.thread, info.head, info.metadata, &error))
            }
            Err(error) => Err(error),
        }
    }
}

/// The writes of a task with the slots they were stored in.
pub(crate) fn in_slots(
    task: TaskId,
    path: &str,
    writes: &[&PendingWrite],
) -> Result<TaskWrites, Error> {
    let reserved: Vec<_> = writes.iter().filter(|write| write.index < 0).collect();
    let last = writes.iter().map(|write| write.index).max().unwrap_or(-1);
    let mut list: Vec<(Arc<str>, Blob)> = Vec::new();
    for index in 0..=last {
        // What stood between others was a reserved write, which has a slot of its own.
        let here =
            writes.iter().find(|write| write.index == index).or_else(|| reserved.first().copied());
        let here = here.ok_or_else(|| {
            Error::invalid(format_args!(
                "write {index} of task {task} is missing, so the task cannot be copied"
            ))
        })?;
        list.push((here.channel.clone(), here.value.clone()));
    }
    list.extend(reserved.into_iter().map(|write| (write.channel.clone(), write.value.clone())));
    Ok(TaskWrites::new(task, path, list))
}
