//! Joins as they are stored: the name of the channel, and its value.

use crate::value::Set;
use crate::{Error, Value};

/// The parts of a join channel's name.
///
/// `join:a+b:c` is LangGraph's channel: `c` runs when `a` and `b` have. `join:2:a+b+d:c` is one that LangGraph does not have: `c`
/// runs when two of the three have. LangGraph ignores channels that its graph does not declare.
///
/// ```
/// use superstep_checkpoint::wire::JoinName;
///
/// let name = JoinName::parse("join:2:a+b+d:c").expect("a join");
/// assert_eq!((name.needed, name.sources, name.target), (Some(2), "a+b+d", "c"));
/// assert_eq!(name.to_string(), "join:2:a+b+d:c");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JoinName<'a> {
    /// How many sources have to finish; `None` for all.
    pub needed: Option<usize>,
    /// The names of the sources, joined by `+`.
    pub sources: &'a str,
    /// The node that runs then.
    pub target: &'a str,
}

impl<'a> JoinName<'a> {
    /// The parts of the name; `None` if it is not that of a join.
    pub fn parse(channel: &'a str) -> Option<Self> {
        // Names of nodes have no colon.
        let (sources, target) = channel.strip_prefix("join:")?.rsplit_once(':')?;
        Some(match sources.split_once(':') {
            None => Self { needed: None, sources, target },
            Some((needed, sources)) => Self { needed: Some(needed.parse().ok()?), sources, target },
        })
    }

    /// Whether a join with this name that holds `value` triggers its target.
    pub fn is_complete(&self, value: &JoinValue) -> bool {
        let enough = match self.needed {
            None => {
                let mut sources = self.sources.split('+').map(Value::from);
                sources.all(|source| value.arrived.contains(&source))
            }
            Some(needed) => value.arrived.len() >= needed,
        };
        enough && value.finished != Some(false) && value.fired != Some(true)
    }
}

impl std::fmt::Display for JoinName<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("join:")?;
        if let Some(needed) = self.needed {
            write!(f, "{needed}:")?;
        }
        write!(f, "{}:{}", self.sources, self.target)
    }
}

/// The content of a join channel.
///
/// LangGraph's form is the set of the names of the sources that have finished, or that set and whether nothing else is left to
/// run, if the target is deferred. A join that does not need all of its sources adds whether it has fired.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinValue {
    /// The names of the sources that have finished.
    pub arrived: Set,
    /// For a deferred target: whether nothing else is left to run.
    pub finished: Option<bool>,
    /// For a join that does not need all of its sources: whether the target has run.
    pub fired: Option<bool>,
}

impl JoinValue {
    /// Whether the join holds nothing that another graph would miss.
    pub fn is_empty(&self) -> bool {
        self.arrived.is_empty() || self.fired == Some(true)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// It is none.
    pub fn from_value(value: Value) -> Result<Self, Error> {
        let unfit = |value: &Value| {
            Error::codec(format_args!("a join holds a set of names, found {}", value.kind()))
        };
        let flag = |value: &Value| {
            let is_no_flag = || {
                Error::codec(format_args!("a flag of a join is a boolean, found {}", value.kind()))
            };
            value.as_bool().ok_or_else(is_no_flag)
        };
        match value {
            Value::Set(arrived) => Ok(Self { arrived, ..Self::default() }),
            Value::List(mut parts) if matches!(parts.len(), 2 | 3) => {
                let fired = parts.get(2).map(flag).transpose()?;
                let finished = parts.get(1).map(flag).transpose()?;
                match parts.swap_remove(0) {
                    Value::Set(arrived) => Ok(Self { arrived, finished, fired }),
                    other => Err(unfit(&other)),
                }
            }
            other => Err(unfit(&other)),
        }
    }

    /// The stored form.
    pub fn into_value(self) -> Value {
        let arrived = Value::Set(self.arrived);
        match (self.finished, self.fired) {
            (None, None) => arrived,
            (Some(finished), None) => Value::List(vec![arrived, finished.into()]),
            (finished, Some(fired)) => {
                Value::List(vec![arrived, finished.unwrap_or(true).into(), fired.into()])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Set {
        names.iter().map(|name| Value::from(*name)).collect()
    }

    #[test]
    fn a_name_is_taken_apart_and_put_together() {
        for text in ["join:a+b:c", "join:2:a+b+d:c", "join:1:a:c"] {
            assert_eq!(JoinName::parse(text).expect("a join").to_string(), text);
        }
        for text in ["branch:to:c", "join:a", "join:x:a+b:c", "join:-1:a:c"] {
            assert_eq!(JoinName::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_value_comes_back_and_tells_whether_it_triggers() {
        let all = JoinName::parse("join:a+b:c").expect("a join");
        let two = JoinName::parse("join:2:a+b+d:c").expect("a join");
        let value = |arrived: &[&str], finished, fired| {
            let value = JoinValue { arrived: names(arrived), finished, fired };
            let read = JoinValue::from_value(value.clone().into_value()).expect("a join");
            assert_eq!(read.into_value(), value.clone().into_value());
            value
        };
        assert!(all.is_complete(&value(&["b", "a"], None, None)));
        assert!(!all.is_complete(&value(&["a"], None, None)));
        assert!(!all.is_complete(&value(&["a", "b"], Some(false), None)));
        assert!(two.is_complete(&value(&["a", "d"], None, Some(false))));
        assert!(!two.is_complete(&value(&["a", "d"], None, Some(true))));
        assert!(!two.is_complete(&value(&["d"], None, Some(false))));
    }

    #[test]
    fn other_values_are_errors() {
        let list = |items: Vec<Value>| Value::List(items);
        let set = || Value::Set(names(&["a"]));
        let others = [
            Value::Null,
            1.into(),
            list(vec![]),
            list(vec![set(), 1.into()]),
            list(vec![1.into(), true.into()]),
        ];
        for other in others {
            let error = JoinValue::from_value(other).expect_err("no join");
            assert!(matches!(error, Error::Codec(_)), "{error:?}");
        }
    }
}
