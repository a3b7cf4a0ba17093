//! The stored form of channels and writes.

use std::fmt;
use std::sync::Arc;

use superstep_checkpoint::wire::JoinValue;
use superstep_checkpoint::{Blob, Error, Ext, Packet as StoredPacket, Value};

use crate::engine::kernel::head::{Control, Head, Mark, Packet, StartValue, Write};
use crate::engine::kernel::join::{Arrivals, JoinSpec};
use crate::engine::kernel::layout::{ControlKind, Layout, Place, START, Slot, TASKS};
use crate::engine::stored::record::{NO_WRITES, RESUME, RETURN};
use crate::error::RunError;
use crate::state::{Kind, Payload};

/// A value that has no stored form.
#[derive(Debug)]
pub(crate) struct Unstorable(Box<Parts>);

#[derive(Debug)]
struct Parts {
    /// What it is, in the user's words.
    what: String,
    channel: Option<usize>,
    cause: Error,
}

impl Unstorable {
    pub(crate) fn new(what: impl Into<String>, cause: Error) -> Self {
        Self(Box::new(Parts { what: what.into(), channel: None, cause }))
    }

    pub(crate) fn in_channel(layout: &Layout, at: usize, cause: Error) -> Self {
        let what = format!("a value for channel `{}`", layout.channels[at].name);
        Self(Box::new(Parts { what, channel: Some(at), cause }))
    }

    /// The channel of the state that it is for, if there is one, and why it has none.
    pub(crate) fn into_parts(self) -> (Option<usize>, Error) {
        (self.0.channel, self.0.cause)
    }
}

impl fmt::Display for Unstorable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} that cannot be stored: {}", self.0.what, self.0.cause)
    }
}

/// Of something that was given from outside.
impl From<Unstorable> for RunError {
    fn from(unstorable: Unstorable) -> Self {
        let Parts { what, cause, .. } = *unstorable.0;
        Self::InvalidUpdate { message: format!("{what} cannot be stored: {cause}"), code: None }
    }
}

fn mark_value(mark: Mark) -> Value {
    match mark {
        Mark::Null => Value::Null,
        Mark::Start => Value::from(START),
    }
}

fn value_mark(value: &Value) -> Mark {
    if value.as_str() == Some(START) { Mark::Start } else { Mark::Null }
}

/// The stored form of a join.
fn join_value(spec: &JoinSpec, arrivals: &Arrivals) -> Value {
    let arrived = spec.members.iter().zip(&arrivals.seen).filter(|(_, seen)| **seen);
    JoinValue {
        arrived: arrived.map(|(name, _)| Value::from(&**name)).collect(),
        finished: arrivals.finished,
        fired: spec.is_partial().then_some(arrivals.fired),
    }
    .into_value()
}

fn arrivals(spec: &JoinSpec, stored: Value) -> Result<Arrivals, Error> {
    let JoinValue { arrived, finished, fired } = JoinValue::from_value(stored)?;
    let has_arrived = |name: &Arc<str>| arrived.contains(&Value::from(&**name));
    Ok(Arrivals {
        seen: spec.members.iter().map(has_arrived).collect(),
        needed: spec.needed,
        finished: spec.deferred.then_some(finished == Some(true)),
        fired: fired == Some(true),
    })
}

/// The stored form of a channel; nothing if it holds nothing.
pub(in crate::engine) fn encode_slot(
    layout: &Layout,
    head: &Head,
    slot: Slot,
) -> Result<Option<Blob>, Unstorable> {
    let control =
        |cause| Unstorable::new(format!("what `{}` holds", layout.slot_name(slot)), cause);
    let value = match layout.place(slot) {
        Place::State(at) => {
            let stored =
                head.filled[at] && !matches!(layout.channels[at].kind, Kind::Untracked { .. });
            let topic = matches!(layout.channels[at].kind, Kind::Topic { .. });
            if topic && !head.filled[at] {
                return Blob::from_value(&Value::List(Vec::new())).map(Some).map_err(control);
            }
            let encoded = stored.then(|| head.row.encode(at)).transpose();
            return encoded.map_err(|cause| Unstorable::in_channel(layout, at, cause));
        }
        Place::Control(at) => match &head.controls[at] {
            Control::Start(Some(value)) => return encode_start(layout, value).map(Some),
            Control::Branch(Some(mark)) => mark_value(*mark),
            Control::DeferredBranch { mark: Some(mark), finished } => {
                Value::List(vec![mark_value(*mark), Value::Bool(*finished)])
            }
            Control::Join(arrivals) => match &layout.controls[at].kind {
                ControlKind::Join(spec) => join_value(spec, arrivals),
                ControlKind::Start | ControlKind::Branch { .. } => return Ok(None),
            },
            Control::Start(None) | Control::Branch(None) | Control::DeferredBranch { .. } => {
                return Ok(None);
            }
        },
        Place::Tasks => {
            let sends = head.sends.iter().map(|packet| packet_value(layout, packet));
            Value::List(sends.collect::<Result<_, _>>()?)
        }
    };
    Blob::from_value(&value).map(Some).map_err(control)
}

