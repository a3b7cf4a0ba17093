//! How a message is stored: as an object of its class, with the fields in LangChain's order.

use serde::ser::{Serialize, SerializeMap, Serializer};
use superstep_checkpoint::object;

use super::{Message, Role};

/// The fields that all messages have.
pub(super) const BASE: [&str; 6] =
    ["content", "additional_kwargs", "response_metadata", "type", "name", "id"];

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (module, name) = self.class();
        object::serialize(module, name, &Fields(self), serializer)
    }
}

struct Fields<'a>(&'a Message);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let own = message.role.fields(message.is_chunk());
        let declared = |name: &str| BASE.contains(&name) || own.contains(&name);
        let undeclared = message.extra.iter().filter(|(name, _)| !declared(name));
        let len = BASE.len() + own.len() + undeclared.clone().count();
        let mut map = serializer.serialize_map(Some(len))?;
        for name in BASE.iter().chain(own) {
            // Only a value that is not of the declared type is here.
            match message.extra.get(*name) {
                Some(value) => map.serialize_entry(name, value)?,
                None => message.serialize_field(name, &mut map)?,
            }
        }
        for (name, value) in undeclared {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Message {
    fn serialize_field<M: SerializeMap>(&self, name: &str, map: &mut M) -> Result<(), M::Error> {
        let chunk = self.chunk.as_deref();
        match name {
            "content" => map.serialize_entry(name, &self.content),
            "additional_kwargs" => map.serialize_entry(name, &self.additional_kwargs),
            "response_metadata" => map.serialize_entry(name, &self.response_metadata),
            "type" => map.serialize_entry(name, self.role.kind(self.is_chunk())),
            "name" => map.serialize_entry(name, &self.name),
            "id" => map.serialize_entry(name, &self.id),
            "tool_calls" => map.serialize_entry(name, &self.tool_calls),
            "invalid_tool_calls" => map.serialize_entry(name, &self.invalid_tool_calls),
            "usage_metadata" => map.serialize_entry(name, &self.usage_metadata),
            "tool_call_id" => map.serialize_entry(name, &self.tool_call_id),
            "artifact" => map.serialize_entry(name, &self.artifact),
            "status" => map.serialize_entry(name, self.status.as_str()),
            "tool_call_chunks" => {
                let pieces = chunk.map_or(&[][..], |chunk| &chunk.tool_call_chunks);
                map.serialize_entry(name, pieces)
            }
            "chunk_position" => {
                let last = chunk.is_some_and(|chunk| chunk.last);
                map.serialize_entry(name, &last.then_some("last"))
            }
            "role" => match &self.role {
                Role::Chat(role) => map.serialize_entry(name, role),
                _ => map.serialize_entry(name, &()),
            },
            _ => unreachable!("no message declares another field"),
        }
    }
}
