//! Shows that a model which breaks off, says nothing, or asks for far too much leaves no half message in the state, and a thread that goes on.

use std::time::Duration;

use superstep::prelude::*;
use superstep::state::ToolCall;
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, ModelError, Trouble, say};

use crate::common::{Log, said};

fn broken() -> ModelError {
    ModelError::new(Trouble::Broken, "the connection was closed").after(Duration::from_secs(7))
}

#[tokio::test]
async fn an_answer_that_is_cut_off_leaves_no_half_message() {
    let model = ScriptedModel::in_pieces(|request| match request.messages.len() {
        1 => vec![Ok(Message::ai_chunk("Half a mess")), Err(broken())],
        _ => vec![Ok(Message::ai("Here I am."))],
    });
    let agent = Agent::new(model).build().expect("an agent");
    let thread = agent.with_checkpointer(MemorySaver::new()).thread("1");
    let error = thread.invoke(say("Hello?")).await.expect_err("cut off");
    assert!(error.to_string().contains("model"), "{error}");
    let state = thread.get_state().await.expect("a state");
    assert_eq!(said(state.state()), ["human: Hello?"]);
    let state = thread.invoke(say("Hello?")).await.expect("a run").done().expect("an end");
    assert_eq!(said(&state)[2], "ai: Here I am.");
}

#[tokio::test]
async fn a_model_that_says_nothing_is_an_error_that_says_so() {
    let agent = Agent::new(ScriptedModel::in_pieces(|_| Vec::new())).build().expect("an agent");
    let error = agent.invoke(say("Hello?")).await.expect_err("nothing");
    let text = format!("{error:?}");
    assert!(text.contains("ended its answer before it began one"), "{text}");
}

#[tokio::test]
async fn a_thousand_calls_run_and_each_has_its_result() {
    let calls = (0..1000).map(|n| ToolCall::new(n.to_string(), "count", [("at", n)]));
    let asked = Message::ai("").with_tool_calls(calls);
    let log = Log::default();
    let model = ScriptedModel::following([asked, Message::ai("Counted.")]);
    let agent = Agent::new(model).tools([log.tool("count")]).build().expect("an agent");
    let state = agent.invoke(say("Count.")).await.expect("a run").done().expect("an end");
    assert_eq!((log.taken().len(), state.messages.len()), (1000, 1003));
    let ids: Vec<_> = state.messages[2..1002].iter().map(|it| it.tool_call_id.clone()).collect();
    assert_eq!(ids[999].as_deref(), Some("999"), "in the order of the calls");
}
