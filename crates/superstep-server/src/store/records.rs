//! The rows of the store.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::Wake;
use crate::tenant::{id_of, tenant_of};
use crate::time::Micros;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
        )]
        pub(crate) enum $name {
            $(#[serde(rename = $word)] $variant,)*
        }

        #[allow(dead_code, reason = "not every one of these is listed or parsed")]
        impl $name {
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),*];

            pub(crate) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            pub(crate) fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }
    };
}

words! {
    /// What a thread is doing.
    ThreadStatus { Idle = "idle", Busy = "busy", Interrupted = "interrupted", Error = "error", }
}

words! {
    /// How far a run has come.
    RunStatus {
        Pending = "pending",
        Running = "running",
        Success = "success",
        Error = "error",
        Timeout = "timeout",
        Interrupted = "interrupted",
    }
}

words! {
    /// What becomes of a run when another one is in progress on its thread.
    Multitask { Reject = "reject", Enqueue = "enqueue", Interrupt = "interrupt", Rollback = "rollback", }
}

words! {
    /// How a run is cancelled: what it did stays, or is deleted with the run.
    Cancel { Interrupt = "interrupt", Rollback = "rollback", }
}

words! {
    /// What becomes of the thread of a stateless run.
    OnCompletion { Delete = "delete", Keep = "keep", }
}

words! {
    /// What becomes of a thread that expires: it is deleted, or only its latest state is kept.
    OnExpiry { Delete = "delete", KeepLatest = "keep_latest", }
}

/// How long a thread is kept after it was last used.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Ttl {
    pub(crate) minutes: f64,
    pub(crate) on_expiry: OnExpiry,
    /// When the thread was last used, if it has expired since.
    pub(crate) done_at: Option<Micros>,
}

impl Ttl {
    /// When a thread expires that was last used at this time.
    pub(crate) fn expires_at(self, used: Micros) -> Micros {
        used.plus_seconds(self.minutes * 60.0)
    }
}

impl RunStatus {
    pub(crate) fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Assistant {
    pub(crate) assistant_id: String,
    pub(crate) graph_id: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) config: Json,
    pub(crate) context: Json,
    pub(crate) metadata: Map<String, Json>,
    pub(crate) version: u64,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Thread {
    pub(crate) thread_id: String,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
    pub(crate) state_updated_at: Micros,
    pub(crate) metadata: Map<String, Json>,
    pub(crate) status: ThreadStatus,
    pub(crate) config: Json,
    /// Null until the first run ends.
    pub(crate) values: Json,
    /// Open questions by the task that asked them.
    pub(crate) interrupts: Map<String, Json>,
    /// Null, or how the last run failed.
    pub(crate) error: Json,
    /// When the clock is to wake it, if it is.
    #[serde(default)]
    pub(crate) wake: Option<Wake>,
    /// Clients follow the thread through the thread protocol, so its runs tell the thread's session what happens.
    #[serde(default)]
    pub(crate) session: bool,
    /// The questions that were answered since the thread was last given input.
    #[serde(default)]
    pub(crate) answered: Vec<String>,
    /// Without one it is kept until it is deleted.
    #[serde(default)]
    pub(crate) ttl: Option<Ttl>,
}

impl Thread {
    /// The id, as clients and graphs know it.
    pub(crate) fn id(&self) -> &str {
        id_of(&self.thread_id)
    }

