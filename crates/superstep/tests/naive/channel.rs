//! The channels of the naive engine, each with its own rule for what is written to it.

use serde_json::{Value as Json, json};

use super::behave::Written;
use super::join::Join;

#[derive(Clone, Debug)]
pub(crate) enum Channel {
    Last(Option<Json>),
    Any(Option<Json>),
    Ephemeral { value: Option<Json>, guard: bool },
    Topic { items: Vec<Json>, accumulate: bool },
    Fold { value: Option<Json>, fold: fn(Json, &Json) -> Option<Json> },
    AfterFinish { value: Option<Json>, finished: bool },
    Join(Join),
}

/// Why a channel did not take the writes of a superstep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Concurrent,
    Guarded,
    Overwrites,
    Refused,
}

pub(crate) fn append(list: Json, more: &Json) -> Option<Json> {
    let all = list.as_array()?.iter().chain(more.as_array()?);
    Some(Json::Array(all.cloned().collect()))
}

pub(crate) fn sum(a: Json, b: &Json) -> Option<Json> {
    Some(json!(a.as_i64()? + b.as_i64()?))
}

pub(crate) fn max(a: Json, b: &Json) -> Option<Json> {
    match (&a, b) {
        (Json::Number(x), Json::Number(y)) => Some(json!(x.as_i64()?.max(y.as_i64()?))),
        (Json::String(x), Json::String(y)) => Some(json!(x.max(y))),
        _ => None,
    }
}

fn plain(write: &Written) -> Json {
    match write {
        Written::Update(value) | Written::Overwrite(value) => value.clone(),
    }
}

impl Channel {
    pub(crate) fn update(&mut self, writes: &[Written]) -> Result<bool, Fault> {
        let newest = writes.last().map(plain);
        match self {
            Self::Last(value) => match writes.len() {
                0 => Ok(false),
                1 => {
                    *value = newest;
                    Ok(true)
                }
                _ => Err(Fault::Concurrent),
            },
            Self::Any(value) => {
                let changed = value.is_some() || newest.is_some();
                *value = newest;
                Ok(changed)
            }
            Self::Ephemeral { guard: true, .. } if writes.len() > 1 => Err(Fault::Guarded),
            Self::Ephemeral { value, .. } => {
                let changed = value.is_some() || newest.is_some();
                *value = newest;
                Ok(changed)
            }
            Self::Topic { items, accumulate } => {
                let mut changed = false;
                if !*accumulate {
                    changed = !items.is_empty();
                    items.clear();
                }
                for write in writes {
                    match plain(write) {
                        Json::Array(list) => items.extend(list),
                        item => items.push(item),
                    }
                }
                Ok(changed
                    || writes
                        .iter()
                        .any(|write| !matches!(plain(write), Json::Array(list) if list.is_empty())))
            }
            Self::Fold { value, fold } => {
                let overwrites =
                    writes.iter().filter(|write| matches!(write, Written::Overwrite(_)));
                match overwrites.count() {
                    0 => {}
                    1 => {
                        *value =
                            writes.iter().find(|w| matches!(w, Written::Overwrite(_))).map(plain);
                        return Ok(true);
                    }
                    _ => return Err(Fault::Overwrites),
                }
                for write in writes {
                    *value = Some(match value.take() {
                        None => plain(write),
                        Some(old) => fold(old, &plain(write)).ok_or(Fault::Refused)?,
                    });
                }
                Ok(!writes.is_empty())
            }
            Self::AfterFinish { value, finished } => {
                if writes.is_empty() {
                    return Ok(false);
                }
                *finished = false;
                *value = newest;
                Ok(true)
            }
            Self::Join(join) => {
                let mut changed = false;
                for write in writes {
                    changed |= join.arrive(plain(write).as_str().expect("a node's name"));
                }
                Ok(changed)
            }
        }
    }

    pub(crate) fn get(&self) -> Option<Json> {
        match self {
            Self::Last(value)
            | Self::Any(value)
            | Self::Ephemeral { value, .. }
            | Self::Fold { value, .. } => value.clone(),
            Self::AfterFinish { value, finished } => value.clone().filter(|_| *finished),
            Self::Topic { items, .. } => (!items.is_empty()).then(|| Json::Array(items.clone())),
            Self::Join(join) => join.is_available().then_some(Json::Null),
        }
    }

    pub(crate) fn is_available(&self) -> bool {
        self.get().is_some()
    }

    pub(crate) fn consume(&mut self) -> bool {
        match self {
            Self::AfterFinish { value, finished } if *finished => {
                *value = None;
                *finished = false;
                true
            }
            Self::Join(join) => join.consume(),
            _ => false,
        }
    }

    pub(crate) fn finish(&mut self) -> bool {
        match self {
            Self::AfterFinish { value: Some(_), finished } if !*finished => {
                *finished = true;
                true
            }
            Self::Join(join) => join.finish(),
            _ => false,
        }
    }
}
