//! A team: a supervisor whose tools are agents, and an answer of a type.

use schemars::JsonSchema;
use serde::Deserialize;
use superstep::prelude::*;
use superstep::state::ToolCall;
use superstep_agent::team::AgentTool;
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, say, tool, tools};

/// Finds papers about a topic.
#[tool]
async fn search(topic: String) -> String {
    format!("one paper about {topic}")
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Report {
    title: String,
    papers: u32,
}

fn call(id: &str, name: &str, key: &str, value: &str) -> ToolCall {
    ToolCall::new(id, name, [(key, value)])
}

async fn report() -> Result<Report, Box<dyn std::error::Error>> {
    let searches = Message::ai("").with_tool_calls([call("1", "search", "topic", "supersteps")]);
    let researcher = ScriptedModel::following([searches, Message::ai("There is one.")]);
    let researcher = Agent::new(researcher).tools(tools![search]).build()?;

    let asks = ["supersteps", "barriers"].map(|topic| call(topic, "research", "request", topic));
    let report = [("title", Value::from("Two papers")), ("papers", 2.into())];
    let supervisor = ScriptedModel::following([
        Message::ai("").with_tool_calls(asks),
        Message::ai("").with_tool_calls([ToolCall::new("r", "Report", report)]),
    ]);
    let supervisor = Agent::new(supervisor)
        .prompt("Let the researchers work side by side, then report.")
        .tools([researcher.as_tool("research", "Researches a topic.")])
        .answer_as::<Report>()
        .build()?;
    let state = supervisor.invoke(say("What is there?")).await?.done().ok_or("it asks")?;
    Ok(state.answer()?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Report { title, papers } = report().await?;
    println!("{title}: {papers}");
    Ok(())
}

#[cfg(test)]
#[tokio::test]
async fn the_team_reports() {
    assert_eq!(report().await.expect("a report").papers, 2);
}
