//! What the driver says to a worker and what it answers: one line of JSON each.

use serde::{Deserialize, Serialize};

/// Asks a worker to measure something.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// The name of a workload without its size.
    pub(crate) workload: String,
    pub(crate) size: usize,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) durability: Durability,
    /// How often it is run.
    pub(crate) rounds: usize,
    /// Asks for what the machine needs at least instead: the same rows written with nothing around them.
    #[serde(default)]
    pub(crate) floor: bool,
}

/// Where threads are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Checkpointer {
    None,
    Memory,
    Sqlite,
    Postgres,
}

impl Checkpointer {
    pub(crate) fn is_database(self) -> bool {
        matches!(self, Self::Sqlite | Self::Postgres)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// When it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    Sync,
    Async,
    Exit,
}

impl Durability {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Async => "async",
            Self::Exit => "exit",
        }
    }
}

impl From<Durability> for superstep::Durability {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Sync => Self::Sync,
            Durability::Async => Self::Async,
            Durability::Exit => Self::Exit,
        }
    }
}

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Measured(Measured),
    Failed { error: String },
}

/// The time each round took, and how many units a round has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) nanos: Vec<u64>,
    pub(crate) units: u64,
    /// What else came to light, each by its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) also: Vec<(String, f64)>,
}
