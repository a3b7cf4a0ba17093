//! An agent in a loop: a model thinks and asks for tools, a person is asked about one of them, the model looks at what they say.

use superstep::prelude::*;
use superstep::state::ToolCall;
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, Decision, say, tool, tools};

/// Lists the files.
#[tool]
async fn list_files() -> &'static str {
    "old.txt, new.txt"
}

/// Deletes a file for good.
#[tool(approve)]
async fn delete_file(path: String) -> String {
    format!("{path} is gone")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let list = ToolCall::new::<String, Value>("1", "list_files", []);
    let delete = ToolCall::new("2", "delete_file", [("path", "old.txt")]);
    let calls = [list, delete].map(|call| Message::ai("").with_tool_calls([call]));
    let model = ScriptedModel::following(calls.into_iter().chain([Message::ai("Tidied up.")]));
    let agent = Agent::new(model).prompt("You tidy up.").tools(tools![list_files, delete_file]);
    let thread = agent.build()?.with_checkpointer(MemorySaver::new()).thread("agent-1");
    let asked = thread.invoke(say("Tidy up.")).await?.interrupted().ok_or("nobody was asked")?;
    println!("{}", asked[0].value);
    let state = thread.resume(Decision::Approve).await?.done().ok_or("something is asked")?;
    state.messages.iter().for_each(|message| println!("{}: {}", message.role, message.text()));
    Ok(())
}

#[cfg(test)]
#[test]
fn it_tidies_up() {
    main().expect("a run");
}
