use serde::ser::{SerializeStruct, SerializeTuple};
use serde::{Deserialize, Serialize, Serializer};

use super::{Fault, Foreign, Map, Mark, Value, foreign_data};
use crate::{Error, InterruptId, Limits};

/// An extension type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Ext {
    /// A node is to run with an argument of its own.
    Send(Packet),
    /// An open question.
    Interrupt(Interrupt),
    /// The value replaces what a reducer would have added it to.
    Overwrite(Value),
    /// The whole value of a channel that otherwise stores what was added.
    Snapshot(Value),
    /// A type only LangGraph knows. It is written back as it was read.
    Foreign(Foreign),
}

/// A node that is to run with an argument of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Packet {
    /// The node.
    pub node: String,
    /// Its argument.
    pub arg: Value,
    /// How long it may take.
    #[serde(default)]
    pub timeout: Option<TimeLimits>,
}

/// The time limit of a task, in seconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct TimeLimits {
    /// From its start to completion.
    #[serde(default, rename = "run_timeout")]
    pub run: Option<f64>,
    /// Between two signs of progress.
    #[serde(default, rename = "idle_timeout")]
    pub idle: Option<f64>,
}

/// An open question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct Interrupt {
    /// What is asked.
    pub value: Value,
    /// Names the question; an answer may refer to it.
    pub id: InterruptId,
    /// The JSON schema of the answer. A null here is stored as no schema.
    #[serde(default)]
    pub response_schema: Option<Value>,
}

impl Interrupt {
    /// The questions in a stored value.
    ///
    /// # Errors
    /// The value is neither a list of questions nor a question.
    pub fn list_from(value: &Value) -> Result<Vec<Self>, Error> {
        match value {
            Value::List(items) => items.iter().map(Self::one_from).collect(),
            one => Ok(vec![Self::one_from(one)?]),
        }
    }

    /// The value that is stored for these questions.
    pub fn list_to(list: &[Self]) -> Value {
        Value::from(list.to_vec())
    }

    fn one_from(value: &Value) -> Result<Self, Error> {
        match value {
            Value::Ext(ext) => match &**ext {
                Ext::Interrupt(interrupt) => Some(interrupt.clone()),
                _ => None,
            },
            Value::Map(map) if map.contains_key("id") => Self::from_fields(map.clone()),
            _ => None,
        }
        .ok_or_else(|| Error::codec(format_args!("expected an interrupt, found {}", value.kind())))
    }

    /// Old versions stored no id; such a question can still be answered as the only one.
    fn from_fields(mut fields: Map) -> Option<Self> {
        let id = match fields.swap_remove("id") {
            Some(Value::Str(id)) => id,
            None => String::new(),
            Some(_) => return None,
        };
        let schema = fields.swap_remove("response_schema").filter(|schema| !schema.is_null());
        let value = fields.swap_remove("value")?;
        Some(Self { value, id: id.into(), response_schema: schema })
    }
}

impl Packet {
    fn from_args(args: Vec<Value>) -> Option<Self> {
        let mut args = args.into_iter();
        let (Some(Value::Str(node)), Some(arg)) = (args.next(), args.next()) else {
            return None;
        };
        let timeout = args.next().unwrap_or_default();
        let timeout =
            if timeout.is_null() { None } else { Some(TimeLimits::from_stored(&timeout)?) };
        args.next().is_none().then_some(Self { node, arg, timeout })
    }
}

impl TimeLimits {
    fn from_stored(value: &Value) -> Option<Self> {
        let fields = match value {
            Value::Ext(ext) => ext.as_ref().clone().into_data(Limits::DEFAULT.depth).ok()?,
            other => other.clone(),
        };
        let fields = fields.as_map()?;
        let seconds = |name| fields.get(name).and_then(Value::as_f64);
        Some(Self { run: seconds("run_timeout"), idle: seconds("idle_timeout") })
    }
}

impl Ext {
    /// The data inside, without the type: what a typed value is read from.
    ///
    /// Foreign types are opened if what they were made of is nested no deeper than `depth`.
    pub(crate) fn into_data(self, depth: usize) -> Result<Value, Fault> {
        match self {
            Self::Send(Packet { node, arg, timeout }) => {
                let mut map = Map::new();
                map.insert("node".into(), node.into());
                map.insert("arg".into(), arg);
                timeout.map(|limits| map.insert("timeout".into(), limits.to_data()));
                Ok(map.into())
            }
            Self::Interrupt(Interrupt { value, id, response_schema }) => {
                let mut map = Map::new();
                map.insert("value".into(), value);
                map.insert("id".into(), id.as_str().into());
                response_schema.map(|schema| map.insert("response_schema".into(), schema));
                Ok(map.into())
            }
            Self::Overwrite(value) | Self::Snapshot(value) => Ok(value),
            Self::Foreign(foreign) => foreign_data(foreign.code(), foreign.data(), depth),
        }
    }
}

