use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use superstep_checkpoint::{Map, Value};

/// A call of a tool that a model asks for.
///
/// ```
/// use superstep::state::ToolCall;
///
/// let call = ToolCall::new("call_1", "add", [("a", 1), ("b", 2)]);
/// let json = serde_json::to_string(&call)?;
/// assert_eq!(json, r#"{"name":"add","args":{"a":1,"b":2},"id":"call_1","type":"tool_call"}"#);
/// assert_eq!(serde_json::from_str::<ToolCall>(&json)?, call);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[doc(alias = "ToolNode")]
#[doc(alias = "create_react_agent")]
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub args: Map,
    /// Tells calls apart; the message with the answer has it as `tool_call_id`.
    pub id: Option<String>,
    /// What else there is.
    pub extra: Map,
}

/// A call that a model asked for and that cannot be made, because its arguments are not JSON.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct InvalidToolCall {
    /// The tool.
    pub name: Option<String>,
    /// The arguments, as the model wrote them.
    pub args: Option<String>,
    /// Tells calls apart.
    pub id: Option<String>,
    /// What is wrong with it.
    pub error: Option<String>,
    /// What else there is.
    pub extra: Map,
}

/// A piece of a tool call that is still being streamed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolCallChunk {
    /// The tool, or a piece of its name.
    pub name: Option<String>,
    /// A piece of the arguments, which are JSON.
    pub args: Option<String>,
    /// Tells calls apart.
    pub id: Option<String>,
    /// Pieces with the same index belong to the same call.
    pub index: Option<i64>,
    /// What else there is.
    pub extra: Map,
}

impl ToolCall {
    /// A call of `name` with these arguments.
    pub fn new<K: Into<String>, V: Into<Value>>(
        id: impl Into<String>,
        name: impl Into<String>,
        args: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let args = args.into_iter().map(|(key, value)| (key.into(), value.into())).collect();
        Self { name: name.into(), args, id: Some(id.into()), extra: Map::new() }
    }

    /// The call with the arguments given as a map.
    fn of_map(mut map: Map) -> Option<Self> {
        if map.contains_key("function") {
            return Self::of_openai(map);
        }
        let name = text(map.shift_remove("name")?)??;
        let Value::Map(args) = map.shift_remove("args")? else { return None };
        let id = text(map.shift_remove("id").unwrap_or_default())?;
        take_type(&mut map, "tool_call")?;
        Some(Self { name, args, id, extra: map })
    }

    /// As providers write it: `{"function": {"name": ..., "arguments": "{...}"}, "id": ...}`.
    fn of_openai(mut map: Map) -> Option<Self> {
        let Value::Map(mut function) = map.shift_remove("function")? else { return None };
        let name = text(function.shift_remove("name")?)??;
        let args = match function.shift_remove("arguments")? {
            Value::Str(json) => serde_json::from_str(&json).ok()?,
            other => other,
        };
        let Value::Map(args) = args else { return None };
        let id = text(map.shift_remove("id").unwrap_or_default())?;
        Some(Self { name, args, id, extra: Map::new() })
    }
}

impl InvalidToolCall {
    fn of_map(mut map: Map) -> Option<Self> {
        let mut field = |name| text(map.shift_remove(name).unwrap_or_default());
        let (name, args, id, error) =
            (field("name")?, field("args")?, field("id")?, field("error")?);
        take_type(&mut map, "invalid_tool_call")?;
        Some(Self { name, args, id, error, extra: map })
    }
}

impl ToolCallChunk {
    /// A piece of the call with this index.
    pub fn new(index: i64, args: impl Into<String>) -> Self {
        Self { index: Some(index), args: Some(args.into()), ..Self::default() }
    }

    /// The same piece with the id and the name of the call, as the first piece of a call has them.
    #[must_use]
    pub fn of_call(self, id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: Some(id.into()), name: Some(name.into()), ..self }
    }

    fn of_map(mut map: Map) -> Option<Self> {
        let index = match map.shift_remove("index").unwrap_or_default() {
            Value::Null => None,
            Value::Int(index) => Some(index),
            _ => return None,
        };
        let mut field = |name| text(map.shift_remove(name).unwrap_or_default());
        let (name, args, id) = (field("name")?, field("args")?, field("id")?);
        take_type(&mut map, "tool_call_chunk")?;
        Some(Self { name, args, id, index, extra: map })
    }
}

/// Text or nothing; no answer if it is anything else.
pub(super) fn text(value: Value) -> Option<Option<String>> {
    match value {
        Value::Null => Some(None),
        Value::Str(text) => Some(Some(text)),
        _ => None,
    }
}

/// Takes the field `type`, which may be missing but not be something else.
fn take_type(map: &mut Map, kind: &str) -> Option<()> {
    match map.shift_remove("type") {
        Some(Value::Str(given)) if given == kind => Some(()),
        Some(_) => None,
        None => Some(()),
    }
}

/// A type that is read from a list of maps all of which have its form.
pub(super) trait OfMap: Sized {
    /// The name of the type, for errors.
    const WHAT: &'static str;

    fn of_map(map: Map) -> Option<Self>;

    /// The list, or the value back.
    fn list(value: Value) -> Result<Vec<Self>, Value> {
        match value {
            Value::List(items) if items.is_empty() => Ok(Vec::new()),
            Value::List(items) => {
                let all = items.iter().map(|item| Self::of_map(item.fields()?.clone()));
                all.collect::<Option<_>>().ok_or(Value::List(items))
            }
            other => Err(other),
        }
    }
}

struct Fields<'a, const N: usize>([(&'static str, Value); N], &'a Map);

impl<const N: usize> Fields<'_, N> {
    fn serialize<S: Serializer>(self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(N + self.1.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        for (key, value) in self.1 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4 + self.extra.len()))?;
        map.serialize_entry("name", &self.name)?;
        map.serialize_entry("args", &self.args)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", "tool_call")?;
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Serialize for InvalidToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = [
            ("type", "invalid_tool_call".into()),
            ("id", self.id.clone().into()),
            ("name", self.name.clone().into()),
            ("args", self.args.clone().into()),
            ("error", self.error.clone().into()),
        ];
        Fields(fields, &self.extra).serialize(serializer)
    }
}

impl Serialize for ToolCallChunk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = [
            ("name", self.name.clone().into()),
            ("args", self.args.clone().into()),
            ("id", self.id.clone().into()),
            ("index", self.index.into()),
            ("type", "tool_call_chunk".into()),
        ];
        Fields(fields, &self.extra).serialize(serializer)
    }
}

macro_rules! of_map {
    ($($type:ident $what:literal),*) => {$(
        impl OfMap for $type {
            const WHAT: &'static str = $what;

            fn of_map(map: Map) -> Option<Self> {
                $type::of_map(map)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = Value::deserialize(deserializer)?;
                let read = value.fields().cloned().and_then(Self::of_map);
                read.ok_or_else(|| {
                    de::Error::custom(format_args!("expected {}, found {value}", Self::WHAT))
                })
            }
        }
    )*};
}

of_map! {
    ToolCall "a tool call with `name`, `args` and `id`",
    InvalidToolCall "an invalid tool call",
    ToolCallChunk "a piece of a tool call"
}
