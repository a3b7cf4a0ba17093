//! A swarm: agents that hand a conversation over to each other. Who is at work is in the state, so the next message goes to the same one.

use superstep::prelude::*;
use superstep::state::ToolCall;
use superstep::{CompiledGraph, Targets};
use superstep_agent::team::hand_off;
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, AgentState, AgentUpdate};

#[derive(State, Clone, Debug, Default)]
struct Office {
    #[channel(reduce = Messages)]
    messages: Vec<Message>,
    active: String,
}

/// An agent that can hand over to `to`.
fn agent(to: &'static str, said: Message) -> Result<CompiledGraph<AgentState>, CompileError> {
    let update = |messages: Vec<Message>| Office::update().messages(messages).active("sales");
    let model = ScriptedModel::answering(move |_| said.clone());
    Agent::new(model).tools([hand_off::<(), Office>(to, update)]).build()
}

fn office() -> Result<CompiledGraph<Office>, CompileError> {
    let call = ToolCall::new::<String, Value>("1", "transfer_to_sales", []);
    let front = agent("sales", Message::ai("").with_tool_calls([call]))?;
    let sales = agent("front", Message::ai("It costs 5."))?;
    let enter = |office: &Office| AgentUpdate::<()>::default().messages(office.messages.clone());
    let leave = |state: AgentState| Office::update().messages(state.messages);
    let graph = StateGraph::<Office>::new()
        .add_node("front", front.as_node(enter, leave))
        .destinations(["sales"])
        .add_node("sales", sales.as_node(enter, leave))
        .destinations(["front"])
        .set_conditional_entry_point(Targets::from(["front", "sales"]), |office: &Office| {
            if office.active == "sales" { "sales" } else { "front" }
        });
    Ok(graph.compile()?.with_checkpointer(MemorySaver::new()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let thread = office()?.thread("1");
    for question in ["What does it cost?", "And two?"] {
        let input = Office::update().messages([Message::human(question)]);
        let office = thread.invoke(input).await?.done().ok_or("it asks")?;
        let said = office.messages.last().map(|message| message.text().into_owned());
        println!("{}: {}", office.active, said.unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
#[test]
fn the_second_question_goes_to_the_agent_at_work() {
    main().expect("two runs");
}