    pub(crate) fn new(thread_id: String, metadata: Map<String, Json>, now: Micros) -> Self {
        Self {
            thread_id,
            created_at: now,
            updated_at: now,
            state_updated_at: now,
            metadata,
            status: ThreadStatus::Idle,
            config: Json::Object(Map::new()),
            values: Json::Null,
            interrupts: Map::new(),
            error: Json::Null,
            wake: None,
            session: false,
            answered: Vec::new(),
            ttl: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) run_id: String,
    pub(crate) thread_id: String,
    pub(crate) assistant_id: String,
    pub(crate) graph_id: String,
    /// When it is due; later than its admission if it was delayed.
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
    pub(crate) status: RunStatus,
    pub(crate) metadata: Map<String, Json>,
    /// What was asked for, as clients see it.
    pub(crate) kwargs: Map<String, Json>,
    pub(crate) multitask: Multitask,
    /// How often it was begun.
    pub(crate) attempt: u32,
    /// It was begun before, by a process that died or drained.
    #[serde(default)]
    pub(crate) begun: bool,
    /// Who drives it, or drove it last.
    #[serde(default)]
    pub(crate) worker: Option<String>,
    /// How often it was claimed. Unlike an attempt, no claim is ever taken back.
    #[serde(default)]
    pub(crate) epoch: u64,
    /// The process that admitted it.
    #[serde(default)]
    pub(crate) admitted_by: Option<String>,
    /// It has readers in other processes than the one that drives it, or may have.
    #[serde(default)]
    pub(crate) followed: bool,
    /// It is to be stopped.
    pub(crate) cancel: Option<Cancel>,
    /// Set for a run without a thread of its own.
    pub(crate) stateless: Option<OnCompletion>,
    /// What `wait` and `join` answer, once it has ended.
    pub(crate) result: Option<Json>,
    /// The session of its thread is told what happens in it.
    #[serde(default)]
    pub(crate) session: bool,
    #[serde(default)]
    pub(crate) origin: Origin,
}

/// Where a run comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// Who asked for it, if the server asks who somebody is.
    pub(crate) by: Option<String>,
    /// The idempotency key of the request. Whoever repeats it is told how the run ended, also when the run is gone by then.
    pub(crate) once: Option<String>,
}

impl Run {
    /// The id of its thread, as clients and graphs know it.
    pub(crate) fn thread(&self) -> &str {
        id_of(&self.thread_id)
    }

    pub(crate) fn tenant(&self) -> &str {
        tenant_of(&self.thread_id)
    }

    /// Takes over the metadata of its thread; what the run says itself wins.
    pub(crate) fn adopt(&mut self, thread: &Thread) {
        let own = std::mem::replace(&mut self.metadata, thread.metadata.clone());
        self.metadata.extend(own);
        self.session |= thread.session;
        if let Some(config) = self.kwargs.get_mut("config").and_then(Json::as_object_mut) {
            config.insert("metadata".to_owned(), Json::Object(self.metadata.clone()));
        }
    }

    /// What was asked for under this name.
    pub(crate) fn asked(&self, name: &str) -> &Json {
        self.kwargs.get(name).unwrap_or(&Json::Null)
    }

    /// Whether its events are kept for those who come back.
    pub(crate) fn resumable(&self) -> bool {
        self.asked("resumable") == &Json::Bool(true)
    }
}

/// A run that a worker has taken.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    pub(crate) run: Run,
    /// It was begun before, so its input may have been taken already.
    pub(crate) again: bool,
    /// Whether another run may be ready for another worker.
    pub(crate) more: bool,
}

/// How an attempt of a run ended.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    /// The run is over.
    Over {
        status: RunStatus,
        result: Json,
        /// What the thread is from now on, if no other run follows.
        thread: Box<ThreadEnd>,
    },
    /// The run and its thread are deleted: it was rolled back, or stateless.
    Deleted {
        /// How it ended; nothing if it is as if it had never run.
        status: Option<RunStatus>,
        result: Json,
        thread_too: bool,
        thread: Option<Box<ThreadEnd>>,
    },
    /// The process ends; another one continues the run.
    PutBack,
}

/// A thread after a run.
#[derive(Clone, Debug)]
pub(crate) struct ThreadEnd {
    pub(crate) status: ThreadStatus,
    /// None leaves them as they are.
    pub(crate) values: Option<Json>,
    pub(crate) interrupts: Map<String, Json>,
    pub(crate) error: Json,
    /// When a question of it is due.
    pub(crate) due: Option<Micros>,
}
