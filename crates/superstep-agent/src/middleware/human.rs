//! LangChain's batch of approvals: one question for all calls of a turn.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;
use superstep::checkpoint::{Map, Value, from_value, to_value};
use superstep::state::{State, TableChannel};
use superstep::{NodeError, Task};

use super::{Hook, Middleware, NextTool, ToolRun};
use crate::approval::{Action, Approval, Decision, noted, notice, result_of};
use crate::state::{AgentState, AgentUpdate, LayerChannel};
use crate::tool::{ToolError, ToolOutput, matches};

/// Asks one question about all calls of a turn that need an approval, in a node of its own: LangChain's `HumanInTheLoopMiddleware` in its default
/// mode, for threads that Python began or will continue.
///
/// [`#[tool(approve)]`](macro@crate::tool) and [`Agent::approve`](crate::Agent::approve) ask about each call by itself, which is
/// better in every other respect.
#[derive(Clone, Default)]
pub struct HumanInTheLoop {
    tools: Vec<(String, Approval)>,
}

const EDITED: &str = "hitl_edited_tool_calls";

#[derive(Deserialize)]
struct Decisions {
    decisions: Vec<Decision>,
}

impl HumanInTheLoop {
    /// Asks about the tools whose name matches; `*` stands for anything.
    pub fn on(pattern: impl Into<String>) -> Self {
        Self::default().and_on(pattern, Approval::default())
    }

    /// And about these, with what may be decided.
    #[must_use]
    pub fn and_on(mut self, pattern: impl Into<String>, approval: Approval) -> Self {
        self.tools.push((pattern.into(), approval));
        self
    }

    fn approval(&self, tool: &str, args: &Map) -> Option<&Approval> {
        let mut found = self.tools.iter();
        let (_, approval) = found.rfind(|(pattern, _)| matches(pattern, tool))?;
        approval.asks(args).then_some(approval)
    }
}

impl<X: State> Middleware<X> for HumanInTheLoop {
    const HOOKS: &'static [Hook] = &[Hook::AfterModel];

    fn name(&self) -> &str {
        "HumanInTheLoopMiddleware"
    }

    fn channels(&self) -> Vec<LayerChannel> {
        vec![LayerChannel::new(EDITED, TableChannel::last()).private()]
    }

    async fn after_model(
        &self,
        state: Arc<AgentState<X>>,
        task: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        let calls = state.last_ai().map_or(&[][..], |message| &message.tool_calls);
        let asked =
            calls.iter().filter_map(|call| Some((call, self.approval(&call.name, &call.args)?)));
        let asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            let edits =
                state.layer(EDITED).and_then(Value::as_map).is_some_and(|it| !it.is_empty());
            let update = AgentUpdate::default();
            return if edits { Ok(update.set(EDITED, Map::new())?) } else { Ok(update) };
        }
        let requests: Vec<_> = asked.iter().map(|(call, it)| it.action_request(call)).collect();
        let configs: Vec<_> = asked.iter().map(|(call, it)| it.review_config(call)).collect();
        let one = json!({ "type": "object", "required": ["type"] });
        let count = asked.len();
        let list = json!({ "type": "array", "items": one, "minItems": count, "maxItems": count });
        let schema = json!({ "type": "object", "required": ["decisions"], "properties": { "decisions": list } });
        let question = json!({ "action_requests": requests, "review_configs": configs });
        let Decisions { decisions } = task.interrupt(question).schema(schema).await;
        let (mut edited, mut answers) = (Map::new(), Vec::new());
        for ((call, approval), decision) in asked.iter().zip(decisions) {
            approval.check(&decision).map_err(NodeError::permanent)?;
            match (decision, &call.id) {
                (Decision::Edit { edited_action }, Some(id)) => {
                    edited.insert(id.clone(), to_value(&edited_action)?);
                }
                (decision, _) => answers.extend(result_of(call, decision)),
            }
        }
        let update = AgentUpdate::default().set(EDITED, edited)?;
        Ok(if answers.is_empty() { update } else { update.messages(answers) })
    }

    async fn wrap_tool(&self, call: ToolRun, next: NextTool) -> Result<ToolOutput, ToolError> {
        let state = call.invocation.state::<X>()?;
        let id = call.invocation.call().id.as_deref().unwrap_or_default();
        let edit = state.layer(EDITED).and_then(|edits| edits.get(id)).cloned();
        let Some(edit) = edit else { return next.run(call).await };
        let action: Action = from_value(edit)?;
        let notice = notice(&action);
        let invocation = call.invocation.with_args(action.args);
        let mut output = next.run(ToolRun { invocation, ..call }).await?;
        output.content = noted(notice, output.content);
        Ok(output)
    }
}

impl fmt::Debug for HumanInTheLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let patterns: Vec<_> = self.tools.iter().map(|(pattern, _)| pattern).collect();
        f.debug_tuple("HumanInTheLoop").field(&patterns).finish()
    }
}
