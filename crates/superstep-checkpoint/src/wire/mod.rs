//! Helpers for implementing a checkpointer.
//!
//! Checkpointers for LangGraph's databases store the same data in the same form, and make the same
//! decisions inside a transaction. This module has what they share, so that each of them is only
//! schema and statements.
//!
//! | Need | Look at |
//! | --- | --- |
//! | a checkpoint with all its values in one piece of MessagePack | [`checkpoint_to_msgpack`], [`checkpoint_from_msgpack`], [`CheckpointParts`] |
//! | versions in MessagePack or JSON | [`version_to_value`], [`version_from_value`] |
//! | metadata as JSON | [`metadata_to_json`], [`metadata_from_json`] |
//! | the slots of writes, and what a writer expects in them | [`slots`], [`expectations`], [`overtaken`] |
//! | which checkpoints may be deleted | [`thin_out`], [`remove_runs`] |
//! | finding threads by their metadata | [`tags`] |
//! | times as text | [`UtcTime`] |
//! | errors that name an unreadable checkpoint | [`damaged`] |
//! | joins: the names of their channels, and what these hold | [`JoinName`], [`JoinValue`] |

#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)
)]

mod checkpoint;
mod join;
mod metadata;
#[cfg_attr(
    not(test),
    expect(clippy::indexing_slicing, reason = "the positions are those of the rows themselves")
)]
mod removal;
#[cfg_attr(
    not(test),
    expect(
        clippy::arithmetic_side_effects,
        clippy::disallowed_methods,
        reason = "what 64 bits of microseconds can tell is far from where numbers here overflow"
    )
)]
mod time;

pub use checkpoint::{
    CheckpointParts, checkpoint_from_msgpack, checkpoint_to_msgpack, version_from_value,
    version_to_value, whole_number,
};
pub use join::{JoinName, JoinValue};
pub use metadata::{metadata_from_json, metadata_to_json, metadata_to_map};
pub use removal::{Removal, Row, is_of_runs, remove_runs, thin_out};
pub use time::UtcTime;

use std::sync::Arc;

use crate::{
    Blob, CheckpointId, Error, Expected, Metadata, Put, TaskId, TaskWrites, Value, reserved_index,
};

/// A slot of a write, and whether a value that is already there gives way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The number of the slot among those of its task.
    pub index: i64,
    /// Whether the newest value counts and not the first.
    pub replaces: bool,
}

/// The writes of a task, each with its slot.
pub fn slots(writes: &TaskWrites) -> impl Iterator<Item = (Slot, &Arc<str>, &Blob)> {
    writes.writes.iter().enumerate().map(|(position, (channel, value))| {
        let reserved = reserved_index(channel);
        let index = reserved.unwrap_or(position as i64);
        (Slot { index, replaces: reserved.is_some() }, channel, value)
    })
}

/// Everything the writes of one call expect to be stored: task, slot, and what is expected there.
///
/// # Errors
/// [`Error::Invalid`] if something is expected of a channel that has no reserved slot.
pub fn expectations(tasks: &[TaskWrites]) -> Result<Vec<(TaskId, i64, &Expected)>, Error> {
    let expected = tasks.iter().filter_map(|writes| Some((writes.task, writes.expected.as_ref()?)));
    expected
        .map(|(task, expected)| match reserved_index(&expected.channel) {
            Some(slot) => Ok((task, slot, expected)),
            None => Err(Error::invalid(format_args!(
                "only reserved channels have one slot that can be compared, and `{}` is not one",
                expected.channel
            ))),
        })
        .collect()
}

/// The error of a call that expected something else than is stored.
pub fn overtaken(
    thread: &str,
    ns: &str,
    checkpoint: CheckpointId,
    task: TaskId,
    expected: &Expected,
) -> Error {
    Error::Overtaken {
        thread: thread.to_owned(),
        ns: ns.to_owned(),
        checkpoint,
        task,
        channel: expected.channel.to_string(),
    }
}

/// The checkpoint with which the writes of a [`Put`] are stored.
///
/// # Errors
/// [`Error::Invalid`] if there is none.
pub fn parent_of_writes(put: &Put) -> Result<CheckpointId, Error> {
    put.parent.ok_or_else(|| Error::invalid("writes came with a checkpoint that continues none"))
}

/// The error of a copy to a thread that is there.
pub fn target_exists(from: &str, to: &str) -> Error {
    Error::invalid(format_args!(
        "thread `{from}` cannot be copied to `{to}`, which has checkpoints already; delete it first or choose another id"
    ))
}

/// The error of a checkpoint that cannot be read, naming it.
pub fn damaged(thread: &str, ns: &str, id: impl std::fmt::Display, error: &Error) -> Error {
    Error::codec(format_args!(
        "checkpoint {id} of thread `{thread}` (namespace `{ns}`) cannot be read: {error}"
    ))
}

/// The error of a walk along parents that finds one missing before it finds all values.
pub fn broken_chain(
    thread: &str,
    ns: &str,
    missing: impl std::fmt::Display,
    id: CheckpointId,
) -> Error {
    let why = format!("it is not stored, but checkpoint {id} is rebuilt from it");
    damaged(thread, ns, missing, &Error::Codec(why))
}

/// The key and the text by which a checkpointer may look a thread up, for a value that a caller attached to its head. `None` for values
/// that are compared one thread after the other: lists, maps, floats and whatever is long.
pub fn tag(key: &str, value: &Value) -> Option<(String, String)> {
    const LENGTH_MAX: usize = 200;
    let text = match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        // In quotes, so that no text is taken for a number.
        Value::Str(text) => format!("\"{text}\""),
        _ => return None,
    };
    let is_own = ["source", "step", "parents"].contains(&key);
    let is_short = key.len() <= LENGTH_MAX && text.len() <= LENGTH_MAX;
    (!is_own && is_short && !text.contains('\0')).then(|| (key.to_owned(), text))
}

/// Everything by which a checkpointer may look up the thread whose head has this metadata; see [`tag`].
pub fn tags(metadata: &Metadata) -> impl Iterator<Item = (String, String)> {
    metadata.extra.iter().filter_map(|(key, value)| tag(key, value))
}

#[cfg(test)]
mod tests;
