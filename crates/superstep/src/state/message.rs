use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use superstep_checkpoint::{Map, Value};
use uuid::Uuid;

/// An item that can be told from others by an id.
///
/// Implement it for your own message type to use it with [`Messages`](super::Messages).
pub trait Identified: Clone + Send + Sync + 'static {
    /// The id, if it has one yet.
    fn id(&self) -> Option<&str>;

    /// Gives it an id.
    fn set_id(&mut self, id: String);

    /// Whether this asks for the item with the same id to be removed.
    fn removes(&self) -> bool {
        false
    }
}

/// A message of a conversation with a model.
///
/// The fields are those of the messages LangGraph stores, so that either engine reads the other's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// The text, or a list of content blocks.
    pub content: Value,
    /// What a provider adds beside the content.
    pub additional_kwargs: Map,
    /// What a provider says about its answer.
    pub response_metadata: Map,
    /// Who speaks: `human`, `ai`, `system`, `tool`, or `remove` for a request to remove the message with this id.
    #[serde(rename = "type")]
    pub role: String,
    /// A name for the speaker.
    pub name: Option<String>,
    /// Tells messages apart; given when the message is written, if it has none.
    pub id: Option<String>,
    /// Tool calls the model asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Value>,
    /// The call that a `tool` message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of this role.
    pub fn new(role: impl Into<String>, content: impl Into<Value>) -> Self {
        Self { role: role.into(), content: content.into(), ..Self::default() }
    }

    /// What a person said.
    pub fn human(content: impl Into<Value>) -> Self {
        Self::new("human", content)
    }

    /// What a model said.
    pub fn ai(content: impl Into<Value>) -> Self {
        Self::new("ai", content)
    }

    /// What the model is told before the conversation.
    pub fn system(content: impl Into<Value>) -> Self {
        Self::new("system", content)
    }

    /// What a tool answered to a call.
    pub fn tool(call: impl Into<String>, content: impl Into<Value>) -> Self {
        Self { tool_call_id: Some(call.into()), ..Self::new("tool", content) }
    }

    /// A request to remove the message with this id.
    #[doc(alias = "RemoveMessage")]
    pub fn remove(id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..Self::new("remove", "") }
    }

    /// The same message with an id.
    #[must_use]
    pub fn with_id(self, id: impl Into<String>) -> Self {
        Self { id: Some(id.into()), ..self }
    }
}

impl Identified for Message {
    fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn set_id(&mut self, id: String) {
        self.id = Some(id);
    }

    fn removes(&self) -> bool {
        self.role == "remove"
    }
}

/// Messages on their way into a list of messages.
///
/// Each has an id: one that came without gets one here, before anything is stored, so that a replay gives the
/// same list.
#[derive(Clone)]
pub struct MessageUpdate<M> {
    /// With each message, whether its id was made here, so that no message of the list can have it.
    messages: Vec<(M, bool)>,
}

impl<M: Identified> MessageUpdate<M> {
    pub(super) fn apply(self, list: &mut Vec<M>) {
        for (message, fresh) in self.messages {
            let known = if fresh { None } else { position(list, &message) };
            put(list, known, message);
        }
    }

    /// Applies many updates without looking through the list for each message.
    pub(super) fn apply_all(updates: Vec<Self>, list: &mut Vec<M>) {
        const FEW: usize = 8;
        let mut places = (updates.len() > FEW).then(|| Places::of(list));
        for (message, _) in updates.into_iter().flat_map(|update| update.messages) {
            let Some(known) = &mut places else {
                let known = position(list, &message);
                put(list, known, message);
                continue;
            };
            let at = known.find(list, &message);
            if at.is_some() && message.removes() {
                // Everything behind it moves.
                places = None;
            } else if at.is_none() && !message.removes() {
                known.note(list.len(), &message);
            }
            put(list, at, message);
        }
    }

    pub(super) fn only_adds_to(&self, list: &[M]) -> bool {
        self.messages.iter().all(|(message, fresh)| {
            *fresh || (!message.removes() && position(list, message).is_none())
        })
    }
}

/// Puts a message where the one with its id is, or at the end; or removes that one.
fn put<M: Identified>(list: &mut Vec<M>, known: Option<usize>, message: M) {
    match known {
        Some(at) if message.removes() => drop(list.remove(at)),
        Some(at) => list[at] = message,
        None if message.removes() => {}
        None => list.push(message),
    }
}

