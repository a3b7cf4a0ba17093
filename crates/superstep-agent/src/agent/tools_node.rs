//! The node that runs a tool. Each call is a task of its own.

use std::any::Any;
use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use superstep::checkpoint::Value;
use superstep::node::{IntoOutput, Output};
use superstep::state::{Message, State, ToolCall};
use superstep::{Arg, NodeError, Task};

use super::{Agent, ToolErrors};
use crate::approval::{self, Approval, ApprovalFormat, Verdict, noted};
use crate::middleware::{AnyMiddleware, NextTool, ToolRun};
use crate::state::{AgentState, AgentUpdate};
use crate::tool::{AnyTool, Failure, Invocation, ToolError, ToolOutput, matches};

pub(crate) struct ToolNode {
    tools: HashMap<String, Gate>,
    /// The names, in the order in which the tools were added.
    names: Vec<String>,
    format: ApprovalFormat,
    errors: ToolErrors,
    next: NextTool,
}

/// A tool and whether it needs an approval.
struct Gate {
    tool: AnyTool,
    approval: Option<Approval>,
}

impl ToolNode {
    pub(crate) fn new<X: State>(
        agent: &Agent<X>,
        tools: Vec<AnyTool>,
        layers: &[Arc<dyn AnyMiddleware<X>>],
    ) -> Self {
        let by_name: HashMap<_, _> =
            tools.iter().map(|tool| (tool.spec().name.clone(), tool.clone())).collect();
        let errors = agent.tool_errors;
        let innermost = NextTool(Arc::new(move |run: ToolRun| {
            let tool = by_name.get(&run.tool.name).cloned();
            Box::pin(run_tool(tool, run, errors))
        }));
        let next = layers.iter().rev().fold(innermost, |inner, layer| {
            let layer = layer.clone();
            NextTool(Arc::new(move |run| layer.clone().wrap_tool(run, inner.clone())))
        });
        let names = tools.iter().map(|tool| tool.spec().name.clone()).collect();
        let gates = tools.into_iter().map(|tool| {
            let mut declared = agent.approvals.iter();
            let declared = declared.rfind(|(pattern, _)| matches(pattern, &tool.spec().name));
            let approval = declared.map(|(_, approval)| approval.clone());
            let approval = approval.or_else(|| tool.spec().approval.clone());
            (tool.spec().name.clone(), Gate { tool, approval })
        });
        Self { tools: gates.collect(), names, format: agent.approval_format, errors, next }
    }

    pub(super) async fn run<X: State>(
        self: Arc<Self>,
        Arg(calls): Arg<Vec<ToolCall>>,
        state: Arc<AgentState<X>>,
        task: Task,
    ) -> Result<Output, NodeError> {
        let mut outputs = Vec::with_capacity(1);
        for call in calls {
            outputs.push(self.one(call, &state, &task).await?);
        }
        IntoOutput::<AgentState<X>>::into_output(outputs)
    }

    async fn one<X: State>(
        &self,
        call: ToolCall,
        state: &Arc<AgentState<X>>,
        task: &Task,
    ) -> Result<Output, NodeError> {
        let Some(Gate { tool, approval }) = self.tools.get(&call.name) else {
            return say::<X>(self.unknown(&call));
        };
        let spec = tool.spec();
        let asked = approval::ask(approval.as_ref(), spec, call, self.format, task).await;
        let (call, notice) = match asked {
            Verdict::Run(call, notice) => (*call, notice),
            Verdict::Answered(message) => return say::<X>(*message),
        };
        let invocation = Invocation::new(call.clone(), task.clone(), state.clone());
        let run = ToolRun { tool: spec.clone(), invocation };
        let mut output = match self.next.run(run).await {
            Ok(output) => output,
            Err(error) => self.told(&call, error)?,
        };
        if let Some(notice) = notice {
            output.content = noted(notice, output.content);
        }
        let mut outputs = Vec::with_capacity(2);
        if !output.answered {
            outputs.push(say::<X>(output.message(&call))?);
        }
        outputs.extend(output.command);
        IntoOutput::<AgentState<X>>::into_output(outputs)
    }

    fn unknown(&self, call: &ToolCall) -> Message {
        let names = self.names.join(", ");
        let text = format!("Error: {} is not a valid tool, try one of [{names}].", call.name);
        ToolOutput::error(text).message(call)
    }

    /// What the model is told of an error.
    ///
    /// # Errors
    /// The run is to fail with it.
    fn told(&self, call: &ToolCall, error: ToolError) -> Result<ToolOutput, NodeError> {
        let (name, args) = (&call.name, Value::Map(call.args.clone()));
        let text = match (error.failure, self.errors) {
            (Failure::Arguments(why), _) => format!(
                "Error invoking tool '{name}' with kwargs {args} with error:\n {why}\n Please fix the error and try again."
            ),
            (Failure::Told(text), _) => text,
            (Failure::Failed(error), ToolErrors::Raise) => return Err(error),
            (Failure::Failed(error), ToolErrors::Tell) => format!(
                "Error executing tool '{name}' with kwargs {args} with error:\n {error}\n Please fix the error and try again."
            ),
        };
        Ok(ToolOutput::error(text))
    }
}

fn say<X: State>(message: Message) -> Result<Output, NodeError> {
    AgentUpdate::<X>::default().messages([message]).into_output()
}

/// Runs the tool. A panic is an error, if errors are told.
async fn run_tool(
    tool: Option<AnyTool>,
    run: ToolRun,
    errors: ToolErrors,
) -> Result<ToolOutput, ToolError> {
    let Some(tool) = tool else {
        return Err(ToolError::tell(format!("there is no tool `{}`", run.tool.name)));
    };
    match errors {
        ToolErrors::Raise => tool.call(run.invocation).await,
        ToolErrors::Tell => {
            // The tool is not used again after a panic: it is called anew with another invocation.
            let called = AssertUnwindSafe(async { tool.call(run.invocation).await });
            called.catch_unwind().await.unwrap_or_else(|panic| Err(panicked(&*panic)))
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    NodeError::permanent(format!("the tool panicked: {text}")).into()
}
