//! Limits on how often the model is asked and tools are called.

use std::sync::Arc;

use superstep::checkpoint::{Map, Value};
use superstep::state::{Kind, Message, State, TableChannel, ToolCall, ToolStatus};
use superstep::{NodeError, Task};

use super::{Hook, Middleware};
use crate::state::{AgentState, AgentUpdate, JumpTo, LayerChannel};

/// What happens when a limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtLimit {
    /// The agent ends, and says so.
    #[default]
    End,
    /// The run fails.
    Fail,
}

/// Ends the agent after so many calls of the model, on a thread or in a run.
#[derive(Clone, Debug, Default)]
pub struct ModelCallLimit {
    thread: Option<i64>,
    run: Option<i64>,
    at_limit: AtLimit,
}

impl ModelCallLimit {
    /// At most this many in one run.
    pub fn in_run(calls_max: u32) -> Self {
        Self { run: Some(calls_max.into()), ..Self::default() }
    }

    /// At most this many on a thread.
    pub fn on_thread(calls_max: u32) -> Self {
        Self { thread: Some(calls_max.into()), ..Self::default() }
    }

    /// What happens then.
    #[must_use]
    pub fn at_limit(self, at_limit: AtLimit) -> Self {
        Self { at_limit, ..self }
    }
}

const THREAD_CALLS: &str = "thread_model_call_count";
const RUN_CALLS: &str = "run_model_call_count";

fn untracked() -> TableChannel {
    TableChannel::of_kind(Kind::Untracked { guard: true })
}

fn count<X: State>(state: &AgentState<X>, channel: &str) -> i64 {
    state.layer(channel).and_then(Value::as_i64).unwrap_or(0)
}

impl<X: State> Middleware<X> for ModelCallLimit {
    const HOOKS: &'static [Hook] = &[Hook::BeforeModel, Hook::AfterModel];

    fn name(&self) -> &str {
        "ModelCallLimitMiddleware"
    }

    fn channels(&self) -> Vec<LayerChannel> {
        vec![
            LayerChannel::new(THREAD_CALLS, TableChannel::last()).private(),
            LayerChannel::new(RUN_CALLS, untracked()).private(),
        ]
    }

    async fn before_model(
        &self,
        state: Arc<AgentState<X>>,
        _: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        let reached = |channel, limit: Option<i64>, what: &str| {
            let (calls, limit) = (count(&state, channel), limit?);
            (calls >= limit).then(|| format!("{what} limit ({calls}/{limit})"))
        };
        let reached =
            [reached(THREAD_CALLS, self.thread, "thread"), reached(RUN_CALLS, self.run, "run")];
        let reached: Vec<_> = reached.into_iter().flatten().collect();
        if reached.is_empty() {
            return Ok(AgentUpdate::default());
        }
        let text = format!("Model call limits exceeded: {}", reached.join(", "));
        match self.at_limit {
            AtLimit::End => {
                Ok(AgentUpdate::default().messages([Message::ai(text)]).jump_to(JumpTo::End))
            }
            AtLimit::Fail => Err(NodeError::permanent(text).named("ModelCallLimitExceededError")),
        }
    }

    async fn after_model(
        &self,
        state: Arc<AgentState<X>>,
        _: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        let more = |channel| count(&state, channel).saturating_add(1);
        let update = AgentUpdate::default().set(THREAD_CALLS, more(THREAD_CALLS))?;
        Ok(update.set(RUN_CALLS, more(RUN_CALLS))?)
    }
}

/// Refuses calls of tools beyond a limit, on a thread or in a run. The model is told, and goes on.
#[derive(Clone, Debug, Default)]
pub struct ToolCallLimit {
    thread: Option<i64>,
    run: Option<i64>,
}

const THREAD_TOOLS: &str = "thread_tool_call_count";
const RUN_TOOLS: &str = "run_tool_call_count";
/// The key under which LangChain counts the calls of all tools.
const ALL: &str = "__all__";

impl ToolCallLimit {
    /// At most this many calls of all tools in one run.
    pub fn in_run(calls_max: u32) -> Self {
        Self { run: Some(calls_max.into()), ..Self::default() }
    }

    /// At most this many on a thread, as well.
    #[must_use]
    pub fn on_thread(self, calls_max: u32) -> Self {
        Self { thread: Some(calls_max.into()), ..self }
    }
}

fn counts<X: State>(state: &AgentState<X>, channel: &str) -> Map {
    state.layer(channel).and_then(Value::as_map).cloned().unwrap_or_default()
}

impl<X: State> Middleware<X> for ToolCallLimit {
    const HOOKS: &'static [Hook] = &[Hook::AfterModel];

    fn name(&self) -> &str {
        "ToolCallLimitMiddleware"
    }

    fn channels(&self) -> Vec<LayerChannel> {
        vec![
            LayerChannel::new(THREAD_TOOLS, TableChannel::last()).private(),
            LayerChannel::new(RUN_TOOLS, untracked()).private(),
        ]
    }

    async fn after_model(
        &self,
        state: Arc<AgentState<X>>,
        _: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        let Some(last) = state.last_ai().filter(|last| !last.tool_calls.is_empty()) else {
            return Ok(AgentUpdate::default());
        };
        let (mut thread, mut run) = (counts(&state, THREAD_TOOLS), counts(&state, RUN_TOOLS));
        let number = |map: &Map| map.get(ALL).and_then(Value::as_i64).unwrap_or(0);
        let (mut on_thread, mut in_run) = (number(&thread), number(&run));
        let beyond = |calls: i64, limit: Option<i64>| limit.is_some_and(|limit| calls >= limit);
        let mut refused = Vec::new();
        for call in &last.tool_calls {
            if beyond(on_thread, self.thread) || beyond(in_run, self.run) {
                refused.push(refusal(call));
            } else {
                on_thread = on_thread.saturating_add(1);
            }
            in_run = in_run.saturating_add(1);
        }
        thread.insert(ALL.to_owned(), on_thread.into());
        run.insert(ALL.to_owned(), in_run.into());
        let update = AgentUpdate::default().set(THREAD_TOOLS, thread)?.set(RUN_TOOLS, run)?;
        Ok(if refused.is_empty() { update } else { update.messages(refused) })
    }
}

fn refusal(call: &ToolCall) -> Message {
    let text = "Tool call limit exceeded. Do not make additional tool calls.";
    let refusal = Message::tool(call.id.clone().unwrap_or_default(), text);
    refusal.with_name(&*call.name).with_status(ToolStatus::Error)
}
