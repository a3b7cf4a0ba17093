//! One total order over all values, so that they can be kept in sets.
//!
//! Equality, order and hash agree with each other: two values are equal exactly when they compare as equal, and
//! equal values hash alike. Maps are compared by their entries in the order of the keys,
//! sets by their items in order.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::{TimeLimits, Value};

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::UInt(a), Self::UInt(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Pairs(a), Self::Pairs(b)) => a.len() == b.len() && sorted(a) == sorted(b),
            (Self::Set(a), Self::Set(b)) => a == b,
            (Self::Ext(a), Self::Ext(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::UInt(a), Self::UInt(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => a.total_cmp(b),
            (Self::Str(a), Self::Str(b)) => a.cmp(b),
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::List(a), Self::List(b)) => a.cmp(b),
            (Self::Map(a), Self::Map(b)) => sorted(a).cmp(&sorted(b)),
            (Self::Pairs(a), Self::Pairs(b)) => sorted(a).cmp(&sorted(b)),
            (Self::Set(a), Self::Set(b)) => sorted(a).cmp(&sorted(b)),
            (Self::Ext(a), Self::Ext(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match self {
            Self::Null => {}
            Self::Bool(yes) => yes.hash(state),
            Self::Int(number) => number.hash(state),
            Self::UInt(number) => number.hash(state),
            Self::Float(number) => number.to_bits().hash(state),
            Self::Str(text) => text.hash(state),
            Self::Bytes(bytes) => bytes.hash(state),
            Self::List(items) => items.hash(state),
            Self::Map(map) => sorted(map).hash(state),
            Self::Pairs(pairs) => sorted(pairs).hash(state),
            Self::Set(items) => sorted(items).hash(state),
            Self::Ext(ext) => ext.hash(state),
        }
    }
}

impl Value {
    /// The rank of the kind.
    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) => 2,
            Self::UInt(_) => 3,
            Self::Float(_) => 4,
            Self::Str(_) => 5,
            Self::Bytes(_) => 6,
            Self::List(_) => 7,
            Self::Map(_) => 8,
            Self::Pairs(_) => 9,
            Self::Set(_) => 10,
            Self::Ext(_) => 11,
        }
    }
}

fn sorted<E: Ord>(entries: impl IntoIterator<Item = E>) -> Vec<E> {
    let mut entries: Vec<E> = entries.into_iter().collect();
    entries.sort();
    entries
}

impl TimeLimits {
    /// Floats as numbers that compare in the total order of the floats.
    fn key(&self) -> (Option<i64>, Option<i64>) {
        let key = |seconds: f64| {
            let bits = seconds.to_bits() as i64;
            bits ^ (((bits >> 63) as u64) >> 1) as i64
        };
        (self.run.map(key), self.idle.map(key))
    }
}

impl PartialEq for TimeLimits {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for TimeLimits {}

impl PartialOrd for TimeLimits {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for TimeLimits {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for TimeLimits {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
