//! The graph of the demo: an e-mail is read, looked into by two nodes at a time, answered, reviewed by a person, and sent.
//!
//! ```text
//! start ──► read ──┬──► orders ───┬──► draft ──► review ··► send
//!                  └──► handbook ─┘                 └·····► end
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use superstep::CompiledGraph;
use superstep::prelude::*;

use super::office::Office;

/// How many pages the handbook has.
pub const PAGES: usize = 12;

/// An e-mail and its answer.
#[derive(State, Clone, Debug, Default)]
pub struct Mail {
    /// The writer.
    pub from: String,
    /// What they wrote.
    pub text: String,
    /// What it is about.
    pub topic: Option<String>,
    /// The findings; both research nodes add to them in one superstep.
    #[channel(reduce = Append)]
    pub facts: Vec<String>,
    /// The answer, until it is sent.
    pub draft: Option<String>,
    /// What the outgoing server said, once it is.
    pub receipt: Option<String>,
}

/// What the reviewer is shown.
#[derive(Serialize)]
struct Review<'a> {
    to: &'a str,
    draft: &'a str,
}

/// What the reviewer may say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Send it as it is.
    Approve,
    /// Send this instead.
    Edit(String),
    /// Do not send anything.
    Reject,
}

/// The time for one page of the handbook. It is not state: the next process may be faster.
#[derive(Clone, Copy, Debug)]
pub struct Pace(pub Duration);

/// Finds out what the mail is about. The model is asked in a recorded call: once there is an answer, it is kept.
async fn read(
    mail: Arc<Mail>,
    Ctx(office): Ctx<Office>,
    task: Task,
) -> Result<MailUpdate, NodeError> {
    office.note("read")?;
    let topic: String = task
        .call("classify", || async {
            office.note("classify (recorded call)")?;
            let late = mail.text.contains("late") || mail.text.contains("where");
            Ok::<_, NodeError>(if late { "a late order" } else { "something else" }.to_owned())
        })
        .await?;
    Ok(Mail::update().topic(topic))
}

/// Looks the order up: quick, and finished long before the handbook is read.
async fn orders(Ctx(office): Ctx<Office>, task: Task) -> Result<MailUpdate, NodeError> {
    office.note("orders")?;
    task.emit(json!({ "node": "orders", "says": "order 1042 left the warehouse on Monday" }));
    Ok(Mail::update().facts(["Order 1042 left our warehouse on Monday.".to_owned()]))
}

/// Reads the handbook page by page: slow, and the moment to end the process.
async fn handbook(
    Ctx(office): Ctx<Office>,
    Ctx(pace): Ctx<Pace>,
    task: Task,
) -> Result<MailUpdate, NodeError> {
    office.note("handbook")?;
    let title: String = task
        .call("download", || async {
            office.note("download (recorded call)")?;
            Ok::<_, NodeError>("the handbook of deliveries".to_owned())
        })
        .await?;
    for page in 1..=PAGES {
        tokio::time::sleep(pace.0).await;
        let says = format!("page {page} of {PAGES} of {title}");
        task.emit(json!({ "node": "handbook", "says": says, "page": page }));
    }
    Ok(Mail::update().facts(["After five days we send a new parcel at our cost.".to_owned()]))
}

async fn draft(mail: Arc<Mail>, Ctx(office): Ctx<Office>) -> Result<MailUpdate, NodeError> {
    office.note("draft")?;
    let name = mail.from.split('@').next().unwrap_or("you");
    let facts = mail.facts.join(" ");
    Ok(Mail::update().draft(format!("Dear {name}, thank you for your mail. {facts}")))
}

/// Asks a person, for as long as it takes, and goes where the answer says.
async fn review(mail: Arc<Mail>, task: Task) -> Result<Command<Mail>, NodeError> {
    let draft = mail.draft.as_deref().ok_or("there is nothing to review")?;
    let verdict = task.interrupt(Review { to: &mail.from, draft }).schema(json!({
        "anyOf": [
            { "enum": ["approve", "reject"] },
            { "type": "object", "required": ["edit"], "properties": { "edit": { "type": "string" } } },
        ]
    }));
    Ok(match verdict.await {
        Verdict::Approve => Command::new().goto("send"),
        Verdict::Edit(text) => Command::update(Mail::update().draft(text)).goto("send"),
        Verdict::Reject => Command::new().goto(END),
    })
}

/// Sends the mail. The server gets a key that is the same each time, so that it sends one mail even if the call is repeated.
async fn send(
    mail: Arc<Mail>,
    Ctx(office): Ctx<Office>,
    task: Task,
) -> Result<MailUpdate, NodeError> {
    office.note("send")?;
    let draft = mail.draft.as_deref().ok_or("there is nothing to send")?;
    let key = task.idempotency_key();
    let receipt: String = task
        .call("deliver", || async {
            office.note("deliver (recorded call)")?;
            office.deliver(&key, &mail.from, draft)
        })
        .await?;
    Ok(Mail::update().receipt(receipt))
}

/// The graph, without checkpointer and context.
///
/// # Errors
/// None: the graph is as it should be.
pub fn graph() -> Result<CompiledGraph<Mail>, CompileError> {
    StateGraph::new()
        .add_node("read", read)
        .add_node("orders", orders)
        .add_node("handbook", handbook)
        .add_node("draft", draft)
        .add_node("review", review)
        .destinations(["send", END])
        .add_node("send", send)
        .add_edge(START, "read")
        .add_edge("read", "orders")
        .add_edge("read", "handbook")
        .add_edge(["orders", "handbook"], "draft")
        .add_edge("draft", "review")
        .compile()
}
