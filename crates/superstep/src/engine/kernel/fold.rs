//! How the writes to one channel are folded into its value: at a barrier, and for a router that sees those of its own node.

use smallvec::SmallVec;

use crate::state::{ChannelError, Kind, OpenRow, Payload, Taken, WriteValue};

/// What takes writes back, in the order they were made.
pub(in crate::engine) type Undos = SmallVec<[(usize, Taken); 2]>;

/// Whether a write that replaces the value is the only one that counts.
pub(in crate::engine) fn overwrite_counts_alone(kind: Kind) -> bool {
    matches!(kind, Kind::Reduce | Kind::Delta(_))
}

/// Folds writes to the channel at `at` in, in their order. Beside an overwrite, other writes do not count if `overwritten`.
///
/// # Errors
/// The channel does not take one of them. Those before it are made, and `undos` says how to take them back.
pub(in crate::engine) fn fold_writes(
    row: &mut OpenRow<'_>,
    at: usize,
    kind: Kind,
    writes: impl Iterator<Item = WriteValue>,
    overwritten: bool,
    mut undos: Option<&mut Undos>,
) -> Result<(), ChannelError> {
    match kind {
        Kind::Reduce | Kind::Delta(_) | Kind::Topic { .. } => {
            if kind == (Kind::Topic { accumulate: false }) {
                empty(row, at, undos.as_deref_mut());
            }
            for write in writes {
                match write {
                    WriteValue::Update(_) if overwritten => {}
                    WriteValue::Update(update) => {
                        if let Some(undos) = undos.as_deref_mut() {
                            undos.push((at, row.undo(at, &update)));
                        }
                        row.reduce(at, update)?;
                    }
                    WriteValue::Overwrite(value) => set(row, at, value, undos.as_deref_mut())?,
                }
            }
            if matches!(kind, Kind::Topic { .. }) && row.is_empty(at) {
                empty(row, at, undos);
            }
        }
        Kind::Last | Kind::Any | Kind::Ephemeral { .. } | Kind::Untracked { .. } => {
            if let Some(WriteValue::Update(value) | WriteValue::Overwrite(value)) = writes.last() {
                set(row, at, value, undos)?;
            }
        }
    }
    Ok(())
}

/// Replaces the value of a channel. What puts the old one back is made only if it is wanted.
fn set(
    row: &mut OpenRow<'_>,
    at: usize,
    value: Payload,
    undos: Option<&mut Undos>,
) -> Result<(), ChannelError> {
    match undos {
        Some(undos) => undos.push((at, row.swap(at, value)?)),
        None => row.set(at, value)?,
    }
    Ok(())
}

/// Empties a channel.
fn empty(row: &mut OpenRow<'_>, at: usize, undos: Option<&mut Undos>) {
    match undos {
        Some(undos) => undos.push((at, row.empty(at))),
        None => row.clear(at),
    }
}
