//! Telling the stream what happens in one graph.

use std::sync::Arc;

use superstep_checkpoint::{Blob, Error, Interrupt, Map, Value};

use crate::engine::drive::run::Run;
use crate::engine::kernel::head::{Head, Write};
use crate::engine::kernel::layout::{Layout, Reads};
use crate::engine::outside::view::RawSnapshot;
use crate::engine::task::handle::Task;
use crate::engine::watch::event::{
    Data, DebugEvent, Mode, TaskEnd, TaskStart, UpdatesEvent, ValuesEvent,
};
use crate::error::{NodeError, RunError};
use crate::state::{Managed, Payload};

/// The stream, as one graph of the run uses it.
#[derive(Clone)]
pub(crate) struct Emitter {
    pub(crate) run: Arc<Run>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) ns: Arc<str>,
    /// The channels that `values` and `updates` show.
    pub(crate) keys: Arc<[usize]>,
}

impl Emitter {
    pub(crate) fn wants(&self, mode: Mode) -> bool {
        self.run.sink_for(mode, &self.ns).is_some()
    }

    fn push(&self, mode: Mode, data: impl FnOnce() -> Data) {
        if let Some(sink) = self.run.sink_for(mode, &self.ns) {
            sink.push(&self.ns, data());
        }
    }

    /// Sends to `mode`, and wrapped to `debug`.
    fn push_debug(&self, mode: Mode, step: i64, data: impl Fn() -> Data) {
        self.push(mode, &data);
        self.push(Mode::Debug, || Data::Debug(DebugEvent { step, payload: Box::new(data()) }));
    }

    pub(crate) fn values(&self, head: &Head, interrupts: Vec<Interrupt>) {
        self.push(Mode::Values, || {
            Data::Values(ValuesEvent {
                layout: self.layout.clone(),
                row: head.row.clone(),
                filled: head.filled.clone(),
                keys: self.keys.clone(),
                interrupts,
            })
        });
    }

    /// The state after a superstep, if it changed what is shown.
    pub(crate) fn values_if_changed(&self, head: &Head) {
        if !self.wants(Mode::Values) {
            return;
        }
        let updated = head.updated.as_deref().unwrap_or_default();
        if updated.iter().any(|slot| self.keys.contains(slot)) {
            self.values(head, Vec::new());
        }
    }

    /// # Errors
    /// What was written cannot be serialized.
    pub(crate) fn update(
        &self,
        task: &Task,
        arg: Option<&Payload>,
        writes: &[Write],
        cached: bool,
    ) -> Result<(), RunError> {
        if self.wants(Mode::Updates) {
            let node = task.inner.name.clone();
            let update = self.update_value(writes).map_err(|hidden| hidden.in_output_of(&node))?;
            self.push(Mode::Updates, || {
                let (task, arg) = (task.id(), arg.map(Payload::brief));
                Data::Updates(UpdatesEvent::Task { node, task, arg, update, cached })
            });
        }
        Ok(())
    }

    fn update_value(&self, writes: &[Write]) -> Result<Value, Unshown> {
        if let Some(returned) = returned(writes) {
            return returned;
        }
        let shown = state_writes(&self.layout, &self.keys, writes)?;
        if self.layout.single {
            return Ok(shown.into_iter().next().map_or(Value::Null, |(_, value)| value));
        }
        if shown.is_empty() {
            return Ok(Value::Null);
        }
        let entry =
            |(at, value): (usize, Value)| (self.layout.channels[at].name.to_string(), value);
        let repeated = |at: usize| shown.iter().filter(|(other, _)| *other == at).count() > 1;
        if shown.iter().any(|(at, _)| repeated(*at)) {
            let maps = shown.into_iter().map(|write| Value::Map(Map::from_iter([entry(write)])));
            return Ok(Value::List(maps.collect()));
        }
        Ok(Value::Map(shown.into_iter().map(entry).collect()))
    }

    pub(crate) fn interrupted(&self, head: &Head, asked: &[Interrupt]) {
        self.push(Mode::Updates, || Data::Updates(UpdatesEvent::Interrupted(asked.to_vec())));
        if !asked.is_empty() {
            self.values(head, asked.to_vec());
        }
    }

    /// At a breakpoint there is nothing to show but that the run has stopped.
    pub(crate) fn stopped(&self) {
        self.push(Mode::Updates, || Data::Updates(UpdatesEvent::Interrupted(Vec::new())));
    }

    pub(crate) fn wants_tasks(&self) -> bool {
        self.wants(Mode::Tasks) || self.wants(Mode::Debug)
    }

    pub(crate) fn task_start(&self, task: &Task, step: i64, input: &Value, triggers: &[Arc<str>]) {
        self.push_debug(Mode::Tasks, step, || {
            Data::TaskStart(TaskStart {
                id: task.id(),
                name: task.inner.name.clone(),
                input: input.clone(),
                triggers: triggers.to_vec(),
            })
        });
    }

    /// # Errors
    /// What was written cannot be serialized.
    pub(crate) fn task_end(
        &self,
        task: &Task,
        step: i64,
        writes: &[Write],
        error: Option<&NodeError>,
        asked: &[Interrupt],
    ) -> Result<(), RunError> {
        if !self.wants_tasks() {
            return Ok(());
        }
        let result = result_map(&self.layout, &self.layout.shown, writes, true);
        let result = result.map_err(|hidden| hidden.in_output_of(&task.inner.name))?;
        let result = Value::Map(result);
        self.push_debug(Mode::Tasks, step, || {
            Data::TaskEnd(TaskEnd {
                id: task.id(),
                name: task.inner.name.clone(),
                error: error.cloned(),
                result: result.clone(),
                interrupts: asked.to_vec(),
            })
        });
        Ok(())
    }

