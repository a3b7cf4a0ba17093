//! Which names channels and nodes can have, and which known name a misspelt one is near to.
//!
//! The macros and the checks of a graph ask here, so that what compiles is not refused at run time for its name. Not for
//! use by others; there are no promises about versions.

use std::fmt;

/// Names that mean something else in a stored checkpoint or in the drawing of a graph.
pub const RESERVED: &[&str] = &[
    "__start__",
    "__end__",
    "__input__",
    "__interrupt__",
    "__resume__",
    "__error__",
    "__error_source_node__",
    "__no_writes__",
    "__snapshot_bumps__",
    "__return__",
    "__previous__",
    "__pregel_send",
    "__pregel_read",
    "__pregel_checkpointer",
    "__pregel_stream",
    "__pregel_resuming",
    "__pregel_replay_state",
    "__pregel_task_id",
    "__pregel_timed_attempt_observer",
    "__pregel_resume_map",
    "__pregel_strict_resume",
    "__pregel_stream_messages_v2",
    "__pregel_push",
    "__pregel_pull",
    "__pregel_tasks",
    "checkpoint_map",
    "checkpoint_id",
    "checkpoint_ns",
    "configurable",
    "langsmith:hidden",
];

/// Why something cannot have a name. Continues a sentence whose subject is the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is empty.
    Empty,
    /// It is in [`RESERVED`].
    Reserved,
    /// It contains a character that separates names in what is stored: `:` or `|`.
    Separator,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "is empty",
            Self::Reserved => "is reserved",
            Self::Separator => "contains `:` or `|`, which are reserved",
        })
    }
}

/// Why a channel or a node cannot have this name; nothing if it can.
pub fn refusal(name: &str) -> Option<Refusal> {
    if name.is_empty() {
        Some(Refusal::Empty)
    } else if RESERVED.contains(&name) {
        Some(Refusal::Reserved)
    } else if name.contains([':', '|']) {
        Some(Refusal::Separator)
    } else {
        None
    }
}

/// The known name that is nearest to this one, if one is near.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let ranked = known.into_iter().map(|other| (distance(name, other), other));
    let (distance, other) = ranked.min_by_key(|(distance, _)| *distance)?;
    (distance <= name.chars().count().max(3) / 2).then_some(other)
}

/// How many letters have to be changed, added or removed to get from one name to the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let change = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_only_if_it_is_near() {
        assert_eq!(nearest("reviw", ["write", "review"]), Some("review"));
        assert_eq!(nearest("xyzzy", ["write", "review"]), None);
        assert_eq!(nearest("a", []), None);
    }

    #[test]
    fn names_that_mean_something_else_are_refused() {
        for name in RESERVED {
            assert_eq!(refusal(name), Some(Refusal::Reserved), "{name}");
        }
        assert_eq!(refusal(""), Some(Refusal::Empty));
        for name in [":", "|", "branch:to:a", "join:a+b:c", "a|b"] {
            assert_eq!(refusal(name), Some(Refusal::Separator), "{name}");
        }
        for name in ["draft", "join", "__mine__", "checkpoint"] {
            assert_eq!(refusal(name), None, "{name}");
        }
    }
}
