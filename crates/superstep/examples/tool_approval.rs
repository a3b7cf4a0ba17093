//! An agent inside a graph asks before it runs a tool.
//!
//! The question of the inner node surfaces at the root. The answer goes to the very task that asked: what had finished,
//! outside and inside, does not run again.

use std::sync::Mutex;

use superstep::CompiledGraph;
use superstep::prelude::*;

/// What ran, in order.
type Log = Arc<Mutex<Vec<&'static str>>>;

fn note(log: &Log, name: &'static str) {
    log.lock().expect("nobody panics").push(name);
}

#[derive(State, Clone, Debug, Default)]
struct Agent {
    command: String,
    output: String,
}

async fn choose(Ctx(log): Ctx<Log>) -> AgentUpdate {
    note(&log, "choose");
    Agent::update().command("rm notes.txt")
}

async fn run_tool(agent: Arc<Agent>, Ctx(log): Ctx<Log>, task: Task) -> AgentUpdate {
    note(&log, "run_tool");
    let allowed: bool = task.interrupt(format!("Run `{}`?", agent.command)).await;
    Agent::update().output(if allowed { "notes.txt is gone" } else { "not allowed" })
}

#[derive(State, Clone, Debug, Default)]
struct Desk {
    report: String,
}

async fn greet(Ctx(log): Ctx<Log>) {
    note(&log, "greet");
}

fn app(log: Log) -> Result<CompiledGraph<Desk>, CompileError> {
    let agent = StateGraph::<Agent>::new()
        .add_node("choose", choose)
        .add_node("run_tool", run_tool)
        .add_edge(START, "choose")
        .add_edge("choose", "run_tool")
        .compile()?;
    let enter = |_: &Desk| Agent::update();
    let desk = StateGraph::new()
        .add_node("greet", greet)
        .add_node("agent", agent.as_node(enter, |agent| Desk::update().report(agent.output)))
        .add_edge(START, "greet")
        .add_edge("greet", "agent")
        .compile()?;
    Ok(desk.with_context(log).with_checkpointer(MemorySaver::new()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let log = Log::default();
    let thread = app(log.clone())?.thread("desk-1");
    let asked = thread.invoke(Desk::update()).await?.interrupted().ok_or("nobody was asked")?;
    println!("{}", asked[0].value);
    let desk = thread.resume(true).await?.done().ok_or("one answer was not enough")?;
    println!("{}", desk.report);
    println!("{}", log.lock().expect("nobody panics").join(", "));
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/tool_approval.rs"]
mod tests;
