/// Types outside serde's data model.
///
/// A value of such a type serializes itself as a newtype struct with the name of its mark. Serializers of others
/// look through a newtype struct and write the readable form inside; ours know the name, ask for the stored form
/// (by saying that what they write is not for people) and keep the type. That way a marked value survives inside
/// any struct of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Object,
    Set,
    Send,
    Timeout,
    Interrupt,
    Overwrite,
    Snapshot,
    Foreign,
}

/// The name under which our deserializer hands over a value as it is.
pub(crate) const VALUE: &str = "\0superstep::value";

/// The name under which our deserializer tells the class of an object.
pub(crate) const OBJECT: &str = "\0superstep::object";

const ALL: [Mark; 8] = [
    Mark::Object,
    Mark::Set,
    Mark::Send,
    Mark::Timeout,
    Mark::Interrupt,
    Mark::Overwrite,
    Mark::Snapshot,
    Mark::Foreign,
];

/// The module of the engine's classes in LangGraph.
const TYPES: &str = "langgraph.types";
/// The former modules of some of them; read, never written.
const TYPES_BEFORE: &str = "langgraph.constants";

impl Mark {
    /// The name of the newtype struct; no name that can be written in source code begins with a NUL.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Object => OBJECT,
            Self::Set => "\0superstep::set",
            Self::Send => "\0superstep::send",
            Self::Timeout => "\0superstep::timeout",
            Self::Interrupt => "\0superstep::interrupt",
            Self::Overwrite => "\0superstep::overwrite",
            Self::Snapshot => "\0superstep::snapshot",
            Self::Foreign => "\0superstep::foreign",
        }
    }

    /// The mark with this name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        if !name.starts_with('\0') {
            return None;
        }
        ALL.into_iter().find(|mark| mark.name() == name)
    }

    /// Extension code, module and name under which the type is stored, if it is stored by name.
    pub(crate) const fn class(self) -> Option<(i8, &'static str, &'static str)> {
        match self {
            Self::Set => Some((0, "builtins", "set")),
            Self::Send => Some((1, TYPES, "Send")),
            Self::Timeout => Some((2, TYPES, "TimeoutPolicy")),
            Self::Interrupt => Some((2, TYPES, "Interrupt")),
            Self::Overwrite => Some((2, TYPES, "Overwrite")),
            Self::Object | Self::Snapshot | Self::Foreign => None,
        }
    }

    /// The type stored as this class, if it is one that comes back as a value of its own.
    pub(crate) fn of_class(code: i8, module: &str, name: &str) -> Option<Self> {
        let module = if module == TYPES_BEFORE { TYPES } else { module };
        [Self::Set, Self::Send, Self::Interrupt, Self::Overwrite]
            .into_iter()
            .find(|mark| mark.class() == Some((code, module, name)))
    }

    /// Whether the stored form differs from the one people read.
    pub(crate) const fn has_stored_form(self) -> bool {
        matches!(
            self,
            Self::Object | Self::Send | Self::Interrupt | Self::Overwrite | Self::Foreign
        )
    }
}
