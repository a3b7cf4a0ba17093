//! A person has three days to answer. Each day without an answer they are reminded, and then the
//! answer is no.
//!
//! A reminder is a loop over a deadline: each question has a day, and its default says that the day
//! is over. The run ends while it waits, for a day or for a year. A server wakes it; here the
//! program does, with a clock that a test can set.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use superstep::CompiledGraph;
use superstep::prelude::*;

const DAY: Duration = Duration::from_secs(86_400);

#[derive(State, Clone, Debug, Default)]
struct Leave {
    who: String,
    #[channel(reduce = Append)]
    reminded: Vec<u32>,
    granted: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Grant,
    Refuse,
    /// Nobody has answered in time.
    Silence,
}

async fn decide(leave: Arc<Leave>, task: Task) -> Result<LeaveUpdate, NodeError> {
    let mut reminded = Vec::new();
    for day in 1..=3 {
        let question = format!("May {} be away? (day {day} of 3)", leave.who);
        match task.interrupt(question).or_after(DAY, Reply::Silence).await {
            Reply::Grant => return Ok(Leave::update().reminded(reminded).granted(true)),
            Reply::Refuse => return Ok(Leave::update().reminded(reminded)),
            // A recorded call, because the node runs again from its first line after each wait.
            Reply::Silence => reminded.push(task.call("remind", || remind(day)).await?),
        }
    }
    Ok(Leave::update().reminded(reminded))
}

/// Sends an email, in a program that has more to it.
async fn remind(day: u32) -> Result<u32, NodeError> {
    println!("day {day} is over without an answer");
    Ok(day)
}

fn app() -> Result<CompiledGraph<Leave>, CompileError> {
    let graph = StateGraph::new().add_node("decide", decide).add_edge(START, "decide").compile()?;
    Ok(graph.with_checkpointer(MemorySaver::new()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = app()?;
    let outcome = app.thread("leave-1").invoke(Leave::update().who("Ada")).await?;
    let asked = outcome.interrupted().ok_or("nothing was asked")?;
    println!("{}, before {:?}", asked[0].value, asked.due());

    // What a program without a server does from time to time.
    let due = app.run_due().await?;
    println!("{} threads were due; the next one is at {:?}", due.len(), due.next);
    Ok(())
}

#[cfg(all(test, feature = "testing"))]
#[path = "../tests/examples/reminder.rs"]
mod tests;
