use std::fmt;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

/// Ticks of 100 ns between 1582-10-15, where version 6 ids begin, and 1970-01-01.
const UUID_EPOCH_TICKS: u64 = 0x01B2_1DD2_1381_4000;

macro_rules! uuid_newtype {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// The id with these sixteen bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The sixteen bytes of the id.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// The id as a UUID.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl FromStr for $name {
            type Err = crate::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::try_parse(text).map(Self).map_err(|_| {
                    crate::Error::codec(format_args!("`{text}` is not an id of 32 hexadecimal digits"))
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }
    };
}

uuid_newtype! {
    /// The id of a checkpoint. Ids of one thread sort by time, so the latest is the greatest.
    CheckpointId
}

uuid_newtype! {
    /// The id of a task: one execution of one node in one superstep.
    TaskId
}

impl CheckpointId {
    /// The smallest id of this time, for comparisons.
    pub fn at(time: SystemTime) -> Self {
        Self(Uuid::from_u128((compose(ticks_at(time), 0, 0).0.as_u128() >> 64) << 64))
    }

    /// The time when the id was made; `None` for ids that are not of version 6.
    pub fn time(&self) -> Option<SystemTime> {
        let ticks = ticks(*self)?.checked_sub(UUID_EPOCH_TICKS)?;
        let time = Duration::new(ticks / 10_000_000, (ticks % 10_000_000) as u32 * 100);
        UNIX_EPOCH.checked_add(time)
    }
}

impl TaskId {
    /// Owner of writes that belong to no task, such as those of a command given as input.
    pub const NULL: Self = Self(Uuid::nil());

    /// Owner of the write that says which run has taken a thread, and which answers it was given
    /// for subgraphs. No task has this id, so readers that do not know of it ignore it.
    pub const CLAIM: Self = Self(Uuid::from_bytes(*b"superstep-claims"));

    /// Owner of the write that says when to look at a thread again, see [`Alarm`](crate::Alarm). No task has
    /// this id either.
    pub const ALARM: Self = Self(Uuid::from_bytes(*b"superstep-alarms"));

    /// Whether no task can have this id.
    pub fn is_reserved(self) -> bool {
        [Self::NULL, Self::CLAIM, Self::ALARM].contains(&self)
    }
}

/// The id of a question: 32 hexadecimal digits, the same each time the node runs again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InterruptId(String);

