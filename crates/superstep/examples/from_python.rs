//! A thread that LangGraph started in Python is finished in Rust.
//!
//! `from_python.py` beside this file runs the same graph until it asks whether the letter may be sent. Both engines keep
//! threads in the same tables and formats, so this program opens the file as it is, and answers.
//!
//! ```sh
//! python3 crates/superstep/examples/from_python.py letters.db
//! cargo run -p superstep --example from_python -- letters.db
//! ```

use std::path::Path;

use superstep::CompiledGraph;
use superstep::prelude::*;
use superstep_sqlite::SqliteSaver;

/// The fields have the names and reducers of the state in Python.
#[derive(State, Clone, Debug, Default)]
struct Letter {
    to: String,
    #[channel(reduce = Append)]
    log: Vec<String>,
    sent: bool,
}

async fn draft() -> LetterUpdate {
    Letter::update().log(["drafted in Rust".to_owned()])
}

async fn send(letter: Arc<Letter>, task: Task) -> LetterUpdate {
    let sent: bool = task.interrupt(format!("Send it to {}?", letter.to)).await;
    Letter::update().sent(sent).log(["answered in Rust".to_owned()])
}

fn app() -> Result<CompiledGraph<Letter>, CompileError> {
    StateGraph::new()
        .add_node("draft", draft)
        .add_node("send", send)
        .add_edge(START, "draft")
        .add_edge("draft", "send")
        .compile()
}

async fn finish(file: &Path, answer: bool) -> Result<Letter, Box<dyn std::error::Error>> {
    let checkpointer = SqliteSaver::open_existing(file).await?;
    let thread = app()?.with_checkpointer(checkpointer).thread("letter-1");
    for question in &thread.get_state().await?.interrupts {
        println!("Python asked: {}", question.value);
    }
    Ok(thread.resume(answer).await?.done().ok_or("one answer was not enough")?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("name the file that Python wrote")?;
    println!("{:?}", finish(file.as_ref(), true).await?);
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/from_python.rs"]
mod tests;
