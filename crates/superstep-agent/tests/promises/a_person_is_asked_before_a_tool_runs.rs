//! Shows that calls which need an approval are asked about before anything of them runs, each by itself: answers reach the call they are for, in
//! any order, a call that ran does not run again, and of several answers given together one that is invalid keeps all of them from running.

use superstep::RunError;
use superstep::checkpoint::Value;
use superstep::prelude::*;
use superstep_agent::approval::DecisionKind;
use superstep_agent::middleware::HumanInTheLoop;
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, AgentState, Approval, ApprovalFormat, Decision, say};

use crate::common::{Log, asks, said, text};

fn two_calls() -> ScriptedModel {
    let asked = asks([("a", "write_file", 1), ("b", "write_log", 2), ("c", "read", 3)]);
    ScriptedModel::following([asked, Message::ai("Done.")])
}

fn agent(log: &Log, format: ApprovalFormat) -> superstep::CompiledGraph<AgentState> {
    let tools = ["write_file", "write_log", "read"].map(|name| log.tool(name));
    let agent = Agent::new(two_calls()).tools(tools).approve("write_*").approval_format(format);
    agent.build().expect("an agent").with_checkpointer(MemorySaver::new())
}

#[tokio::test]
async fn each_call_asks_by_itself_and_is_answered_in_any_order() {
    let log = Log::default();
    let thread = agent(&log, ApprovalFormat::BatchOfOne).thread("1");
    let asked = thread.invoke(say("Go.")).await.expect("a run").interrupted().expect("questions");
    assert_eq!(log.taken(), ["read 3"], "what needs no approval runs");
    assert_eq!(asked.len(), 2);
    for (question, name) in asked.iter().zip(["write_file", "write_log"]) {
        for (list, key) in [("action_requests", "name"), ("review_configs", "action_name")] {
            let items = question.value.get(list).and_then(Value::as_list).expect("a list");
            assert_eq!(items.len(), 1, "user interfaces show the first");
            assert_eq!(text(&items[0], &[key]), Some(name));
        }
    }
    let (first, second) = (asked[0].id.clone(), asked[1].id.clone());
    let left = thread.resume_all([(second, Decision::Approve)]).await.expect("a run");
    assert_eq!(log.taken(), ["write_log 2"]);
    let left = left.interrupted().expect("the other question");
    assert_eq!(left.len(), 1);
    // As user interfaces answer.
    let answer = serde_json::json!({ "decisions": [{ "type": "reject", "message": "not now" }] });
    let state = thread.resume_all([(first, answer)]).await.expect("a run").done().expect("an end");
    assert!(log.taken().is_empty(), "it was rejected, and the others have run");
    let lines = said(&state);
    assert_eq!(
        lines[2..5],
        [
            "tool: User rejected the tool call for `write_file` with reason: not now",
            "tool: write_log did 2",
            "tool: read did 3",
        ]
    );
}

#[tokio::test]
async fn of_two_answers_an_invalid_one_keeps_both_from_running() {
    let bad = [
        serde_json::json!({ "decisions": [] }),
        serde_json::json!({ "decisions": [{ "type": "maybe" }] }),
        serde_json::json!({ "decisions": [{ "type": "approve" }, { "type": "approve" }] }),
        serde_json::json!({ "type": "edit", "edited_action": { "name": "write_log", "args": { "at": "x" } } }),
        serde_json::json!({ "type": "edit", "edited_action": { "name": "read", "args": { "at": 1 } } }),
        serde_json::json!({ "type": "respond" }),
        serde_json::json!(true),
    ];
    for format in [ApprovalFormat::BatchOfOne, ApprovalFormat::PerCall] {
        for bad in &bad {
            let log = Log::default();
            let thread = agent(&log, format).thread("1");
            let asked = thread.invoke(say("Go.")).await.expect("a run").interrupted().expect("two");
            log.taken();
            let good = serde_json::json!({ "type": "approve" });
            let ids = [asked[0].id.clone(), asked[1].id.clone()];
            let answers = ids.clone().into_iter().zip([good.clone(), bad.clone()]);
            let refused = thread.resume_all(answers).await.expect_err("an invalid answer");
            assert!(matches!(refused, RunError::Resume { .. }), "{bad}: {refused}");
            assert!(log.taken().is_empty(), "{bad}: nothing ran");
            let answers = ids.into_iter().zip([good.clone(), good]);
            let state = thread.resume_all(answers).await.expect("a run").done().expect("an end");
            assert_eq!(log.taken(), ["write_file 1", "write_log 2"], "{bad}: each once");
            assert_eq!(said(&state)[5], "ai: Done.");
        }
    }
}

