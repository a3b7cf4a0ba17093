//! How a message is read: from an object of any class, and from the other forms that `add_messages` takes.

// Stored data is untrusted.
#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)
)]

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, EnumAccess, MapAccess, SeqAccess, Visitor};
use superstep_checkpoint::Value;
use superstep_checkpoint::object::{self, Class};

use super::calls::{OfMap, text};
use super::{Message, Role, ToolStatus};

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object::deserialize(deserializer, MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, object: A) -> Result<Message, A::Error> {
        let (class, fields) = object.variant::<Class<'de>>()?;
        de::VariantAccess::struct_variant(fields, &[], ObjectVisitor(class))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Message, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Message, A::Error> {
        let mut reading = Reading::default();
        reading.read(map)?;
        reading.into_plain().map_err(de::Error::custom)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Message, E> {
        Ok(Message::human(text))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Message, E> {
        Ok(Message::human(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Message, A::Error> {
        let what = "a pair of role and content";
        let missing = |at| de::Error::invalid_length(at, &what);
        let role: Cow<'de, str> = seq.next_element()?.ok_or_else(|| missing(0))?;
        let content: Value = seq.next_element()?.ok_or_else(|| missing(1))?;
        if seq.next_element::<de::IgnoredAny>()?.is_some() {
            return Err(missing(3));
        }
        let pair = Reading { content: Some(content), kind: Some(role), ..Reading::default() };
        pair.into_plain().map_err(de::Error::custom)
    }
}

/// Reads the fields of an object of this class.
struct ObjectVisitor<'de>(Class<'de>);

impl<'de> Visitor<'de> for ObjectVisitor<'de> {
    type Value = Message;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the fields of a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Message, A::Error> {
        let mut reading = Reading::default();
        reading.read(map)?;
        reading.of_class(self.0).map_err(de::Error::custom)
    }
}

/// A message that is being read.
#[derive(Default)]
struct Reading<'de> {
    message: Message,
    content: Option<Value>,
    /// The field `type`.
    kind: Option<Cow<'de, str>>,
}

/// A field that all messages have, or another.
enum FieldName {
    Content,
    AdditionalKwargs,
    ResponseMetadata,
    Type,
    Name,
    Id,
    /// One that some roles declare.
    Declared(&'static str),
    Other(String),
}

impl<'de> Deserialize<'de> for FieldName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = FieldName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<FieldName, E> {
        Ok(FieldName::of(name))
    }
}

impl FieldName {
    fn of(name: &str) -> Self {
        match name {
            "content" => Self::Content,
            "additional_kwargs" => Self::AdditionalKwargs,
            "response_metadata" => Self::ResponseMetadata,
            "type" => Self::Type,
            "name" => Self::Name,
            "id" => Self::Id,
            other => match DECLARED.iter().find(|name| **name == other) {
                Some(name) => Self::Declared(name),
                None => Self::Other(other.to_owned()),
            },
        }
    }
}

const DECLARED: [&str; 9] = [
    "tool_calls",
    "invalid_tool_calls",
    "usage_metadata",
    "tool_call_id",
    "artifact",
    "status",
    "tool_call_chunks",
    "chunk_position",
    "role",
];

/// Text that is borrowed where it can be, nothing, or something else.
enum Text<'de> {
    Given(Cow<'de, str>),
    Null,
    Other(Value),
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text::Given(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text::Given(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Text<'de>, E> {
        Ok(Text::Given(Cow::Owned(text)))
    }

    fn visit_unit<E>(self) -> Result<Text<'de>, E> {
        Ok(Text::Null)
    }

    fn visit_none<E>(self) -> Result<Text<'de>, E> {
        Ok(Text::Null)
    }

    fn visit_bool<E>(self, yes: bool) -> Result<Text<'de>, E> {
        Ok(Text::Other(yes.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Text<'de>, E> {
        Ok(Text::Other(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Text<'de>, E> {
        Ok(Text::Other(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Text<'de>, E> {
        Ok(Text::Other(number.into()))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Text<'de>, E> {
        Ok(Text::Other(Value::Bytes(bytes.to_vec())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Text<'de>, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(seq)).map(Text::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Text<'de>, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(Text::Other)
    }
}

impl From<Value> for Text<'_> {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Str(text) => Self::Given(Cow::Owned(text)),
            other => Self::Other(other),
        }
    }
}

impl<'de> Reading<'de> {
    fn read<A: MapAccess<'de>>(&mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key()? {
            match name {
                FieldName::Type => self.put_type(map.next_value()?),
                FieldName::Name => self.put_name(map.next_value()?),
                FieldName::Id => self.put_id(map.next_value()?),
                name => self.put(name, map.next_value()?),
            }
        }
        Ok(())
    }

    fn put_type(&mut self, kind: Text<'de>) {
        match kind {
            Text::Given(kind) => self.set_kind(kind),
            Text::Null => self.keep("type", Value::Null),
            Text::Other(value) => self.keep("type", value),
        }
    }

    fn put_name(&mut self, name: Text<'de>) {
        match name {
            Text::Given(name) => self.message.name = Some(name.into_owned()),
            Text::Null => {}
            Text::Other(value) => self.keep("name", value),
        }
    }

    fn put_id(&mut self, id: Text<'de>) {
        match id {
            Text::Given(id) => self.message.id = Some(id.into_owned()),
            Text::Null => {}
            Text::Other(Value::Int(number)) => self.message.id = Some(number.to_string()),
            Text::Other(value) => self.keep("id", value),
        }
    }

    fn put(&mut self, name: FieldName, value: Value) {
        match name {
            FieldName::Content => self.content = Some(value),
            FieldName::AdditionalKwargs => match value {
                Value::Map(fields) => self.message.additional_kwargs = fields,
                other => self.keep("additional_kwargs", other),
            },
            FieldName::ResponseMetadata => match value {
                Value::Map(fields) => self.message.response_metadata = fields,
                other => self.keep("response_metadata", other),
            },
            FieldName::Type => self.put_type(value.into()),
            FieldName::Name => self.put_name(value.into()),
            FieldName::Id => self.put_id(value.into()),
            FieldName::Declared(name) => {
                if let Some(value) = self.message.take(name, value) {
                    self.keep(name, value);
                }
            }
            FieldName::Other(name) => {
                self.message.extra.insert(name, value);
            }
        }
    }

    fn keep(&mut self, name: &str, value: Value) {
        self.message.extra.insert(name.to_owned(), value);
    }

    fn set_kind(&mut self, kind: Cow<'de, str>) {
        self.message.set_kind(&kind);
        self.kind = Some(kind);
    }

    /// The message, if an object of this class was read.
    fn of_class(mut self, class: Class<'_>) -> Result<Message, String> {
        let Class { module, name } = class;
        let (Some(content), true) = (self.content, self.kind.is_some()) else {
            return Err(format!(
                "expected a message, found an object of the class `{module}.{name}`"
            ));
        };
        self.message.content = content;
        self.message.settle();
        if self.message.class() != (&*module, &*name) {
            self.message = self.message.with_class(module, name);
        }
        Ok(self.message)
    }

    /// The message, if it was read from a map without a class.
    fn into_plain(mut self) -> Result<Message, String> {
        if self.kind.as_deref() == Some("constructor") && self.message.extra.contains_key("lc") {
            return self.into_constructed();
        }
        let named = match self.message.extra.get("role") {
            Some(Value::Str(role)) if !matches!(self.message.role, Role::Chat(_)) => {
                Some(role.clone())
            }
            _ => None,
        };
        match (named, self.kind.take()) {
            (Some(name), kind) => {
                let role = Role::of_name(&name).ok_or_else(|| unknown_role(&name))?;
                self.message.extra.shift_remove("role");
                if let Some(kind) = kind {
                    self.keep("type", kind.into_owned().into());
                }
                (self.message.role, self.message.chunk) = (role, None);
                self.message.settle();
                self.move_extra_to_kwargs(&name);
            }
            (None, Some(kind)) => {
                if let Some(role) = Role::of_name(&kind) {
                    self.message.role = role;
                    self.note_developer(&kind);
                }
                self.message.settle();
            }
            (None, None) => {
                return Err("a message given as a map needs `type` or `role`".to_owned());
            }
        }
        self.message.content = match (self.content, &self.message.role) {
            (None, Role::Remove) | (Some(Value::Null), _) => "".into(),
            (Some(content), _) => content,
            (None, role) => return Err(format!("the message of `{role}` has no `content`")),
        };
        Ok(self.message)
    }

    /// Fields that the class does not declare are arguments for the provider, where a message is given by `role`.
    fn move_extra_to_kwargs(&mut self, name: &str) {
        let example = self.message.extra.shift_remove("example");
        self.message.additional_kwargs.extend(std::mem::take(&mut self.message.extra));
        if let Some(example) = example.filter(|example| *example == Value::Bool(true)) {
            self.keep("example", example);
        }
        self.note_developer(name);
    }

    fn note_developer(&mut self, name: &str) {
        if name == "developer" {
            let role = ("__openai_role__".to_owned(), name.into());
            self.message.additional_kwargs.extend([role]);
        }
    }

    /// `{"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs": {...}}`.
    fn into_constructed(mut self) -> Result<Message, String> {
        let id = self.message.extra.shift_remove("id");
        let name = id.as_ref().and_then(|id| id.as_list()?.last()?.as_str()).unwrap_or_default();
        let Some(kind) = name.strip_suffix("Chunk").unwrap_or(name).strip_suffix("Message") else {
            return Err(format!("LangChain's class `{name}` is none of messages"));
        };
        let Some(Value::Map(fields)) = self.message.extra.shift_remove("kwargs") else {
            return Err("LangChain's constructor of a message has no `kwargs`".to_owned());
        };
        let kind = kind.to_lowercase();
        let mut inner = Reading::default();
        fields.into_iter().for_each(|(name, value)| inner.put(FieldName::of(&name), value));
        if kind != "chat" && Role::of_name(&kind).is_none() {
            return Err(format!("LangChain's class `{name}` is none of messages"));
        }
        inner.set_kind(Cow::Owned(kind));
        inner.into_plain()
    }
}

fn unknown_role(name: &str) -> String {
    format!(
        "`{name}` is not a role of a message; use `user`, `assistant`, `system`, `developer`, `tool` or `function`"
    )
}

impl Message {
    fn set_kind(&mut self, kind: &str) {
        let (role, chunk) = Role::of_kind(kind);
        self.role = role;
        self.chunk = chunk.then(Box::default);
    }

    /// Takes the fields of the role out of those that came before the role was known.
    fn settle(&mut self) {
        if self.extra.is_empty() {
            return;
        }
        for name in self.role.fields(self.is_chunk()) {
            if let Some(value) = self.extra.shift_remove(*name)
                && let Some(value) = self.take(name, value)
            {
                self.extra.insert((*name).to_owned(), value);
            }
        }
    }

    /// Takes a field that the role declares, if the value is of its type; otherwise the value comes back.
    fn take(&mut self, name: &str, value: Value) -> Option<Value> {
        if !self.role.fields(self.is_chunk()).contains(&name) {
            return Some(value);
        }
        fn put<T>(read: Result<T, Value>, place: &mut T) -> Option<Value> {
            read.map(|value| *place = value).err()
        }
        match name {
            "tool_calls" => put(OfMap::list(value), &mut self.tool_calls),
            "invalid_tool_calls" => put(OfMap::list(value), &mut self.invalid_tool_calls),
            "usage_metadata" => match value {
                Value::Null => None,
                Value::Map(usage) => {
                    self.usage_metadata = Some(usage);
                    None
                }
                other => Some(other),
            },
            "tool_call_id" => match value {
                Value::Int(number) => put(Ok(Some(number.to_string())), &mut self.tool_call_id),
                other => put(text(other.clone()).ok_or(other), &mut self.tool_call_id),
            },
            "artifact" => put(Ok(value), &mut self.artifact),
            "status" => match value.as_str() {
                Some("success") => put(Ok(ToolStatus::Success), &mut self.status),
                Some("error") => put(Ok(ToolStatus::Error), &mut self.status),
                _ => Some(value),
            },
            "tool_call_chunks" => put(OfMap::list(value), &mut self.chunk_mut().tool_call_chunks),
            "chunk_position" => match value.as_str() {
                Some("last") => put(Ok(true), &mut self.chunk_mut().last),
                None if value.is_null() => None,
                _ => Some(value),
            },
            "role" => match value {
                Value::Str(role) => put(Ok(Role::Chat(role)), &mut self.role),
                other => Some(other),
            },
            _ => Some(value),
        }
    }
}
