use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::{Item, Namespace, check_labels};
use crate::{Error, Value};

/// Which items to find.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Only items of this namespace and those below it. Empty: of all.
    pub prefix: Namespace,
    /// Only items whose value is a map that has these values. Numbers are equal if they are the same number; null is also
    /// the value of a missing key.
    pub filter: BTreeMap<String, Value>,
    /// Only items whose value is a map that satisfies these comparisons.
    pub conditions: Vec<Condition>,
    /// Semantic search: only indexed items, the nearest first. Needs a store with a
    /// [`VectorIndex`](crate::VectorIndex).
    pub query: Option<String>,
    /// At most this many; ten unless said otherwise.
    pub limit: usize,
    /// Skips this many of the first.
    pub offset: usize,
    /// Whether to restart the time to live of the items that are found. `None`: the store's
    /// default.
    pub refresh: Option<bool>,
}

/// A comparison with a value in an item.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// The key in the value of the item.
    pub key: String,
    /// The comparison.
    pub comparison: Comparison,
    /// With what.
    pub value: Value,
}

/// A comparison of two values.
///
/// Only numbers are less or greater than numbers, and texts than texts, which go by their code points; between other
/// values, and where the key is missing, neither holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Not the same value. Holds if the key is missing, unless it is compared with null.
    NotEqual,
    /// Less.
    Less,
    /// Less or equal.
    AtMost,
    /// Greater.
    Greater,
    /// Greater or equal.
    AtLeast,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            prefix: Namespace::new(),
            filter: BTreeMap::new(),
            conditions: Vec::new(),
            query: None,
            limit: 10,
            offset: 0,
            refresh: None,
        }
    }
}

impl Search {
    /// Finds items at or below this namespace.
    pub fn below<L: Into<String>>(prefix: impl IntoIterator<Item = L>) -> Self {
        Self { prefix: prefix.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Only items whose value has this under `key`.
    pub fn filter(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.filter.insert(key.into(), value.into());
        self
    }

    /// Only items for which what is under `key` compares so with `value`.
    pub fn compare(
        mut self,
        key: impl Into<String>,
        comparison: Comparison,
        value: impl Into<Value>,
    ) -> Self {
        self.conditions.push(Condition { key: key.into(), comparison, value: value.into() });
        self
    }

    /// Semantic search: the nearest items first.
    pub fn query(mut self, query: impl Into<String>) -> Self {
        self.query = Some(query.into());
        self
    }

    /// At most this many.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Skips this many of the first.
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Whether to restart the time to live of the items that are found.
    pub fn refresh(mut self, refresh: bool) -> Self {
        self.refresh = Some(refresh);
        self
    }

    /// Checks that the query is valid.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a label of the prefix is empty or contains a dot or NUL.
    pub fn check(&self) -> Result<(), Error> {
        check_labels(&self.prefix)
    }

    /// Whether an item is looked for, leaving limit and offset aside.
    pub fn matches(&self, item: &Item) -> bool {
        let at = |key: &str| item.value.get(key).unwrap_or(&Value::Null);
        item.namespace.starts_with(&self.prefix)
            && self.filter.iter().all(|(key, wanted)| equal(at(key), wanted))
            && self.conditions.iter().all(|condition| condition.holds(at(&condition.key)))
    }
}

impl Condition {
    fn holds(&self, found: &Value) -> bool {
        let order = order(found, &self.value);
        match self.comparison {
            Comparison::NotEqual => !equal(found, &self.value),
            Comparison::Less => order.is_some_and(Ordering::is_lt),
            Comparison::AtMost => order.is_some_and(Ordering::is_le),
            Comparison::Greater => order.is_some_and(Ordering::is_gt),
            Comparison::AtLeast => order.is_some_and(Ordering::is_ge),
        }
    }
}

fn equal(a: &Value, b: &Value) -> bool {
    a == b || numbers(a, b).is_some_and(Ordering::is_eq)
}

fn order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => Some(a.cmp(b)),
        _ => numbers(a, b),
    }
}

/// Whole numbers are compared as such, since great ones are not all floats.
fn numbers(a: &Value, b: &Value) -> Option<Ordering> {
    let whole = |value: &Value| match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::UInt(number) => Some(i128::from(*number)),
        _ => None,
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Which namespaces to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamespaceQuery {
    /// Only namespaces that begin with these labels; `*` stands for any one label.
    pub prefix: Namespace,
    /// Only namespaces that end with these labels; `*` stands for any one label.
    pub suffix: Namespace,
    /// Cut to this many labels, each once.
    pub max_depth: Option<usize>,
    /// At most this many.
    pub limit: Option<usize>,
    /// Skips this many of the first.
    pub offset: usize,
}

impl NamespaceQuery {
    /// All namespaces that begin with these labels.
    pub fn below<L: Into<String>>(prefix: impl IntoIterator<Item = L>) -> Self {
        Self { prefix: prefix.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Only those that end with these labels.
    pub fn ending<L: Into<String>>(mut self, suffix: impl IntoIterator<Item = L>) -> Self {
        self.suffix = suffix.into_iter().map(Into::into).collect();
        self
    }

    /// Cut to this many labels.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.max_depth = Some(depth);
        self
    }

    /// At most this many, after the first `offset`.
    pub fn page(mut self, offset: usize, limit: usize) -> Self {
        (self.offset, self.limit) = (offset, Some(limit));
        self
    }

    /// Checks that the query is valid.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a label is empty or contains a dot or NUL.
    pub fn check(&self) -> Result<(), Error> {
        check_labels(&self.prefix)?;
        check_labels(&self.suffix)
    }

    /// Whether a namespace is looked for, leaving depth, limit and offset aside.
    pub fn matches(&self, namespace: &[String]) -> bool {
        let agree = |labels: &[String], pattern: &[String]| {
            labels.iter().zip(pattern).all(|(label, wanted)| wanted == "*" || label == wanted)
        };
        let (prefix, suffix) = (&self.prefix, &self.suffix);
        namespace.len() >= prefix.len().max(suffix.len())
            && agree(namespace, prefix)
            && agree(&namespace[namespace.len() - suffix.len()..], suffix)
    }

    /// The page of the matching namespaces: cut, without duplicates, sorted by their labels.
    pub fn select(&self, matching: impl IntoIterator<Item = Namespace>) -> Vec<Namespace> {
        let depth = self.max_depth.unwrap_or(usize::MAX);
        let cut: std::collections::BTreeSet<Namespace> = matching
            .into_iter()
            .map(|mut namespace| {
                namespace.truncate(depth);
                namespace
            })
            .collect();
        cut.into_iter().skip(self.offset).take(self.limit.unwrap_or(usize::MAX)).collect()
    }
}
