//! Shows that an agent is a tool of another one, whose questions surface and go on in place, with nothing run twice; and that agents hand over to
//! each other with the conversation whole.

use superstep::prelude::*;
use superstep_agent::team::{AgentTool, hand_off};
use superstep_agent::testing::ScriptedModel;
use superstep_agent::{Agent, AgentState, AgentUpdate, Decision, say};

use crate::common::{Log, asks, said};

fn ask(id: &str, name: &str, request: &str) -> superstep::state::ToolCall {
    superstep::state::ToolCall::new(id, name, [("request", request)])
}

#[tokio::test]
async fn questions_of_inner_agents_surface_and_go_on_in_place() {
    let log = Log::default();
    let clerk = |name: &str| {
        let script = [asks([("1", "look", 1)]), asks([("2", "delete", 2)]), Message::ai(name)];
        let tools = [log.tool("look"), log.tool("delete")];
        let agent = Agent::new(ScriptedModel::following(script)).tools(tools).approve("delete");
        agent.build().expect("an agent").as_tool(name, "Does a task.")
    };
    let asked = Message::ai("").with_tool_calls([ask("a", "ann", "x"), ask("b", "bob", "y")]);
    let boss = ScriptedModel::following([asked, Message::ai("All done.")]);
    let boss = Agent::new(boss).tools([clerk("ann"), clerk("bob")]).build().expect("an agent");
    let thread = boss.with_checkpointer(MemorySaver::new()).thread("1");
    let asked = thread.invoke(say("Go.")).await.expect("a run").interrupted().expect("two");
    assert_eq!((asked.len(), log.taken()), (2, vec!["look 1".to_owned(), "look 1".to_owned()]));
    let (ann, bob) = (asked[0].id.clone(), asked[1].id.clone());
    let left = thread.resume_all([(bob, Decision::Approve)]).await.expect("a run").interrupted();
    assert_eq!(left.expect("a question").len(), 1);
    assert_eq!(log.taken(), ["delete 2"], "bob's call, and nothing twice");
    let state = thread.resume_all([(ann, Decision::reject("no"))]).await.expect("a run");
    assert_eq!(
        said(&state.done().expect("an end")),
        ["human: Go.", "ai: ", "tool: ann", "tool: bob", "ai: All done."]
    );
    assert!(log.taken().is_empty());
}

#[derive(State, Clone, Debug, Default)]
struct Office {
    #[channel(reduce = Messages)]
    messages: Vec<Message>,
    active: String,
}

fn agent(to: &str, script: [Message; 1]) -> superstep::CompiledGraph<AgentState> {
    let name: Arc<str> = to.into();
    let update =
        move |messages: Vec<Message>| Office::update().messages(messages).active(name.to_string());
    let [first] = script;
    let model = ScriptedModel::answering(move |_| first.clone());
    Agent::new(model).tools([hand_off::<(), Office>(to, update)]).build().expect("an agent")
}

#[tokio::test]
async fn agents_hand_over_with_the_whole_conversation() {
    let call =
        |id: &str, name: &str| superstep::state::ToolCall::new::<String, Value>(id, name, []);
    let twice = [call("1", "transfer_to_sales"), call("2", "transfer_to_sales")];
    let front = agent("sales", [Message::ai("").with_tool_calls(twice)]);
    let sales = agent("front", [Message::ai("It costs 5.")]);
    let enter = |office: &Office| AgentUpdate::<()>::default().messages(office.messages.clone());
    let leave = |state: AgentState| Office::update().messages(state.messages);
    let office = StateGraph::<Office>::new()
        .add_node("front", front.as_node(enter, leave))
        .destinations(["sales"])
        .add_node("sales", sales.as_node(enter, leave))
        .destinations(["front"])
        .add_edge(START, "front")
        .compile()
        .expect("a graph");
    let input = Office::update().messages([Message::human("What does it cost?")]);
    let state = office.invoke(input).await.expect("a run").done().expect("an end");
    assert_eq!(state.active, "sales");
    let lines: Vec<_> = state.messages.iter().map(|it| it.text().into_owned()).collect();
    assert_eq!(
        lines,
        [
            "What does it cost?",
            "",
            "Successfully transferred to sales",
            "Dropped: the conversation was transferred to sales.",
            "It costs 5.",
        ]
    );
}
