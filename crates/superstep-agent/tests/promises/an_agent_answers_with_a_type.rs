//! Shows that an agent ends with an answer of a type, given with a tool or enforced by the provider, that the answer is always checked, and sent
//! back with the reason a limited number of times.

use schemars::JsonSchema;
use serde::Deserialize;
use superstep::prelude::*;
use superstep::state::ToolCall;
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, Profile, ToolChoice, say};

use crate::common::said;

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Forecast {
    city: String,
    degrees: i64,
}

fn forecast(id: &str, degrees: impl Into<Value>) -> Message {
    let args = [("city", Value::from("Lisbon")), ("degrees", degrees.into())];
    Message::ai("").with_tool_calls([ToolCall::new(id, "Forecast", args)])
}

fn lisbon() -> Forecast {
    Forecast { city: "Lisbon".to_owned(), degrees: 31 }
}

#[tokio::test]
async fn with_a_tool() {
    let model = ScriptedModel::following([forecast("1", "hot"), forecast("2", 31)]);
    let agent = Agent::new(model.clone()).answer_as::<Forecast>().build().expect("an agent");
    let state = agent.invoke(say("And tomorrow?")).await.expect("a run").done().expect("an end");
    assert_eq!(state.answer::<Forecast>().expect("a forecast"), lisbon());
    let lines = said(&state);
    assert!(lines[2].starts_with("tool: Error: the answer is not a `Forecast`"), "{lines:?}");
    assert!(lines[4].starts_with("tool: Returning structured response"), "{lines:?}");
    let request = &model.requests()[0];
    assert_eq!((request.tools.len(), &request.tool_choice), (1, &ToolChoice::Any));
}

#[tokio::test]
async fn enforced_by_the_provider() {
    let texts = ["31 degrees", r#"{"city": "Lisbon", "degrees": 31}"#];
    let model = ScriptedModel::following(texts.map(Message::ai))
        .with_profile(Profile::new("native").with_structured_output());
    let agent = Agent::new(model.clone()).answer_as::<Forecast>().build().expect("an agent");
    let state = agent.invoke(say("And tomorrow?")).await.expect("a run").done().expect("an end");
    assert_eq!(state.answer::<Forecast>().expect("a forecast"), lisbon());
    assert_eq!(said(&state).len(), 4, "{:?}", said(&state));
    let request = &model.requests()[0];
    assert_eq!(request.answer.as_ref().map(|answer| answer.name.as_str()), Some("Forecast"));
}

#[tokio::test]
async fn a_model_that_never_gives_it_fails_the_run() {
    let calls = (0..9).map(|n| forecast(&n.to_string(), "hot"));
    let model = ScriptedModel::following(calls);
    let agent = Agent::new(model.clone()).answer_as::<Forecast>().build().expect("an agent");
    let error = agent.invoke(say("And tomorrow?")).await.expect_err("no answer").to_string();
    assert!(error.contains("no answer of the type `Forecast`"), "{error}");
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn an_answer_of_an_earlier_run_is_not_taken_for_a_new_one() {
    let model = ScriptedModel::following([forecast("1", 31), forecast("2", "x"), forecast("3", 9)]);
    let agent = Agent::new(model).answer_as::<Forecast>().build().expect("an agent");
    let thread = agent.with_checkpointer(MemorySaver::new()).thread("1");
    thread.invoke(say("Tomorrow?")).await.expect("a run").done().expect("an end");
    let state = thread.invoke(say("And then?")).await.expect("a run").done().expect("an end");
    assert_eq!(state.answer::<Forecast>().expect("a forecast").degrees, 9);
}
