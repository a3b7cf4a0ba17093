//! Shows that the tokens of the agent's model are streamed with the id of the message they become, tool progress beside them, and that calls come
//! out of their pieces.

use superstep::prelude::*;
use superstep::{Data, Mode};
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, say, tool, tools};

use crate::common::asks;

/// Says how far it is.
#[tool]
async fn work(at: i64, task: Task) -> String {
    task.emit(format!("half of {at}"));
    "worked".to_owned()
}

#[tokio::test]
async fn tokens_progress_and_the_message_belong_together() {
    let script = [asks([("1", "work", 1)]), Message::ai("It is all done now.")];
    let agent = Agent::new(ScriptedModel::following(script).streaming()).tools(tools![work]);
    let agent = agent.build().expect("an agent").with_checkpointer(MemorySaver::new());
    let thread = agent.thread("1");
    let mut run = thread.invoke(say("Work.")).stream([Mode::Messages, Mode::Custom]);
    let (mut tokens, mut progress, mut ids) = (String::new(), Vec::new(), Vec::new());
    while let Some(event) = run.next().await {
        match event.expect("an event").data {
            Data::Messages(event) => {
                let message: Message = superstep::checkpoint::from_value(event.chunk).expect("one");
                if message.is_chunk() && message.tool_calls.is_empty() {
                    tokens.push_str(&message.text());
                    ids.push(message.id.expect("an id"));
                }
            }
            Data::Custom(value) => progress.push(value.to_string()),
            _ => {}
        }
    }
    assert!(tokens.ends_with("It is all done now."), "{tokens}");
    assert_eq!(progress, [r#""half of 1""#]);
    let state = thread.get_state().await.expect("a state");
    let last = state.state().messages.last().cloned().expect("a message");
    assert_eq!(last.id.as_ref(), ids.last());
    assert_eq!(state.state().messages[1].tool_calls[0].args["at"], 1.into());
}
