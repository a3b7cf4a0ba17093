//! What requests with an idempotency key have made.

use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use super::{Admission, Admitted, Answer, Assistant, Cron, StoreError, Thread};
use crate::time::Micros;

/// How long the answer to a request with an idempotency key is kept.
pub(crate) const IDEMPOTENCY_KEPT: std::time::Duration = std::time::Duration::from_secs(86_400);

/// The idempotency key of a request.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The key, after who sent it: what others send under the same key is something else.
    pub(crate) key: String,
    /// The same for two requests only if they ask for the same.
    pub(crate) fingerprint: String,
}

/// What was made for a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) fingerprint: String,
    pub(crate) at: Micros,
    /// The rows that were stored, as they were then: a thread, an assistant, a cron, or a list of runs.
    pub(crate) made: Json,
    /// How the run ended, if the run itself is not kept any more.
    pub(crate) result: Option<Json>,
}

impl Kept {
    /// A row that was made.
    pub(crate) fn row<T: DeserializeOwned>(self) -> Result<T, StoreError> {
        serde_json::from_value(self.made)
            .map_err(|error| StoreError::Failed(format!("a kept answer cannot be read: {error}")))
    }
}

/// What is to be made.
#[derive(Clone, Debug)]
pub(crate) enum Create {
    Thread(Thread),
    Assistant(Assistant),
    Cron(Cron),
    /// All of them or none.
    Runs(Vec<Admission>),
}

/// What came of a [`Create`].
#[derive(Clone, Debug)]
pub(crate) enum Made {
    /// As [`super::Store::create_thread`] answers.
    Thread(Result<Thread, Box<Thread>>),
    /// As [`super::Store::create_assistant`] answers.
    Assistant(Result<Assistant, Box<Assistant>>),
    Cron(Cron),
    /// As [`super::Store::admit`] answers, for each. One that is not stored is the only one.
    Runs(Vec<Admitted>),
}

impl Made {
    /// The store has made something else than it was told to.
    pub(crate) fn unexpected() -> StoreError {
        StoreError::Failed("what was made is not what was asked for".to_owned())
    }
}

/// What came of a request with an idempotency key.
#[derive(Clone, Debug)]
pub(crate) enum Once {
    /// It was carried out now, or refused. A refusal is not kept: the same request may succeed later.
    Made(Box<Made>),
    /// It was carried out before. Nothing was changed.
    Known(Kept),
    /// Something else was asked for under the key. Nothing was changed.
    Other,
}

/// The table of idempotency keys.
pub(crate) trait Idempotency: Send + Sync + 'static {
    /// Makes something, once for each key: what is made and what is kept of it are stored in one transaction, which keeps
    /// other requests with the same key waiting. A key that is older than [`IDEMPOTENCY_KEPT`] counts as new. The rule is
    /// `rules::known`. Without a key it is simply made.
    fn create(&self, asked: Option<Asked>, what: Create, now: Micros) -> Answer<'_, Once>;
    /// What is kept for a key.
    fn kept(&self, key: &str) -> Answer<'_, Option<Kept>>;
}