fn encode_start(layout: &Layout, value: &StartValue) -> Result<Blob, Unstorable> {
    let input = |cause| Unstorable::new("an input", cause);
    match value {
        StartValue::Writes(writes) => {
            let mut map = writes.unknown().cloned().unwrap_or_default();
            for (at, write) in &writes.list {
                // What is never stored is not stored as input either.
                if !matches!(layout.channels[*at].kind, Kind::Untracked { .. }) {
                    let value = write.to_value();
                    let value =
                        value.map_err(|cause| Unstorable::in_channel(layout, *at, cause))?;
                    map.insert(layout.channels[*at].name.to_string(), value);
                }
            }
            Blob::from_value(&Value::Map(map)).map_err(input)
        }
        StartValue::Arg(payload) => match (payload.downcast_ref::<Value>(), layout.single) {
            (Some(Value::Map(map)), false) => {
                let kept = map.iter().filter(|(name, _)| !is_untracked(layout, name));
                let kept = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
                Blob::from_value(&Value::Map(kept)).map_err(input)
            }
            _ => payload.encode().map_err(input),
        },
    }
}

fn is_untracked(layout: &Layout, name: &str) -> bool {
    let mut specs = layout.channels.iter();
    specs.any(|spec| &*spec.name == name && matches!(spec.kind, Kind::Untracked { .. }))
}

fn packet_value(layout: &Layout, packet: &Packet) -> Result<Value, Unstorable> {
    let arg = packet.arg.to_value();
    let mut arg = arg.map_err(|cause| unstorable_packet(packet, cause))?;
    if let Value::Map(map) = &mut arg {
        // What is never stored is not stored as part of a dispatch either.
        map.retain(|name, _| !is_untracked(layout, name));
    }
    Ok(send_value(packet, arg))
}

fn send_value(packet: &Packet, arg: Value) -> Value {
    Value::Ext(Box::new(Ext::Send(StoredPacket {
        node: packet.node.to_string(),
        arg,
        timeout: packet.timeout.as_deref().copied(),
    })))
}

fn unstorable_packet(packet: &Packet, cause: Error) -> Unstorable {
    Unstorable::new(format!("an argument for node `{}`", packet.node), cause)
}

fn decode_packet(value: Value) -> Option<Packet> {
    match value {
        Value::Ext(ext) => match *ext {
            Ext::Send(StoredPacket { node, arg, timeout }) => {
                let timeout = timeout.map(Box::new);
                Some(Packet { node: node.into(), arg: Payload::new(arg), timeout })
            }
            _ => None,
        },
        _ => None,
    }
}

pub(in crate::engine) fn decode_slot(
    layout: &Layout,
    head: &mut Head,
    slot: Slot,
    blob: &Blob,
) -> Result<(), Error> {
    match layout.place(slot) {
        Place::State(at) => {
            let mut row = head.row.open();
            row.decode(at, blob)?;
            let topic = matches!(layout.channels[at].kind, Kind::Topic { .. });
            head.filled[at] = !(topic && row.is_empty(at));
        }
        Place::Control(at) => {
            let value = blob.to_value()?;
            let kind = &layout.controls[at].kind;
            let pair = value.as_list().filter(|list| list.len() == 2);
            let flag = pair.is_some_and(|pair| pair[1] == Value::Bool(true));
            head.controls[at] = match kind {
                ControlKind::Start => {
                    Control::Start(Some(Arc::new(StartValue::Arg(Payload::new(value)))))
                }
                ControlKind::Branch { deferred: false } => {
                    Control::Branch(Some(value_mark(&value)))
                }
                ControlKind::Branch { deferred: true } => Control::DeferredBranch {
                    mark: pair.map(|pair| value_mark(&pair[0])),
                    finished: flag,
                },
                ControlKind::Join(spec) => Control::Join(arrivals(spec, value)?),
            };
        }
        Place::Tasks => {
            if let Value::List(list) = blob.to_value()? {
                head.sends = list.into_iter().filter_map(decode_packet).collect();
            }
        }
    }
    Ok(())
}

