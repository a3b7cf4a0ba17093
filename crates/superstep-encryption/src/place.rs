//! The place of a value, which is authenticated with it.

use std::fmt;

use superstep_checkpoint::{CheckpointId, Version, WritePlace};

/// Where a value is stored.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) thread: &'a str,
    pub(crate) ns: &'a str,
    pub(crate) channel: &'a str,
    pub(crate) kind: Kind<'a>,
}

#[derive(Clone, Copy)]
pub(crate) enum Kind<'a> {
    /// The value of a channel. Checkpoints share the values of channels that have not changed, so the version says which
    /// one it is; versions are never used twice.
    Value(Option<&'a Version>),
    /// A write with a checkpoint.
    Write(WritePlace),
}

impl Place<'_> {
    /// The place and the head of the stored value as bytes, each part with its length, so that no two places are alike.
    pub(crate) fn bytes(&self, header: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut add = |part: &[u8]| {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        };
        add(header);
        [self.thread, self.ns, self.channel].iter().for_each(|part| add(part.as_bytes()));
        match &self.kind {
            Kind::Value(version) => {
                add(b"value");
                add(version.map_or("", Version::as_str).as_bytes());
            }
            Kind::Write(WritePlace { checkpoint, task, index }) => {
                add(b"write");
                add(checkpoint.as_bytes());
                add(task.as_bytes());
                add(&index.to_be_bytes());
            }
        }
        bytes
    }
}

/// For messages.
impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { thread, ns, channel, kind } = self;
        match kind {
            Kind::Value(_) => write!(f, "the value of channel `{channel}`")?,
            Kind::Write(WritePlace { checkpoint, task, .. }) => {
                write!(f, "the write of task {task} to `{channel}` at checkpoint {checkpoint}")?;
            }
        }
        write!(f, " on thread `{thread}`")?;
        if ns.is_empty() { Ok(()) } else { write!(f, " (namespace `{ns}`)") }
    }
}

/// The place of a write.
pub(crate) fn write<'a>(
    thread: &'a str,
    ns: &'a str,
    channel: &'a str,
    (checkpoint, task, index): (CheckpointId, superstep_checkpoint::TaskId, i64),
) -> Place<'a> {
    Place { thread, ns, channel, kind: Kind::Write(WritePlace { checkpoint, task, index }) }
}
