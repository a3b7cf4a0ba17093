//! Trying again: a model or a tool that is in trouble for a moment.

use superstep::state::State;

use super::{Backoff, Middleware, ModelCall, ModelReply, NextModel, NextTool, ToolRun};
use crate::model::ModelError;
use crate::tool::{Failure, ToolError, ToolOutput};

/// Asks the model again after an error that may pass. A provider that says how long to wait is waited for.
///
/// The pieces of an answer that broke off may have been streamed; the next one has another id.
#[derive(Clone, Debug, Default)]
pub struct ModelRetry {
    backoff: Backoff,
}

impl ModelRetry {
    /// With other waits.
    pub fn new(backoff: Backoff) -> Self {
        Self { backoff }
    }
}

impl<X: State> Middleware<X> for ModelRetry {
    fn name(&self) -> &str {
        "ModelRetryMiddleware"
    }

    async fn wrap_model(
        &self,
        call: ModelCall<X>,
        next: NextModel<X>,
    ) -> Result<ModelReply<X>, ModelError> {
        let mut retry = 0;
        loop {
            let error = match next.run(call.clone()).await {
                Err(error) if error.is_transient() => error,
                ended => return ended,
            };
            let Some(wait) = self.backoff.wait(retry) else { return Err(error) };
            tokio::time::sleep(error.retry_after().unwrap_or(wait)).await;
            retry += 1;
        }
    }
}

/// Runs a tool again after a transient error. The idempotency key of the call stays the same.
///
/// Texts and errors of other crates are permanent unless you say otherwise, with
/// [`NodeError::transient`](superstep::NodeError::transient).
#[derive(Clone, Debug, Default)]
pub struct ToolRetry {
    backoff: Backoff,
    only: Vec<String>,
}

impl ToolRetry {
    /// With other waits.
    pub fn new(backoff: Backoff) -> Self {
        Self { backoff, only: Vec::new() }
    }

    /// Only these tools.
    #[must_use]
    pub fn only<T: Into<String>>(self, tools: impl IntoIterator<Item = T>) -> Self {
        Self { only: tools.into_iter().map(Into::into).collect(), ..self }
    }
}

impl<X: State> Middleware<X> for ToolRetry {
    fn name(&self) -> &str {
        "ToolRetryMiddleware"
    }

    async fn wrap_tool(&self, call: ToolRun, next: NextTool) -> Result<ToolOutput, ToolError> {
        let mut retry = 0;
        loop {
            let ended = next.run(call.clone()).await;
            let concerned = self.only.is_empty() || self.only.contains(&call.tool.name);
            let transient = |error: &ToolError| match error.failure() {
                Failure::Failed(error) => error.is_transient(),
                Failure::Arguments(_) | Failure::Told(_) => false,
            };
            if !concerned || !ended.as_ref().is_err_and(transient) {
                return ended;
            }
            let Some(wait) = self.backoff.wait(retry) else { return ended };
            tokio::time::sleep(wait).await;
            retry += 1;
        }
    }
}
