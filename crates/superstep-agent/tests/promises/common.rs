//! What many of these tests use.

use std::sync::{Arc, Mutex};

use superstep::checkpoint::Value;
use superstep::state::{Message, ToolCall};
use superstep_agent::{AgentState, AnyTool, Invocation, tool};

/// What ran, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, text: impl Into<String>) {
        self.0.lock().expect("no panic").push(text.into());
    }

    pub(crate) fn taken(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic"))
    }

    /// A tool of this name that notes its argument `at` and says it.
    pub(crate) fn tool(&self, name: &str) -> AnyTool {
        let log = self.clone();
        tool::function::<At>(name, "Does something.").run(move |At { at }, run: Invocation| {
            let name = run.call().name.clone();
            log.note(format!("{name} {at}"));
            async move { format!("{name} did {at}") }
        })
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct At {
    pub(crate) at: i64,
}

/// A message that asks for these tools, each with its id and the argument `at`.
pub(crate) fn asks<const N: usize>(calls: [(&str, &str, i64); N]) -> Message {
    let calls = calls.map(|(id, name, at)| ToolCall::new(id, name, [("at", at)]));
    Message::ai("").with_tool_calls(calls)
}

/// Who said what.
pub(crate) fn said(state: &AgentState) -> Vec<String> {
    let line = |message: &Message| format!("{}: {}", message.role, message.text());
    state.messages.iter().map(line).collect()
}

pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> Option<&'a str> {
    path.iter().try_fold(value, |at, key| at.get(key))?.as_str()
}