    pub(crate) fn wants_checkpoints(&self) -> bool {
        self.wants(Mode::Checkpoints) || self.wants(Mode::Debug)
    }

    pub(crate) fn checkpoint(&self, step: i64, snapshot: RawSnapshot) {
        self.push_debug(Mode::Checkpoints, step, || Data::Checkpoint(Box::new(snapshot.clone())));
    }
}

/// Something that cannot be serialized, and so cannot be shown.
pub(crate) struct Unshown {
    what: String,
    why: String,
}

impl Unshown {
    pub(in crate::engine) fn channel(layout: &Layout, at: usize, error: &Error) -> Self {
        Self { what: format!("channel `{}`", layout.channels[at].name), why: error.to_string() }
    }

    /// The failure of the node with this name, whose output it is.
    pub(crate) fn in_output_of(self, node: &str) -> RunError {
        let Self { what, why } = self;
        let message = format!("what node `{node}` wrote cannot be serialized, at {what}: {why}");
        RunError::InvalidUpdate { message, code: None }
    }
}

fn returned(writes: &[Write]) -> Option<Result<Value, Unshown>> {
    writes.iter().find_map(|write| match write {
        Write::Return(payload) => {
            let unshown = |error: Error| {
                let (what, why) = ("its result".to_owned(), error.to_string());
                Unshown { what, why }
            };
            Some(payload.to_value().map_err(unshown))
        }
        _ => None,
    })
}

/// The writes to these channels, as data.
fn state_writes(
    layout: &Layout,
    keys: &[usize],
    writes: &[Write],
) -> Result<Vec<(usize, Value)>, Unshown> {
    let shown = writes.iter().filter_map(|write| match write {
        Write::State(at, value) if keys.contains(at) => Some((*at, value)),
        _ => None,
    });
    shown
        .map(|(at, value)| match value.to_value() {
            Ok(value) => Ok((at, value)),
            Err(error) => Err(Unshown::channel(layout, at, &error)),
        })
        .collect()
}

/// What a task wrote to these channels. Several writes to one channel stand under `$writes`.
pub(crate) fn result_map(
    layout: &Layout,
    keys: &[usize],
    writes: &[Write],
    with_return: bool,
) -> Result<Map, Unshown> {
    let shown = state_writes(layout, keys, writes)?.into_iter();
    let named = shown.map(|(at, value)| (layout.channels[at].name.to_string(), value));
    let mut map = fold_repeated(named);
    if with_return && let Some(value) = returned(writes) {
        map.insert(crate::engine::stored::record::RETURN.to_owned(), value?);
    }
    Ok(map)
}

fn fold_repeated(writes: impl Iterator<Item = (String, Value)>) -> Map {
    const MANY: &str = "$writes";
    let mut map = Map::new();
    for (name, value) in writes {
        match map.get_mut(&name) {
            None | Some(Value::Null) => {
                map.insert(name, value);
            }
            Some(Value::Map(many)) if matches!(many.get(MANY), Some(Value::List(_))) => {
                if let Some(Value::List(list)) = many.get_mut(MANY) {
                    list.push(value);
                }
            }
            Some(first) => {
                let both = Value::List(vec![std::mem::take(first), value]);
                *first = Value::Map(Map::from_iter([(MANY.to_owned(), both)]));
            }
        }
    }
    map
}

/// The result of a finished task, as a snapshot shows it.
pub(crate) fn snapshot_result(
    layout: &Layout,
    keys: &[usize],
    writes: &[Write],
) -> Result<Value, Unshown> {
    if let Some(returned) = returned(writes) {
        return returned;
    }
    let map = result_map(layout, keys, writes, false)?;
    if layout.single {
        return Ok(map.into_iter().next().map_or(Value::Null, |(_, value)| value));
    }
    Ok(Value::Map(map))
}

/// What a triggered node gets, as data.
pub(crate) fn input_value(
    layout: &Layout,
    head: &Head,
    reads: &Reads,
    step: i64,
    stop: i64,
) -> Result<Value, Error> {
    match reads {
        Reads::Channels(channels) => {
            let mut map = head.values(layout, channels)?;
            for (name, what) in &layout.managed {
                let value = match what {
                    Managed::RemainingSteps => Value::from(stop.saturating_sub(step)),
                    Managed::IsLastStep => Value::Bool(step == stop.saturating_sub(1)),
                };
                map.insert(name.to_string(), value);
            }
            Ok(Value::Map(map))
        }
        Reads::Start => start_value(layout, head),
    }
}

fn start_value(layout: &Layout, head: &Head) -> Result<Value, Error> {
    use crate::engine::kernel::head::{Control, StartValue};
    let start = head.controls.iter().find_map(|control| match control {
        Control::Start(value) => value.as_deref(),
        _ => None,
    });
    match start {
        Some(StartValue::Arg(payload)) => payload.to_value(),
        Some(StartValue::Writes(writes)) => {
            let mut map = writes.unknown().cloned().unwrap_or_default();
            for (at, write) in &writes.list {
                map.insert(layout.channels[*at].name.to_string(), write.to_value()?);
            }
            Ok(Value::Map(map))
        }
        None => Ok(Value::Null),
    }
}

/// The key under which a result is cached: the hash of what the policy makes of the input.
///
/// # Errors
/// The input cannot be encoded. It must not have the key of another one.
pub(crate) fn cache_key(
    input: &Value,
    policy: &crate::engine::kernel::policy::CachePolicy,
) -> Result<String, Error> {
    let text = match &policy.key {
        Some(key) => key(input).into_bytes(),
        None => Blob::from_value(input)?.bytes().to_vec(),
    };
    Ok(format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&text)))
}
