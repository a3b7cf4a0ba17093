//! The rounds of an agent whose model costs nothing.

use futures_util::stream;
use superstep::state::{Message, ToolCall};
use superstep_agent::{
    Agent, ChatModel, Invocation, ModelRequest, ModelStream, ToolOutput, say, tool,
};

use crate::failure::Failure;
use crate::protocol::Measured;
use crate::setting::{Setting, done, nanos};

/// Asks for a tool in each round.
struct Scripted {
    rounds: usize,
}

impl ChatModel for Scripted {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let turn = request.messages.len() / 2;
        let said = Message::ai("x".repeat(200));
        let call = || ToolCall::new(turn.to_string(), "look", [("at", turn as i64)]);
        let said = if turn < self.rounds { said.with_tool_calls([call()]) } else { said };
        Box::pin(stream::iter([Ok(said)]))
    }
}

/// An agent that calls a tool in each round: what the layer of agents costs beyond the engine.
pub(super) async fn agent(setting: &mut Setting, rounds: usize) -> Result<Measured, Failure> {
    let look = tool::function::<serde_json::Map<String, serde_json::Value>>("look", "Looks.")
        .run(|_, _: Invocation| async { ToolOutput::new("x".repeat(200)) });
    let graph = Agent::new(Scripted { rounds }).tools([look]).build()?;
    let graph = setting.equip(graph);
    let mut measured = Measured { units: rounds as u64, ..Measured::default() };
    for _ in 0..setting.rounds {
        let began = setting.start().await?;
        let state = done(setting.invoke(&graph, say("x".repeat(200))).await?)?;
        measured.nanos.push(nanos(began.elapsed()));
        assert_eq!(state.messages.len(), 2 + 2 * rounds, "two messages a round");
    }
    Ok(measured)
}