/// The stored form of what a task has done: its writes, and the answers it used.
pub(in crate::engine) fn encode_output(
    layout: &Layout,
    writes: &[Write],
    answers: Option<Vec<Value>>,
) -> Result<Vec<(Arc<str>, Blob)>, Unstorable> {
    let mut stored = Vec::with_capacity(writes.len().saturating_add(1));
    if let Some(answers) = answers {
        let answers = Blob::from_value(&Value::List(answers));
        let answers = answers.map_err(|cause| Unstorable::new("an answer", cause))?;
        stored.push((RESUME.into(), answers));
    }
    let mut any = false;
    for write in writes {
        if let Some(write) = encode_write(layout, write)? {
            stored.push(write);
            any = true;
        }
    }
    if !any {
        stored.push((NO_WRITES.into(), Blob::null()));
    }
    Ok(stored)
}

/// The stored form of a write; nothing for what is never stored.
pub(crate) fn encode_write(
    layout: &Layout,
    write: &Write,
) -> Result<Option<(Arc<str>, Blob)>, Unstorable> {
    let trigger = |cause| Unstorable::new("a trigger", cause);
    Ok(Some(match write {
        Write::State(at, value) => {
            let spec = &layout.channels[*at];
            if matches!(spec.kind, Kind::Untracked { .. }) {
                return Ok(None);
            }
            let encoded = value.encode();
            let blob = encoded.map_err(|cause| Unstorable::in_channel(layout, *at, cause))?;
            (spec.name.clone(), blob)
        }
        Write::Branch(control, mark) => {
            let mark = Blob::from_value(&mark_value(*mark)).map_err(trigger)?;
            (layout.controls[*control].name.clone(), mark)
        }
        Write::Join(control, member) => {
            let spec = &layout.controls[*control];
            let ControlKind::Join(join) = &spec.kind else { return Ok(None) };
            let name = Value::from(&*join.members[*member]);
            (spec.name.clone(), Blob::from_value(&name).map_err(trigger)?)
        }
        Write::Send(packet) => {
            let blob = Blob::from_value(&packet_value(layout, packet)?);
            (TASKS.into(), blob.map_err(|cause| unstorable_packet(packet, cause))?)
        }
        Write::Start(control, value) => {
            (layout.controls[*control].name.clone(), encode_start(layout, value)?)
        }
        Write::Taken => return Ok(None),
        Write::Return(payload) => {
            let blob = payload.encode();
            (RETURN.into(), blob.map_err(|cause| Unstorable::new("a result", cause))?)
        }
        Write::Unknown(name, blob) => (name.clone(), blob.clone()),
    }))
}

/// The form of a write in a cache, which stands in for running the task: what is never stored with a thread is part of it.
pub(crate) fn encode_cached(
    layout: &Layout,
    write: &Write,
) -> Result<Option<(Arc<str>, Blob)>, Unstorable> {
    Ok(Some(match write {
        Write::State(at, value) => {
            let blob = value.encode();
            let blob = blob.map_err(|cause| Unstorable::in_channel(layout, *at, cause))?;
            (layout.channels[*at].name.clone(), blob)
        }
        Write::Send(packet) => {
            let arg = packet.arg.to_value();
            let blob = arg.and_then(|arg| Blob::from_value(&send_value(packet, arg)));
            (TASKS.into(), blob.map_err(|cause| unstorable_packet(packet, cause))?)
        }
        other => return encode_write(layout, other),
    }))
}

/// Stored writes, as this graph understands them.
pub(crate) fn decode_writes<'a>(
    layout: &Layout,
    writes: impl IntoIterator<Item = &'a (Arc<str>, Blob)>,
) -> Result<Vec<Write>, Error> {
    writes.into_iter().map(|(name, blob)| decode_write(layout, name, blob)).collect()
}

fn decode_write(layout: &Layout, name: &Arc<str>, blob: &Blob) -> Result<Write, Error> {
    if &**name == RETURN {
        return Ok(Write::Return(Payload::new(blob.to_value()?)));
    }
    let unknown = || Ok(Write::Unknown(name.clone(), blob.clone()));
    let Some(slot) = layout.slot_by_name.get(name) else { return unknown() };
    match layout.place(*slot) {
        Place::State(at) => Ok(Write::State(at, layout.schema.decode_write(at, blob)?)),
        Place::Control(control) => {
            let value = blob.to_value()?;
            match &layout.controls[control].kind {
                ControlKind::Start => {
                    Ok(Write::Start(control, Arc::new(StartValue::Arg(Payload::new(value)))))
                }
                ControlKind::Branch { .. } => Ok(Write::Branch(control, value_mark(&value))),
                ControlKind::Join(join) => {
                    let member = join.members.iter().position(|name| value.as_str() == Some(name));
                    member.map_or_else(unknown, |member| Ok(Write::Join(control, member)))
                }
            }
        }
        Place::Tasks => {
            decode_packet(blob.to_value()?).map_or_else(unknown, |p| Ok(Write::Send(p)))
        }
    }
}