impl TimeLimits {
    fn to_data(self) -> Value {
        let fields: [(&str, Value); 3] = [
            ("run_timeout", self.run.into()),
            ("idle_timeout", self.idle.into()),
            ("refresh_on", "auto".into()),
        ];
        fields.into_iter().collect()
    }
}

impl Mark {
    /// The value whose stored form is `payload`, if it has that form.
    pub(crate) fn restore(self, payload: Value) -> Option<Value> {
        match (self, payload) {
            (Self::Set, Value::List(items)) => Some(Value::Set(items.into_iter().collect())),
            (Self::Send, Value::List(args)) => Packet::from_args(args).map(Value::from),
            (Self::Interrupt, Value::Map(map)) => Interrupt::from_fields(map).map(Value::from),
            (Self::Overwrite, Value::Map(mut map)) => {
                map.swap_remove("value").map(|value| Ext::Overwrite(value).into())
            }
            (Self::Snapshot, value) => Some(Ext::Snapshot(value).into()),
            (Self::Timeout, fields) => Some(fields),
            (Self::Foreign, Value::List(parts)) => match <[Value; 2]>::try_from(parts).ok()? {
                [Value::Int(code), Value::Bytes(data)] => {
                    Some(Ext::Foreign(Foreign::new(i8::try_from(code).ok()?, data)).into())
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl Serialize for Ext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Send(packet) => packet.serialize(serializer),
            Self::Interrupt(interrupt) => interrupt.serialize(serializer),
            Self::Overwrite(value) => {
                serializer.serialize_newtype_struct(Mark::Overwrite.name(), &Overwritten(value))
            }
            Self::Snapshot(value) => {
                serializer.serialize_newtype_struct(Mark::Snapshot.name(), value)
            }
            Self::Foreign(foreign) => {
                let opaque = Opaque(foreign.code(), foreign.data());
                serializer.serialize_newtype_struct(Mark::Foreign.name(), &opaque)
            }
        }
    }
}

impl Serialize for Packet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(Mark::Send.name(), &Sent(self))
    }
}

impl Serialize for Interrupt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(Mark::Interrupt.name(), &Asked(self))
    }
}

impl Serialize for TimeLimits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(Mark::Timeout.name(), &Policy(self))
    }
}

struct Sent<'a>(&'a Packet);

impl Serialize for Sent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Packet { node, arg, timeout } = self.0;
        let fields = 2 + usize::from(timeout.is_some());
        if serializer.is_human_readable() {
            let mut body = serializer.serialize_struct("Send", fields)?;
            body.serialize_field("node", node)?;
            body.serialize_field("arg", arg)?;
            if let Some(limits) = timeout {
                body.serialize_field("timeout", limits)?;
            }
            return body.end();
        }
        let mut body = serializer.serialize_tuple(fields)?;
        body.serialize_element(node)?;
        body.serialize_element(arg)?;
        if let Some(limits) = timeout {
            body.serialize_element(limits)?;
        }
        body.end()
    }
}

struct Asked<'a>(&'a Interrupt);

impl Serialize for Asked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Interrupt { value, id, response_schema } = self.0;
        let schema = !serializer.is_human_readable() || response_schema.is_some();
        let mut body = serializer.serialize_struct("Interrupt", 2 + usize::from(schema))?;
        body.serialize_field("value", value)?;
        body.serialize_field("id", id)?;
        if schema {
            body.serialize_field("response_schema", response_schema)?;
        }
        body.end()
    }
}

struct Overwritten<'a>(&'a Value);

impl Serialize for Overwritten<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            let mut body = serializer.serialize_struct("Overwrite", 1)?;
            body.serialize_field("__overwrite__", self.0)?;
            return body.end();
        }
        let mut body = serializer.serialize_struct("Overwrite", 2)?;
        body.serialize_field("value", self.0)?;
        body.serialize_field("type", "__overwrite__")?;
        body.end()
    }
}

struct Policy<'a>(&'a TimeLimits);

impl Serialize for Policy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_struct("TimeoutPolicy", 3)?;
        body.serialize_field("run_timeout", &self.0.run)?;
        body.serialize_field("idle_timeout", &self.0.idle)?;
        body.serialize_field("refresh_on", "auto")?;
        body.end()
    }
}

struct Opaque<'a>(i8, &'a [u8]);

impl Serialize for Opaque<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return super::json::foreign(self.0, self.1).serialize(serializer);
        }
        let mut pair = serializer.serialize_tuple(2)?;
        pair.serialize_element(&self.0)?;
        pair.serialize_element(&super::ser::Raw(self.1))?;
        pair.end()
    }
}
