//! What is still to be told of runs that ended.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Answer, Run};
use crate::time::Micros;

/// The news of the end of a run, for the address that its request named.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Webhook {
    /// The run as it ended.
    pub(crate) run: Run,
    pub(crate) url: String,
    pub(crate) started_at: Micros,
    pub(crate) ended_at: Micros,
    /// The state when the run ended.
    pub(crate) values: Json,
    /// How often it was sent in vain.
    pub(crate) failures: u32,
    /// Why it failed last.
    pub(crate) error: Option<String>,
}

impl Webhook {
    /// `None` if the request named no webhook.
    pub(super) fn of(run: &Run, started_at: Micros, ended_at: Micros) -> Option<Self> {
        let url = run.asked("webhook").as_str()?.to_owned();
        let mut values = run.result.clone().unwrap_or_default();
        if let Some(values) = values.as_object_mut() {
            values.remove("__interrupt__");
            values.remove("__error__");
        }
        let run = run.clone();
        Some(Self { run, url, started_at, ended_at, values, failures: 0, error: None })
    }
}

/// How many webhooks there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WebhookCounts {
    pub(crate) waiting: u64,
    /// Those that are not sent any more.
    pub(crate) given_up: u64,
}

/// The table of webhooks: those that wait, and those that were given up. The end of a run puts them there, in its transaction.
pub(crate) trait Webhooks: Send + Sync + 'static {
    /// Takes webhooks that are due, oldest first. They are due again at `until`, should nothing be heard of them by then. If
    /// there are none, says when the next one is due.
    fn take_webhooks(
        &self,
        now: Micros,
        until: Micros,
        limit: usize,
    ) -> Answer<'_, (Vec<Webhook>, Option<Micros>)>;
    /// Forgets a webhook that was received.
    fn webhook_received(&self, run: &str) -> Answer<'_, ()>;
    /// Keeps a webhook that failed for this time, or as given up.
    fn webhook_failed(&self, webhook: Webhook, again: Option<Micros>) -> Answer<'_, ()>;
    fn count_webhooks(&self) -> Answer<'_, WebhookCounts>;
    /// Forgets webhooks that were given up and whose run ended before this time.
    fn forget_webhooks(&self, before: Micros) -> Answer<'_, usize>;
}
