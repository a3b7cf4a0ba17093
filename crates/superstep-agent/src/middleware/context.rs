//! Leaving out what is no longer needed.

use superstep::state::{Role, State};

use super::{Middleware, ModelCall, ModelReply, NextModel, tokens};
use crate::model::ModelError;

/// Leaves old results of tools out of long requests. The conversation itself keeps them.
#[derive(Clone, Debug)]
pub struct ClearToolUses {
    trigger: u64,
    keep: usize,
    except: Vec<String>,
}

impl Default for ClearToolUses {
    /// From about 100,000 tokens on, all but the last three results.
    fn default() -> Self {
        Self { trigger: 100_000, keep: 3, except: Vec::new() }
    }
}

impl ClearToolUses {
    /// From about this many tokens on.
    #[must_use]
    pub fn from_tokens(self, trigger: u64) -> Self {
        Self { trigger, ..self }
    }

    /// Keeps this many of the last results.
    #[must_use]
    pub fn keep(self, results: usize) -> Self {
        Self { keep: results, ..self }
    }

    /// Keeps all results of these tools.
    #[must_use]
    pub fn except<T: Into<String>>(self, tools: impl IntoIterator<Item = T>) -> Self {
        Self { except: tools.into_iter().map(Into::into).collect(), ..self }
    }
}

impl<X: State> Middleware<X> for ClearToolUses {
    fn name(&self) -> &str {
        "ContextEditingMiddleware"
    }

    async fn wrap_model(
        &self,
        mut call: ModelCall<X>,
        next: NextModel<X>,
    ) -> Result<ModelReply<X>, ModelError> {
        if tokens::estimate(&call.request.messages) >= self.trigger {
            let results = call.request.messages.to_mut().iter_mut().rev();
            for result in results.filter(|it| it.role == Role::Tool).skip(self.keep) {
                let name = result.name.as_deref().unwrap_or_default();
                if !self.except.iter().any(|kept| kept == name) {
                    result.content = "[cleared]".into();
                    result.artifact = superstep::checkpoint::Value::Null;
                }
            }
        }
        next.run(call).await
    }
}
