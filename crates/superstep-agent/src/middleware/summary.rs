//! Shortening a long conversation.

use std::fmt;
use std::sync::Arc;

use superstep::state::{Message, Role, State};
use superstep::{NodeError, Task};

use super::{Hook, Middleware, tokens};
use crate::model::{ChatModel, ModelRequest, collect};
use crate::state::{AgentState, AgentUpdate};

/// Replaces the older part of a long conversation by a summary that a model writes.
///
/// The newest messages stay. The cut never falls between a message that asks for tools and their results. If the summary fails or is
/// empty, the conversation stays as it is. What the summarizing model says is not streamed.
#[derive(Clone)]
pub struct Summarization {
    model: Arc<dyn ChatModel>,
    trigger: Trigger,
    keep: usize,
}

#[derive(Clone, Copy)]
enum Trigger {
    Tokens(u64),
    Messages(usize),
}

const PROMPT: &str = "Summarize the conversation below for an assistant that will continue it without seeing it. Keep goals, decisions, \
results of tools, names, numbers and open questions. Write the summary and nothing else.";

impl Summarization {
    /// Summarizes when the conversation has about this many tokens. The last 20 messages stay.
    pub fn at_tokens(model: impl ChatModel, tokens: u64) -> Self {
        Self { model: Arc::new(model), trigger: Trigger::Tokens(tokens), keep: 20 }
    }

    /// Summarizes when the conversation has this many messages. The last 20 stay.
    pub fn at_messages(model: impl ChatModel, messages: usize) -> Self {
        Self { model: Arc::new(model), trigger: Trigger::Messages(messages), keep: 20 }
    }

    /// Keeps this many messages.
    #[must_use]
    pub fn keep(self, messages: usize) -> Self {
        Self { keep: messages, ..self }
    }

    fn is_due(&self, messages: &[Message]) -> bool {
        match self.trigger {
            Trigger::Tokens(limit) => tokens::estimate(messages) >= limit,
            Trigger::Messages(limit) => messages.len() >= limit,
        }
    }

    async fn summary(&self, older: &[Message], id: &str) -> Option<String> {
        let lines = older.iter().map(tokens::line).collect::<Vec<_>>().join("\n");
        let request = ModelRequest {
            system: Some(Message::system(PROMPT)),
            messages: vec![Message::human(lines)].into(),
            ..ModelRequest::default()
        };
        match collect(self.model.stream(request), id, |_| {}).await {
            Ok(message) => Some(message.text().trim().to_owned()).filter(|text| !text.is_empty()),
            Err(error) => {
                tracing::warn!(%error, "the conversation could not be summarized");
                None
            }
        }
    }
}

/// Where to cut so that at least `keep` messages stay, and results with their calls.
fn cut(messages: &[Message], keep: usize) -> usize {
    let mut at = messages.len().saturating_sub(keep);
    while messages.get(at).is_some_and(|message| message.role == Role::Tool) {
        at = at.saturating_sub(1);
    }
    at
}

impl<X: State> Middleware<X> for Summarization {
    const HOOKS: &'static [Hook] = &[Hook::BeforeModel];

    fn name(&self) -> &str {
        "SummarizationMiddleware"
    }

    async fn before_model(
        &self,
        state: Arc<AgentState<X>>,
        task: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        let messages = &state.messages;
        let at = cut(messages, self.keep);
        if at == 0 || !self.is_due(messages) {
            return Ok(AgentUpdate::default());
        }
        let id = format!("summary-{}", task.id());
        let Some(summary) = self.summary(&messages[..at], &id).await else {
            return Ok(AgentUpdate::default());
        };
        let text = format!("Here is a summary of the conversation to date:\n\n{summary}");
        let mut whole = vec![Message::remove_all(), Message::human(text).with_id(id)];
        whole.extend_from_slice(&messages[at..]);
        Ok(AgentUpdate::default().messages(whole))
    }
}

impl fmt::Debug for Summarization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summarization").field("keep", &self.keep).finish_non_exhaustive()
    }
}
