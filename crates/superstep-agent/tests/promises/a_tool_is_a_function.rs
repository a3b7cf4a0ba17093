//! Shows that a function with `#[tool]` is a tool: its signature and documentation are what the model is told, arguments that do not fit are answered
//! to the model, each call has a key of its own, and what the agent provides is not asked of the model.

use std::collections::BTreeSet;

use superstep::Ctx;
use superstep::prelude::*;
use superstep::state::{ToolCall, ToolStatus};
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, AgentState, Call, Json, ToolError, ToolErrors, say, tool, tools};

use crate::common::{Log, asks, said};

/// Finds papers.
///
/// Only those of the archive.
#[tool]
async fn find(
    /// What they are about.
    topic: String,
    /// How many.
    limit: Option<u32>,
    Ctx(log): Ctx<Log>,
    call: Call,
    task: Task,
    state: Arc<AgentState>,
) -> Result<Json<Vec<String>>, ToolError> {
    if topic.is_empty() {
        return Err(ToolError::tell("give a topic"));
    }
    assert_eq!(call.idempotency_key(), task.idempotency_key());
    log.note(format!("{} {}", call.idempotency_key(), state.messages.len()));
    Ok(Json(vec![topic; limit.unwrap_or(1) as usize]))
}

#[test]
fn the_model_is_told_the_signature_and_the_documentation() {
    let tool = find();
    let spec = tool.spec();
    assert_eq!(spec.name, "find");
    assert_eq!(spec.description, "Finds papers.\n\nOnly those of the archive.");
    let names: BTreeSet<_> =
        spec.schema["properties"].as_object().expect("fields").keys().map(String::as_str).collect();
    assert_eq!(names, BTreeSet::from(["limit", "topic"]));
    assert_eq!(spec.schema["required"], serde_json::json!(["topic"]));
    assert_eq!(spec.schema["properties"]["topic"]["description"], "What they are about.");
}

#[tokio::test]
async fn calls_of_one_turn_are_tasks_of_their_own() {
    let ask = |id: &str, topic: &str| ToolCall::new(id, "find", [("topic", topic)]);
    let model = ScriptedModel::new([
        Message::ai("").with_tool_calls([ask("1", "BSP"), ask("2", "Pregel"), ask("3", "")]),
        Message::ai("").with_tool_calls([ToolCall::new("4", "find", [("topic", 7)])]),
        Message::ai("").with_tool_calls([ToolCall::new("5", "fund", [("topic", "x")])]),
        Message::ai("Enough."),
    ]);
    let log = Log::default();
    let agent = Agent::new(model.clone()).prompt("Look things up.").tools(tools![find]);
    let agent = agent.build().expect("an agent").with_context(log.clone());
    let state = agent.invoke(say("Look.")).await.expect("a run").done().expect("an end");
    let lines = said(&state);
    assert_eq!(lines[2..5], [r#"tool: ["BSP"]"#, r#"tool: ["Pregel"]"#, "tool: give a topic"]);
    assert!(lines[6].contains("Error invoking tool 'find'"), "{}", lines[6]);
    assert_eq!(lines[8], "tool: Error: fund is not a valid tool, try one of [find].");
    assert_eq!(lines[9], "ai: Enough.");
    let failed: Vec<_> = state.messages.iter().map(|it| it.status == ToolStatus::Error).collect();
    assert_eq!(failed.iter().filter(|failed| **failed).count(), 3);
    let keys = log.taken();
    assert!(keys.len() == 2 && keys[0] != keys[1] && keys[0].ends_with(" 2"), "{keys:?}");
    let request = &model.requests()[0];
    assert_eq!(
        request.system.as_ref().map(|it| it.text().into_owned()),
        Some("Look things up.".into())
    );
    assert_eq!(request.messages.len(), 1);
}

/// Fails.
#[tool]
async fn fail(at: i64) -> Result<String, NodeError> {
    match at {
        0 => panic!("out of order"),
        _ => Err("no paper".into()),
    }
}

#[tokio::test]
async fn errors_are_raised_or_told_as_declared() {
    let model = ScriptedModel::following([asks([("1", "fail", 1)]), Message::ai("Well.")]);
    let agent = Agent::new(model).tools(tools![fail]).build().expect("an agent");
    let error = agent.invoke(say("Try.")).await.expect_err("raised").to_string();
    assert!(error.contains("no paper"), "{error}");

    let asked = asks([("1", "fail", 1), ("2", "fail", 0)]);
    let model = ScriptedModel::following([asked, Message::ai("Well.")]);
    let agent = Agent::new(model).tools(tools![fail]).on_tool_error(ToolErrors::Tell);
    let agent = agent.build().expect("an agent");
    let state = agent.invoke(say("Try.")).await.expect("a run").done().expect("an end");
    let lines = said(&state);
    assert!(
        lines[2].contains("Error executing tool 'fail'") && lines[2].contains("no paper"),
        "{lines:?}"
    );
    assert!(lines[3].contains("panicked: out of order"), "{lines:?}");
}

#[test]
fn what_is_wrong_with_an_agent_is_said_at_once() {
    let agent = Agent::new(ScriptedModel::new(["x"])).tools(tools![find, find]).approve("fin");
    let error = agent.build().expect_err("two problems");
    assert_eq!(error.problems().len(), 2, "{error}");
    assert!(error.problems()[1].contains("did you mean `find`?"), "{error}");
}

#[derive(State, Clone, Debug, Default)]
struct Desk {
    customer: String,
    #[channel(reduce = Append)]
    notes: Vec<String>,
}

/// Notes something about the customer.
#[tool]
async fn note(at: i64, state: Arc<AgentState<Desk>>) -> superstep_agent::ToolOutput {
    let update = AgentState::<Desk>::update()
        .more(Desk::update().notes([format!("{} {at}", state.more.customer)]));
    superstep_agent::ToolOutput::new("noted").with_command(Command::update(update))
}

#[tokio::test]
async fn the_state_is_extended_by_a_struct_and_tools_write_to_it() {
    let asked = asks([("1", "note", 1), ("2", "note", 2)]);
    let model = ScriptedModel::following([asked, Message::ai("Noted.")]);
    let agent = Agent::<Desk>::with_state(model)
        .prompt_with(|state| Some(Message::system(format!("Serve {}.", state.more.customer))))
        .tools(tools![note])
        .build()
        .expect("an agent")
        .with_checkpointer(MemorySaver::new());
    let thread = agent.thread("1");
    let input = say("Note it.").more(Desk::update().customer("Ada"));
    let state = thread.invoke(input).await.expect("a run").done().expect("an end");
    assert_eq!(state.more.notes, ["Ada 1", "Ada 2"]);
    let loaded = thread.get_state().await.expect("a state");
    assert_eq!(loaded.state().more.notes, ["Ada 1", "Ada 2"]);
}