#[tokio::test]
async fn an_edited_call_runs_as_edited_and_the_model_is_told() {
    let log = Log::default();
    let thread = agent(&log, ApprovalFormat::PerCall).thread("1");
    let asked = thread.invoke(say("Go.")).await.expect("a run").interrupted().expect("two");
    assert_eq!(text(&asked[0].value, &["type"]), Some("tool_approval"));
    assert_eq!(text(&asked[0].value, &["tool_call_id"]), Some("a"));
    log.taken();
    let edited = Decision::edit("write_file", [("at".to_owned(), 9.into())]);
    let answers =
        [(asked[0].id.clone(), edited), (asked[1].id.clone(), Decision::respond("it is written"))];
    let state = thread.resume_all(answers).await.expect("a run").done().expect("an end");
    assert_eq!(log.taken(), ["write_file 9"]);
    let lines = said(&state);
    assert!(lines[2].contains("human reviewer replaced this tool call"), "{}", lines[2]);
    assert!(lines[2].ends_with("write_file did 9"), "{}", lines[2]);
    assert_eq!(lines[3], "tool: it is written");
    assert_eq!(state.messages[1].tool_calls[0].args["at"], 1.into(), "the model's own words stay");
}

#[tokio::test]
async fn one_question_for_all_calls_as_langchain_asks_it() {
    let log = Log::default();
    let tools = ["write_file", "write_log", "read"].map(|name| log.tool(name));
    let agent = Agent::new(two_calls()).tools(tools).with(HumanInTheLoop::on("write_*"));
    let agent = agent.build().expect("an agent").with_checkpointer(MemorySaver::new());
    let thread = agent.thread("1");
    let asked = thread.invoke(say("Go.")).await.expect("a run").interrupted().expect("one");
    let requests = asked[0].value.get("action_requests").and_then(Value::as_list);
    assert_eq!((asked.len(), requests.map(<[_]>::len), log.taken().len()), (1, Some(2), 0));
    let edit = Decision::edit("write_file", [("at".to_owned(), 9.into())]);
    let one = serde_json::json!({ "decisions": [{ "type": "approve" }] });
    thread.resume(one).await.expect_err("one decision is missing");
    let both = serde_json::json!({ "decisions": [edit, Decision::reject("no")] });
    let state = thread.resume(both).await.expect("a run").done().expect("an end");
    assert_eq!(log.taken(), ["write_file 9", "read 3"]);
    let lines = said(&state);
    assert!(lines[3].contains("human reviewer replaced this tool call"), "{lines:?}");
    assert!(lines[2].ends_with("with reason: no"), "{lines:?}");
}

#[tokio::test]
async fn a_predicate_and_a_choice_of_decisions() {
    let log = Log::default();
    let asked = asks([("a", "write", 1), ("b", "write", 100)]);
    let model = ScriptedModel::following([asked, Message::ai("Done.")]);
    let large = Approval::when(|args| args["at"].as_i64() > Some(10)).allow([DecisionKind::Reject]);
    let agent = Agent::new(model).tools([log.tool("write")]).approve_with("write", large);
    let agent = agent.build().expect("an agent").with_checkpointer(MemorySaver::new());
    let thread = agent.thread("1");
    let asked = thread.invoke(say("Go.")).await.expect("a run").interrupted().expect("one");
    assert_eq!((asked.len(), log.taken()), (1, vec!["write 1".to_owned()]));
    assert!(thread.resume(Decision::Approve).await.is_err(), "not one of the decisions");
    let reject = Decision::Reject { message: None };
    let state = thread.resume(reject).await.expect("a run").done().expect("an end");
    assert!(said(&state)[3].contains("Do not retry this tool call"), "{:?}", said(&state));
}
