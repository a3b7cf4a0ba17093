//! The first program of the README: two nodes, one state, nothing stored.
//!
//! ```sh
//! cargo run -p superstep-examples --bin essay
//! ```

use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    topic: String, // keeps the last value
    #[channel(reduce = Append)]
    notes: Vec<String>, // appends every write, in task order
    draft: Option<String>,
}

async fn research(essay: Arc<Essay>) -> EssayUpdate {
    Essay::update().notes([format!("{} runs in supersteps", essay.topic)])
}

async fn write(essay: Arc<Essay>) -> Result<EssayUpdate, NodeError> {
    let note = essay.notes.first().ok_or("nothing to write about")?;
    Ok(Essay::update().draft(format!("Did you know? {note}.")))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = StateGraph::<Essay>::new()
        .add_node("research", research)
        .add_node("write", write)
        .add_edge(START, "research")
        .add_edge("research", "write")
        .compile()?;
    if let Outcome::Done(essay) = app.invoke(Essay::update().topic("Pregel")).await? {
        println!("{}", essay.draft.unwrap_or_default());
    }
    Ok(())
}
