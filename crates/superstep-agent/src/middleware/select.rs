//! Showing the model only the tools it may need.

use std::fmt;
use std::sync::Arc;

use superstep::state::{Message, Role, State};

use super::{Middleware, ModelCall, ModelReply, NextModel, tokens};
use crate::model::{AnswerSchema, ChatModel, ModelError, ModelRequest, collect};
use crate::tool::ToolSpec;

/// Lets a smaller model choose which tools the model sees.
///
/// If it fails, or chooses none that exists, the model sees all.
#[derive(Clone)]
pub struct ToolSelection {
    model: Arc<dyn ChatModel>,
    tools_max: usize,
    always: Vec<String>,
}

impl ToolSelection {
    /// At most this many tools, chosen by this model.
    pub fn by(model: impl ChatModel, tools_max: usize) -> Self {
        Self { model: Arc::new(model), tools_max, always: Vec::new() }
    }

    /// Always shows these tools, which are not counted.
    #[must_use]
    pub fn always<T: Into<String>>(self, tools: impl IntoIterator<Item = T>) -> Self {
        Self { always: tools.into_iter().map(Into::into).collect(), ..self }
    }

    async fn choose(&self, request: &ModelRequest) -> Option<Vec<String>> {
        let asked = request.messages.iter().rfind(|message| message.role == Role::Human)?;
        let tools: Vec<_> = request
            .tools
            .iter()
            .map(|tool| format!("- {}: {}", tool.name, tool.description))
            .collect();
        let prompt = format!(
            "Which of these tools does the request need? Answer with a JSON array of at most {} names, the most useful first.\n{}",
            self.tools_max,
            tools.join("\n")
        );
        let names = serde_json::json!({ "type": "array", "items": { "type": "string" } });
        let question = ModelRequest {
            system: Some(Message::system(prompt)),
            messages: vec![Message::human(tokens::line(asked))].into(),
            answer: Some(Arc::new(AnswerSchema { name: "Names".to_owned(), schema: names })),
            ..ModelRequest::default()
        };
        let answer = collect(self.model.stream(question), "selection", |_| {}).await;
        let answer = answer.inspect_err(|error| tracing::warn!(%error, "no tools were chosen"));
        serde_json::from_str(&answer.ok()?.text()).ok()
    }
}

impl<X: State> Middleware<X> for ToolSelection {
    fn name(&self) -> &str {
        "LLMToolSelectorMiddleware"
    }

    async fn wrap_model(
        &self,
        mut call: ModelCall<X>,
        next: NextModel<X>,
    ) -> Result<ModelReply<X>, ModelError> {
        let tools = &call.request.tools;
        let always = |tool: &Arc<ToolSpec>| self.always.contains(&tool.name);
        if tools.iter().filter(|tool| !always(tool)).count() > self.tools_max
            && let Some(chosen) = self.choose(&call.request).await
        {
            let known = chosen.iter().filter(|name| tools.iter().any(|tool| tool.name == **name));
            let known: Vec<_> = known.take(self.tools_max).collect();
            if !known.is_empty() {
                call.request.tools.retain(|tool| always(tool) || known.contains(&&tool.name));
            }
        }
        next.run(call).await
    }
}

impl fmt::Debug for ToolSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSelection").field("tools_max", &self.tools_max).finish_non_exhaustive()
    }
}
