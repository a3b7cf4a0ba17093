//! An agent in a loop: a model thinks and asks for tools, the tools run side by side, the model looks at what they say.
//!
//! Tools that change something ask a person first. The model is a script behind a small trait; a client of a real one
//! implements the same trait.

use std::future::{Future, ready};

use superstep::CompiledGraph;
use superstep::prelude::*;
use superstep::state::ToolCall;

/// What the agent needs of a model.
trait Model: Clone + Send + Sync + 'static {
    fn next(&self, messages: &[Message])
    -> impl Future<Output = Result<Message, NodeError>> + Send;
}

#[derive(State, Clone, Debug, Default)]
struct Agent {
    #[channel(reduce = Messages)]
    messages: Vec<Message>,
}

async fn think<M: Model>(agent: Arc<Agent>, Ctx(model): Ctx<M>) -> Result<AgentUpdate, NodeError> {
    Ok(Agent::update().messages([model.next(&agent.messages).await?]))
}

/// Each tool the model asked for becomes a task of its own; without any the agent is done.
fn tools_or_end(agent: &Agent) -> Vec<Dispatch> {
    let calls = agent.messages.last().map_or(&[][..], |message| &message.tool_calls);
    calls.iter().map(|call| Dispatch::new("tool", call.clone())).collect()
}

async fn tool(Arg(call): Arg<ToolCall>, task: Task) -> Result<AgentUpdate, NodeError> {
    let allowed = call.name != "delete" || task.interrupt(&call).await;
    let said = match call.name.as_str() {
        _ if !allowed => "not allowed".to_owned(),
        "list" => "old.txt, new.txt".to_owned(),
        "delete" => format!("{} is gone", call.args["file"]),
        unknown => format!("there is no tool `{unknown}`"),
    };
    Ok(Agent::update().messages([Message::tool(call.id.unwrap_or_default(), said)]))
}

fn app<M: Model>(model: M) -> Result<CompiledGraph<Agent>, CompileError> {
    let graph = StateGraph::new()
        .add_node("think", think::<M>)
        .add_node("tool", tool)
        .add_edge(START, "think")
        .add_conditional_edges("think", ["tool"], tools_or_end)
        .add_edge("tool", "think")
        .compile()?;
    Ok(graph.with_context(model).with_checkpointer(MemorySaver::new()))
}

/// Looks at the files, asks to delete two of them, and says what came of it.
#[derive(Clone)]
struct Scripted;

fn calls<const N: usize>(calls: [(&str, &str); N]) -> Message {
    let made =
        calls.map(|(name, file)| ToolCall::new(format!("{name} {file}"), name, [("file", file)]));
    Message::ai("").with_tool_calls(made)
}

impl Model for Scripted {
    fn next(
        &self,
        messages: &[Message],
    ) -> impl Future<Output = Result<Message, NodeError>> + Send {
        let thoughts = messages.iter().filter(|message| message.role == "ai").count();
        let answers = messages.iter().filter(|message| message.role == "tool");
        let heard: Vec<_> = answers.filter_map(|message| message.content.as_str()).collect();
        ready(Ok(match thoughts {
            0 => calls([("list", "/")]),
            1 => calls([("delete", "old.txt"), ("delete", "new.txt")]),
            _ => Message::ai(heard.join("; ")),
        }))
    }
}

/// Lets the agent tidy up; of the files it wants to delete, only `allowed` may go.
async fn tidy_up(allowed: &str) -> Result<String, Box<dyn std::error::Error>> {
    let thread = app(Scripted)?.thread("agent-1");
    let task = Agent::update().messages([Message::human("Tidy up.")]);
    let asked = thread.invoke(task).await?.interrupted().ok_or("nobody was asked")?;
    let answers = asked.iter().map(|question| {
        println!("may it run {}?", question.value);
        (
            question.id.clone(),
            question.value.get("args").and_then(|args| args.get("file")) == Some(&allowed.into()),
        )
    });
    let agent = thread.resume_all(answers).await?.done().ok_or("something is still asked")?;
    Ok(agent.messages.last().map(|message| message.content.to_string()).unwrap_or_default())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", tidy_up("old.txt").await?);
    Ok(())
}

#[cfg(test)]
#[tokio::test]
async fn only_what_was_allowed_is_deleted() {
    let said = tidy_up("old.txt").await.expect("an answer");
    assert_eq!(said, r#""old.txt, new.txt; \"old.txt\" is gone; not allowed""#);
}
