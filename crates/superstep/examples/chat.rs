//! A conversation that is remembered: stop the program whenever you like, and continue talking with
//! the next start.
//!
//! Each line you type is one run on the same thread. The messages before it are in the state already, so the input is only
//! what is new. The model is a stand-in that looks back through the conversation; put a client of your own in its place.
//!
//! ```sh
//! cargo run -p superstep --example chat -- chat.db
//! ```

use std::io::{BufRead, stdin};

use superstep::CompiledGraph;
use superstep::prelude::*;
use superstep_sqlite::SqliteSaver;

#[derive(State, Clone, Debug, Default)]
struct Chat {
    #[channel(reduce = Messages)]
    messages: Vec<Message>,
}

async fn answer(chat: Arc<Chat>) -> ChatUpdate {
    let said = chat.messages.iter().filter(|message| message.role == "human");
    let said: Vec<_> = said.filter_map(|message| message.content.as_str()).collect();
    let name = said.iter().rev().find_map(|text| text.strip_prefix("I am "));
    let reply = match (said.last(), name) {
        (Some(&"Who am I?"), Some(name)) => format!("You are {name}."),
        (Some(&"Who am I?"), None) => "You did not tell me yet.".to_owned(),
        _ => format!("That was message {}.", said.len()),
    };
    Chat::update().messages([Message::ai(reply)])
}

fn app() -> Result<CompiledGraph<Chat>, CompileError> {
    StateGraph::new().add_node("answer", answer).add_edge(START, "answer").compile()
}

/// One turn of the conversation: what was said in, what is replied out.
async fn say(app: &CompiledGraph<Chat>, text: &str) -> Result<String, RunError> {
    let said = Chat::update().messages([Message::human(text)]);
    let chat = app.thread("me").invoke(said).await?.done();
    let reply = chat.and_then(|mut chat| chat.messages.pop());
    Ok(reply.and_then(|reply| Some(reply.content.as_str()?.to_owned())).unwrap_or_default())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).unwrap_or_else(|| "chat.db".to_owned());
    let app = app()?.with_checkpointer(SqliteSaver::open(file).await?);
    println!("Say `I am ...`, and later `Who am I?`.");
    for line in stdin().lock().lines() {
        println!("{}", say(&app, &line?).await?);
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/chat.rs"]
mod tests;
