use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use superstep_checkpoint::object::{self, ObjectDeserializer};
use uuid::Uuid;

/// An item with an id.
///
/// Implement it for your own message type to use it with [`Messages`](crate::state::Messages).
pub trait Identified: Clone + Send + Sync + 'static {
    /// The id, if it has one yet.
    fn id(&self) -> Option<&str>;

    /// Gives it an id.
    fn set_id(&mut self, id: String);

    /// Whether this is a request to remove the item with the same id.
    fn removes(&self) -> bool {
        false
    }

    /// Whether this is a request to remove all earlier items.
    fn removes_all(&self) -> bool {
        false
    }

    /// The item that is stored: a chunk of a message becomes a message.
    #[must_use]
    fn into_whole(self) -> Self {
        self
    }
}

/// Messages on their way into a list of messages.
///
/// Each has an id: one that came without gets one here, before anything is stored, so that a replay gives the
/// same list.
#[derive(Clone)]
pub struct MessageUpdate<M> {
    /// Each message, and whether its id was generated here, so that it cannot be in the list.
    messages: Vec<(M, bool)>,
}

impl<M: Identified> MessageUpdate<M> {
    /// Messages as they were stored, each with an id.
    fn as_they_are(messages: impl IntoIterator<Item = M>) -> Self {
        let messages = messages.into_iter().map(|mut message| {
            let fresh = message.id().is_none();
            if fresh {
                message.set_id(Uuid::new_v4().to_string());
            }
            (message, fresh)
        });
        Self { messages: messages.collect() }
    }

    fn one(message: M) -> Self {
        Self::as_they_are([message])
    }

    pub(in crate::state) fn apply(self, list: &mut Vec<M>) {
        self.fold(list, &mut None);
    }

    /// Applies many updates without looking through the list for each message.
    pub(in crate::state) fn apply_all(updates: Vec<Self>, list: &mut Vec<M>) {
        const FEW: usize = 8;
        let mut places = (updates.len() > FEW).then(|| Places::of(list));
        updates.into_iter().for_each(|update| update.fold(list, &mut places));
    }

    /// As `add_messages` does it: what one update removes is gone at its end, unless the same update puts it back, which then
    /// keeps its place. After a request to remove everything the messages are taken as they are.
    fn fold(self, list: &mut Vec<M>, places: &mut Option<Places>) {
        if let Some(at) = self.messages.iter().rposition(|(message, _)| message.removes_all()) {
            list.clear();
            list.extend(self.messages.into_iter().skip(at + 1).map(|(message, _)| message));
            *places = places.as_ref().map(|_| Places::of(list));
            return;
        }
        let mut removed = HashSet::new();
        for (message, fresh) in self.messages {
            let known = match places {
                _ if fresh => None,
                Some(places) => places.find(list, &message),
                None => position(list, &message),
            };
            match known {
                Some(_) if message.removes() => {
                    removed.insert(message.id().map(str::to_owned));
                }
                Some(at) => {
                    removed.remove(&message.id().map(str::to_owned));
                    list[at] = message;
                }
                // Only what is stored comes here: it was refused or ignored by who stored it.
                None if message.removes() => {}
                None => {
                    if let Some(places) = places {
                        places.note(list.len(), &message);
                    }
                    list.push(message);
                }
            }
        }
        if !removed.is_empty() {
            list.retain(|message| !removed.contains(&message.id().map(str::to_owned)));
            *places = places.as_ref().map(|_| Places::of(list));
        }
    }

    /// Refuses to remove what does not exist.
    pub(in crate::state) fn check(&self, list: &[M]) -> Result<(), String> {
        let removes = |(message, _): &(M, bool)| message.removes();
        if !self.messages.iter().any(removes) || self.removes_all() {
            return Ok(());
        }
        let mut known: HashSet<_> = list.iter().map(Identified::id).collect();
        for (message, _) in &self.messages {
            if !message.removes() {
                known.insert(message.id());
            } else if !known.contains(&message.id()) {
                let id = message.id().unwrap_or_default();
                return Err(format!(
                    "no message has the id `{id}`, so it cannot be removed; give the id of a message of the list"
                ));
            }
        }
        Ok(())
    }

    pub(in crate::state) fn removes_all(&self) -> bool {
        self.messages.iter().any(|(message, _)| message.removes_all())
    }

    pub(in crate::state) fn only_adds_to(&self, list: &[M]) -> bool {
        self.messages.iter().all(|(message, fresh)| {
            *fresh || (!message.removes() && position(list, message).is_none())
        })
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
        Self::as_they_are(messages.into_iter().map(M::into_whole))
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
impl<'de, M: Identified + Deserialize<'de>> Deserialize<'de> for MessageUpdate<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        object::deserialize(deserializer, UpdateVisitor(PhantomData))
    }
}

struct UpdateVisitor<M>(PhantomData<M>);

impl<'de, M: Identified + Deserialize<'de>> Visitor<'de> for UpdateVisitor<M> {
    type Value = MessageUpdate<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message, or a list of messages")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut messages = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(1024));
        while let Some(message) = seq.next_element::<M>()? {
            messages.push(message);
        }
        Ok(MessageUpdate::as_they_are(messages))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, object: A) -> Result<Self::Value, A::Error> {
        M::deserialize(ObjectDeserializer(object)).map(MessageUpdate::one)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        M::deserialize(MapAccessDeserializer::new(map)).map(MessageUpdate::one)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        M::deserialize(text.into_deserializer()).map(MessageUpdate::one)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        M::deserialize(number.into_deserializer()).map(MessageUpdate::one)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        M::deserialize(number.into_deserializer()).map(MessageUpdate::one)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;
    use crate::state::Message;

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
