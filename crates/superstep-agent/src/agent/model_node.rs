//! The node that asks the model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use superstep::checkpoint::Map;
use superstep::state::{Message, State};
use superstep::{NodeError, Task};

use super::{Agent, AnswerRule, Prompt, repair};
use crate::middleware::{AnyMiddleware, ModelCall, ModelReply, NextModel};
use crate::model::{ChatModel, Conversation, ModelError, ModelRequest, collect};
use crate::state::{AgentState, AgentUpdate};
use crate::tool::{AnyTool, ToolSpec};

pub(super) struct ModelNode<X: State> {
    model: Arc<dyn ChatModel>,
    name: Option<Arc<str>>,
    prompt: Option<Prompt<X>>,
    tools: Vec<Arc<ToolSpec>>,
    answer: Option<AnswerRule>,
    settings: Map,
    next: NextModel<X>,
}

impl<X: State> ModelNode<X> {
    pub(super) fn new(
        agent: &Agent<X>,
        tools: &[AnyTool],
        layers: &[Arc<dyn AnyMiddleware<X>>],
    ) -> Self {
        let innermost = NextModel(Arc::new(|call| Box::pin(ask(call))));
        let next = layers.iter().rev().fold(innermost, |inner, layer| {
            let layer = layer.clone();
            NextModel(Arc::new(move |call| layer.clone().wrap_model(call, inner.clone())))
        });
        Self {
            model: agent.model.clone(),
            name: agent.name.clone(),
            prompt: agent.prompt.clone(),
            tools: tools.iter().map(|tool| tool.spec().clone()).collect(),
            answer: agent.answer.clone(),
            settings: agent.settings.clone(),
            next,
        }
    }

    pub(super) async fn run(
        self: Arc<Self>,
        state: Arc<AgentState<X>>,
        task: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        let repaired = repair::repaired(&state.messages);
        let mut request = ModelRequest {
            system: self.prompt.as_ref().and_then(|prompt| prompt(&state)),
            messages: match &repaired {
                Some(repaired) => repaired.clone().into(),
                None => Conversation::of(state.clone()),
            },
            tools: self.tools.clone(),
            settings: self.settings.clone(),
            ..ModelRequest::default()
        };
        let profile = self.answer.as_ref().map(|answer| (answer, self.model.profile()));
        if let Some((answer, profile)) = &profile {
            answer.ask(profile, &mut request);
        }
        let model = self.model.clone();
        let tries = Arc::new(AtomicU32::new(0));
        let call = ModelCall { model, request, state: state.clone(), task, tries };
        let reply = self.next.run(call).await.map_err(ModelError::into_node_error)?;
        let ModelReply { mut message, mut update } = reply;
        if let Some(name) = &self.name {
            message.name = Some(name.to_string());
        }
        // What a repair adds belongs between the messages, and messages are only added at the end.
        let mut messages: Vec<Message> = Vec::new();
        if let Some(repaired) = repaired {
            messages.push(Message::remove_all());
            messages.extend(repaired);
        }
        let more = match &profile {
            Some((answer, profile)) => {
                let (more, written) = answer.read(profile, &state, &message)?;
                update = update.and(written);
                more
            }
            None => Vec::new(),
        };
        messages.push(message);
        messages.extend(more);
        Ok(AgentUpdate::default().messages(messages).and(update))
    }
}

/// Asks the model and streams its answer.
async fn ask<X: State>(call: ModelCall<X>) -> Result<ModelReply<X>, ModelError> {
    let ModelCall { model, request, task, tries, .. } = call;
    let nth = tries.fetch_add(1, Ordering::Relaxed);
    // Another try has another id: a stream may have shown pieces of the first.
    let id = match (task.attempt(), nth) {
        (1, 0) => format!("lc_run--{}", task.id()),
        (attempt, nth) => format!("lc_run--{}-{attempt}-{nth}", task.id()),
    };
    let pieces = model.stream(request);
    let message = collect(pieces, &id, |piece| task.emit_message(piece)).await?;
    Ok(ModelReply::new(message))
}
