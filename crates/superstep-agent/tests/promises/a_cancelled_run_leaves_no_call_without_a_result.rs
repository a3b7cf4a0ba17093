//! Shows that a thread whose run was cancelled, or whose question nobody answered, goes on with new input: the model never sees a call without a
//! result, which providers refuse.

use superstep::RunControl;
use superstep::prelude::*;
use superstep::state::{InvalidToolCall, ToolStatus};
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, Invocation, say, tool};

use crate::common::{At, Log, asks, said};

#[tokio::test]
async fn a_run_that_was_stopped_in_a_tool() {
    let control = RunControl::new();
    let stop = control.clone();
    // The tool hangs, and the run is stopped from outside.
    let hang = tool::function::<At>("hang", "Hangs.").run(move |_, _: Invocation| {
        stop.stop_now("cancelled");
        std::future::pending::<String>()
    });
    let log = Log::default();
    let asked = asks([("1", "quick", 1), ("2", "hang", 2)]);
    let model = ScriptedModel::following([asked, Message::ai("Sorry.")]);
    let agent = Agent::new(model.clone()).tools([log.tool("quick"), hang]).build();
    let agent = agent.expect("an agent").with_checkpointer(MemorySaver::new());
    let thread = agent.thread("1");
    let stopped = thread.invoke(say("Go.")).control(control).await.expect("a run");
    assert!(matches!(stopped, Outcome::Drained(_)), "{stopped:?}");
    let state = thread.invoke(say("Stop that.")).await.expect("a run").done().expect("an end");
    let asked = &model.requests()[1].messages;
    let roles: Vec<_> = asked.iter().map(|message| message.role.as_str()).collect();
    assert_eq!(roles, ["human", "ai", "tool", "tool", "human"]);
    let results = [asked[2].status, asked[3].status];
    assert!(results.contains(&ToolStatus::Error), "the cancelled call has a result: {results:?}");
    assert_eq!(said(&state).len(), 6, "and the state has it, too: {:?}", said(&state));
}

#[tokio::test]
async fn a_question_that_nobody_answered() {
    let log = Log::default();
    let model = ScriptedModel::following([asks([("1", "write", 1)]), Message::ai("As you like.")]);
    let agent = Agent::new(model).tools([log.tool("write")]).approve("*").build();
    let agent = agent.expect("an agent").with_checkpointer(MemorySaver::new());
    let thread = agent.thread("1");
    thread.invoke(say("Go.")).await.expect("a run").interrupted().expect("a question");
    let state = thread.invoke(say("Never mind.")).await.expect("a run").done().expect("an end");
    assert_eq!(
        said(&state),
        [
            "human: Go.",
            "ai: ",
            "tool: Tool call `write` with id 1 was cancelled before it had a result.",
            "human: Never mind.",
            "ai: As you like.",
        ]
    );
    assert!(log.taken().is_empty());
}

#[tokio::test]
async fn arguments_that_are_not_json_are_answered() {
    let mut asked = Message::ai("");
    let mut call = InvalidToolCall::default();
    (call.id, call.name, call.args) =
        (Some("1".into()), Some("write".into()), Some("{\"at\": ".into()));
    asked.invalid_tool_calls = vec![call];
    let log = Log::default();
    let model = ScriptedModel::following([asked, asks([("2", "write", 1)]), Message::ai("There.")]);
    let agent = Agent::new(model).tools([log.tool("write")]).build().expect("an agent");
    let state = agent.invoke(say("Go.")).await.expect("a run").done().expect("an end");
    assert!(said(&state)[2].starts_with("tool: Error: the call of `write`"), "{:?}", said(&state));
    assert_eq!(log.taken(), ["write 1"]);
    assert_eq!(state.reply(), "There.");
}
