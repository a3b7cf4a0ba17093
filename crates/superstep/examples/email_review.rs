//! A person reviews a draft before it is sent: approves it, edits it, or rejects it.
//!
//! The answer is an enum: what does not fit it is refused to the caller that gave it, and the
//! question stays open. The review decides where the graph goes: to `send`, or by a rejection to
//! the end.

use serde::{Deserialize, Serialize};
use superstep::CompiledGraph;
use superstep::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Email {
    to: String,
    text: String,
    sent: bool,
}

#[derive(Serialize)]
struct Review<'a> {
    to: &'a str,
    text: &'a str,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Approve,
    Edit(String),
    Reject,
}

async fn draft(email: Arc<Email>) -> EmailUpdate {
    Email::update().text(format!("Dear {}, your order is late.", email.to))
}

async fn review(email: Arc<Email>, task: Task) -> Command<Email> {
    match task.interrupt(Review { to: &email.to, text: &email.text }).await {
        Verdict::Approve => Command::new().goto("send"),
        Verdict::Edit(text) => Command::update(Email::update().text(text)).goto("send"),
        Verdict::Reject => Command::new().goto(END),
    }
}

async fn send() -> EmailUpdate {
    Email::update().sent(true)
}

fn app() -> Result<CompiledGraph<Email>, CompileError> {
    let graph = StateGraph::new()
        .add_node("draft", draft)
        .add_node("review", review)
        .destinations(["send", END])
        .add_node("send", send)
        .add_edge(START, "draft")
        .add_edge("draft", "review")
        .compile()?;
    Ok(graph.with_checkpointer(MemorySaver::new()))
}

async fn reviewed(verdict: Verdict) -> Result<Email, Box<dyn std::error::Error>> {
    let thread = app()?.thread("email-1");
    let asked = thread.invoke(Email::update().to("Ada")).await?;
    println!("{}", asked.interrupted().ok_or("nobody was asked")?[0].value);
    Ok(thread.resume(verdict).await?.done().ok_or("one answer was not enough")?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for verdict in [Verdict::Approve, Verdict::Edit("Sorry, Ada!".into()), Verdict::Reject] {
        println!("{:?}", reviewed(verdict).await?);
    }
    Ok(())
}

#[cfg(test)]
#[path = "../tests/examples/email_review.rs"]
mod tests;
