//! Where an agent goes next: LangChain's routers.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use superstep::node::Routes as Targets;
use superstep::state::{Message, Role, State, ToolCall, ToolStatus};
use superstep::{Dispatch, END};

use super::Agent;
use super::graph::TOOLS;
use crate::state::{AgentState, JumpTo};
use crate::tool::AnyTool;

/// What the routers know of the agent.
pub(super) struct Routes {
    model: Arc<str>,
    end: Arc<str>,
    /// The tools there are, and whether the agent ends with their result.
    tools: HashMap<String, bool>,
    /// The tool that takes the structured answer.
    answer: Option<String>,
}

impl Routes {
    pub(super) fn new<X: State>(
        agent: &Agent<X>,
        tools: &[AnyTool],
        model: Arc<str>,
        end: Arc<str>,
    ) -> Self {
        let tools = tools.iter().map(|tool| tool.spec());
        let tools = tools.map(|spec| (spec.name.clone(), spec.return_direct)).collect();
        let answer = agent.answer.as_ref().map(|answer| answer.schema.name.clone());
        Self { model, end, tools, answer }
    }

    fn model(&self) -> Targets {
        Targets::to(self.model.clone())
    }

    fn end(&self) -> Targets {
        Targets::to(if *self.end == *END { END.into() } else { self.end.clone() })
    }

    pub(super) fn jump<X: State>(&self, to: JumpTo, state: &AgentState<X>) -> Targets {
        match to {
            JumpTo::Model => self.model(),
            JumpTo::End => self.end(),
            JumpTo::Tools => self.pending(state).map_or_else(|| self.end(), dispatch),
        }
    }

    pub(super) fn after_model<X: State>(&self, state: &AgentState<X>) -> Targets {
        if let Some(to) = state.jump_to.filter(|to| !to.is_tools()) {
            return self.jump(to, state);
        }
        let Some((last, after)) = state.last_turn() else { return self.end() };
        // An answer of the provider was sent back.
        let sent_back =
            |message: &Message| message.role == Role::Human && message.name == self.answer;
        if self.answer.is_some() && after.iter().any(sent_back) {
            return self.model();
        }
        let asks = !last.tool_calls.is_empty() || !last.invalid_tool_calls.is_empty();
        if !asks || (self.tools.is_empty() && self.answer.is_none()) {
            return self.end();
        }
        if let Some(pending) = self.pending(state) {
            return dispatch(pending);
        }
        if !state.structured_response.is_null() { self.end() } else { self.model() }
    }

    pub(super) fn after_tools<X: State>(&self, state: &AgentState<X>) -> Targets {
        let Some((last, answers)) = state.last_turn() else { return self.model() };
        let directly = |call: &ToolCall| self.tools.get(&call.name).copied();
        let mut known = last.tool_calls.iter().filter_map(directly).peekable();
        if known.peek().is_some() && known.all(std::convert::identity) {
            return self.end();
        }
        let is_answer = |message: &Message| {
            message.name.is_some()
                && message.name == self.answer
                && message.status != ToolStatus::Error
        };
        if answers.iter().any(is_answer) { self.end() } else { self.model() }
    }

    /// The calls of the last message that have no result yet.
    fn pending<'a, X: State>(&self, state: &'a AgentState<X>) -> Option<Vec<&'a ToolCall>> {
        let (last, answers) = state.last_turn()?;
        let tools = answers.iter().filter(|message| message.role == Role::Tool);
        let answered: HashSet<_> =
            tools.filter_map(|message| message.tool_call_id.as_deref()).collect();
        let waits = |call: &&ToolCall| {
            let is_answer = self.answer.as_ref() == Some(&call.name);
            !is_answer && !call.id.as_deref().is_some_and(|id| answered.contains(id))
        };
        let pending: Vec<_> = last.tool_calls.iter().filter(waits).collect();
        (!pending.is_empty() && !self.tools.is_empty()).then_some(pending)
    }
}

/// Each call is a task of its own. LangChain sends lists of one.
fn dispatch(calls: Vec<&ToolCall>) -> Targets {
    let dispatches = calls.into_iter().map(|call| Dispatch::new(TOOLS, vec![call.clone()]));
    Targets::to(dispatches.collect::<Vec<_>>())
}