impl InterruptId {
    /// An id from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The id of the next question of a task with this namespace and number of answers.
    ///
    /// It is part of the stored format, and the same in LangGraph.
    pub fn of_task(ns: &str, answers: usize) -> Self {
        let hash = match answers {
            0 => xxh3_128(ns.as_bytes()),
            _ => xxh3_128(format!("{ns}|{answers}").as_bytes()),
        };
        Self(format!("{hash:032x}"))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InterruptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for InterruptId {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for InterruptId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

/// Makes checkpoint ids: UUID version 6, strictly increasing within the process.
///
/// The clock sequence of an id holds the step, so that a person can read it from the fourth group.
#[derive(Debug)]
pub struct IdClock {
    last: Mutex<(u64, u64)>,
}

impl Default for IdClock {
    fn default() -> Self {
        Self::new()
    }
}

impl IdClock {
    /// A clock with a random node part.
    pub fn new() -> Self {
        let seed = Uuid::new_v4().as_u128() as u64;
        Self { last: Mutex::new((0, seed)) }
    }

    /// The next id, for a checkpoint of this step that follows `parent`.
    ///
    /// The id is greater than every id made before here and greater than its parent's, whatever the
    /// clocks of the machines involved say.
    pub fn next(&self, step: i64, parent: Option<CheckpointId>) -> CheckpointId {
        let now = ticks_at(SystemTime::now());
        let parent = parent.and_then(ticks).map_or(0, |ticks| ticks + 1);
        let (ticks, node) = {
            let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            last.0 = now.max(last.0 + 1).max(parent);
            last.1 = split_mix(last.1);
            *last
        };
        compose(ticks, step, node)
    }

    /// The next id, for a checkpoint of this step that follows `parent` and is not stored.
    ///
    /// It is greater than its parent's id and has its time: no clock is read.
    pub fn next_unstored(&self, step: i64, parent: CheckpointId) -> CheckpointId {
        match ticks(parent) {
            Some(ticks) => compose(ticks + 1, step, split_mix(parent.0.as_u128() as u64)),
            None => self.next(step, Some(parent)),
        }
    }
}

/// A time in the ticks of an id, which has room for 60 bits of them.
fn ticks_at(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let ticks = since.as_secs().saturating_mul(10_000_000);
    let ticks = ticks.saturating_add(u64::from(since.subsec_nanos() / 100));
    ticks.saturating_add(UUID_EPOCH_TICKS).min(u64::MAX >> 4)
}

fn split_mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn compose(ticks: u64, step: i64, node: u64) -> CheckpointId {
    let high = (u128::from(ticks >> 12) << 80) | (6 << 76) | (u128::from(ticks & 0xFFF) << 64);
    let sequence = (step & 0x3FFF) as u128;
    let low = (0b10 << 62) | (sequence << 48) | u128::from(node & 0xFFFF_FFFF_FFFF);
    CheckpointId(Uuid::from_u128(high | low))
}

/// The time inside a version 6 id; `None` for ids of another version.
fn ticks(id: CheckpointId) -> Option<u64> {
    let bits = id.0.as_u128();
    ((bits >> 76) & 0xF == 6)
        .then_some((((bits >> 80) as u64) << 12) | ((bits >> 64) as u64 & 0xFFF))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_shows_its_step_in_the_fourth_group() {
        let clock = IdClock::new();
        for (step, group) in [(-2, "bffe"), (-1, "bfff"), (0, "8000"), (1, "8001")] {
            let id = clock.next(step, None).to_string();
            assert_eq!(&id[14..15], "6", "{id} is not of version 6");
            assert_eq!(&id[19..23], group);
        }
    }

    #[test]
    fn ids_grow_even_when_the_clock_does_not() {
        let clock = IdClock::new();
        let ids: Vec<_> = (0..10_000).map(|_| clock.next(0, None).to_string()).collect();
        assert!(ids.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn an_id_is_greater_than_its_parent_from_a_machine_whose_clock_is_ahead() {
        let ahead: CheckpointId = "3f1e1343-b0b3-6f28-8001-f615d72d0c55".parse().expect("an id");
        assert!(IdClock::new().next(2, Some(ahead)) > ahead);
    }

    #[test]
    fn ids_of_what_is_not_stored_grow_too_and_differ_from_run_to_run() {
        let clock = IdClock::new();
        let begin = || clock.next(-1, None);
        let follow = |id: &CheckpointId| Some(clock.next_unstored(0, *id));
        let runs = [begin(), begin()].map(|first| std::iter::successors(Some(first), follow));
        let [one, other] = runs.map(|ids| ids.take(1000).collect::<Vec<_>>());
        assert!(one.is_sorted_by(|a, b| a < b));
        assert!(one.iter().all(|id| !other.contains(id)));
    }

    #[test]
    fn an_id_and_the_time_it_was_made_lead_to_each_other() {
        let id: CheckpointId = "1f1e1343-b0b3-6f28-8001-f615d72d0c55".parse().expect("an id");
        let time = id.time().expect("a time");
        assert_eq!(time, UNIX_EPOCH + Duration::from_nanos(1_794_774_987_033_783_200));
        let least = CheckpointId::at(time);
        assert!(least <= id && CheckpointId::at(time + Duration::from_nanos(100)) > id);
        assert_eq!(CheckpointId::from(Uuid::nil()).time(), None);
    }

    #[test]
    fn the_time_inside_an_id_is_where_the_reference_puts_it() {
        let id: CheckpointId = "1f1e1343-b0b3-6f28-8001-f615d72d0c55".parse().expect("an id");
        assert_eq!(ticks(id), Some(140_140_677_870_337_832));
        assert_eq!(compose(140_140_677_870_337_832, 1, 0xf615_d72d_0c55), id);
    }
}