/// The last place of each id in a list, by the hash of the id.
struct Places {
    hasher: RandomState,
    by_hash: HashMap<u64, usize>,
}

impl Places {
    fn of<M: Identified>(list: &[M]) -> Self {
        let mut places = Self { hasher: RandomState::new(), by_hash: HashMap::new() };
        list.iter().enumerate().for_each(|(at, message)| places.note(at, message));
        places
    }

    fn note<M: Identified>(&mut self, at: usize, message: &M) {
        self.by_hash.insert(self.hasher.hash_one(message.id()), at);
    }

    fn find<M: Identified>(&self, list: &[M], message: &M) -> Option<usize> {
        let at = *self.by_hash.get(&self.hasher.hash_one(message.id()))?;
        // Another id may have the same hash, and then only looking helps.
        if list[at].id() == message.id() { Some(at) } else { position(list, message) }
    }
}

/// Searches from the end, because it is the newest messages that get replaced.
fn position<M: Identified>(list: &[M], message: &M) -> Option<usize> {
    list.iter().rposition(|old| old.id() == message.id())
}

impl<M: Identified> FromIterator<M> for MessageUpdate<M> {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Self {
        let messages = messages.into_iter().map(|mut message| {
            let fresh = message.id().is_none();
            if fresh {
                message.set_id(Uuid::new_v4().to_string());
            }
            (message, fresh)
        });
        Self { messages: messages.collect() }
    }
}

impl<M: Identified> From<M> for MessageUpdate<M> {
    fn from(message: M) -> Self {
        Self::from_iter([message])
    }
}

impl<M: Identified> From<Vec<M>> for MessageUpdate<M> {
    fn from(messages: Vec<M>) -> Self {
        Self::from_iter(messages)
    }
}

impl<M: Identified, const N: usize> From<[M; N]> for MessageUpdate<M> {
    fn from(messages: [M; N]) -> Self {
        Self::from_iter(messages)
    }
}

impl<M: fmt::Debug> fmt::Debug for MessageUpdate<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.messages.iter().map(|(message, _)| message)).finish()
    }
}

impl<M: Serialize> Serialize for MessageUpdate<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.messages.iter().map(|(message, _)| message))
    }
}

/// One message, or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany<M> {
    Many(Vec<M>),
    One(M),
}

impl<'de, M: Identified + Deserialize<'de>> Deserialize<'de> for MessageUpdate<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::Many(messages) => messages.into(),
            OneOrMany::One(message) => message.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// A message that counts how often anybody looks at an id.
    #[derive(Clone, Debug)]
    struct Counted(Message, Arc<AtomicUsize>);

    impl Identified for Counted {
        fn id(&self) -> Option<&str> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.id()
        }

        fn set_id(&mut self, id: String) {
            self.0.set_id(id);
        }
    }

    fn update(id: usize, text: usize, removes: bool) -> Message {
        let message = Message::human(text.to_string()).with_id(id.to_string());
        if removes { Message::remove(id.to_string()) } else { message }
    }

    proptest! {
        // The list may hold an id twice: what replaces a list is taken as it is.
        #[test]
        fn updates_give_the_same_together_as_one_by_one(
            before in prop::collection::vec(0..12_usize, 0..12),
            updates in prop::collection::vec((0..20_usize, prop::bool::weighted(0.1)), 0..40),
        ) {
            let mut one_by_one: Vec<_> = before.iter().map(|id| update(*id, 0, false)).collect();
            let mut together = one_by_one.clone();
            let updates = updates.iter().enumerate().map(|(nth, (id, removes))| update(*id, nth + 1, *removes));
            let updates: Vec<MessageUpdate<Message>> = updates.map(MessageUpdate::from).collect();
            updates.iter().cloned().for_each(|update| update.apply(&mut one_by_one));
            MessageUpdate::apply_all(updates, &mut together);
            prop_assert_eq!(together, one_by_one);
        }
    }

    #[test]
    fn many_updates_look_at_each_message_a_few_times() {
        let looks = Arc::new(AtomicUsize::new(0));
        let message = |id| Counted(update(id, 0, false), looks.clone());
        let mut list: Vec<_> = (0..1000).map(message).collect();
        let updates = (500..2500).map(|id| message(id).into()).collect();
        MessageUpdate::apply_all(updates, &mut list);
        assert_eq!(list.len(), 2500);
        let looks = looks.load(Ordering::Relaxed);
        assert!(looks < 10 * 3000, "{looks} looks at 3,000 messages");
    }
}
