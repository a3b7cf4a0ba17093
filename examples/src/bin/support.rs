//! A support agent that asks before it refunds, and survives `kill -9` at any moment.
//!
//! ```sh
//! cargo run -p superstep-examples --bin support -- desk
//! ```
//!
//! Kill it while it looks up the order, or while it waits for you. The next start continues the thread. `desk/refunds.txt`,
//! which stands for the bank, has one line at the end, however often you killed it.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use superstep::prelude::*;
use superstep_sqlite::SqliteSaver;

#[derive(State, Clone, Default)]
struct Ticket {
    mail: String,
    order: Option<String>,
    cents: u64,
    reply: String,
}

/// What the agent works with. It is not state: the next process may have another desk.
#[derive(Clone)]
struct Desk {
    dir: PathBuf,
    latency: Duration,
}

async fn read(ticket: Arc<Ticket>) -> Result<TicketUpdate, NodeError> {
    println!("reading the mail");
    let mut words = ticket.mail.split_whitespace();
    let order = words.find_map(|word| word.strip_prefix('#')).ok_or("the mail names no order")?;
    Ok(Ticket::update().order(order.to_owned()))
}

async fn look_up(ticket: Arc<Ticket>, Ctx(desk): Ctx<Desk>) -> TicketUpdate {
    println!("looking up order {}", ticket.order.as_deref().unwrap_or("?"));
    tokio::time::sleep(desk.latency).await; // a slow service
    Ticket::update().cents(4200)
}

async fn settle(
    ticket: Arc<Ticket>,
    Ctx(desk): Ctx<Desk>,
    task: Task,
) -> Result<TicketUpdate, NodeError> {
    let cents = ticket.cents;
    if !task.interrupt(format!("refund {cents} cents?")).await {
        return Ok(Ticket::update().reply("Sorry, no refund."));
    }
    task.call_with("refund", |call| refund(desk.clone(), call.idempotency_key(), cents))
        .args(cents)
        .await?;
    Ok(Ticket::update().reply(format!("You get {cents} cents back.")))
}

/// Like a bank, this carries out a request with a key that it has seen no second time.
async fn refund(desk: Desk, key: String, cents: u64) -> io::Result<()> {
    let file = desk.dir.join("refunds.txt");
    let done = fs::read_to_string(&file).unwrap_or_default();
    if !done.contains(&key) {
        fs::write(file, format!("{done}{key} {cents}\n"))?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "desk".to_owned()));
    let latency = std::env::args().nth(2).map_or(Ok(5_000), |millis| millis.parse())?;
    fs::create_dir_all(&dir)?;

    let thread = StateGraph::<Ticket>::new()
        .add_node("read", read)
        .add_node("look_up", look_up)
        .add_node("settle", settle)
        .add_edge(START, "read")
        .add_edge("read", "look_up")
        .add_edge("look_up", "settle")
        .compile()?
        .with_checkpointer(SqliteSaver::open(dir.join("threads.db")).await?)
        .with_context(Desk { dir, latency: Duration::from_millis(latency) })
        .thread("ticket-1");

    let mut outcome = match thread.get_state().await?.is_new() {
        true => thread.invoke(Ticket::update().mail("Order #1001 arrived broken")).await?,
        false => thread.invoke(()).await?,
    };
    while let Outcome::Interrupted(asked) = outcome {
        println!("{} [yes/no]", asked[0].value.as_str().unwrap_or_default());
        io::stdout().flush()?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        outcome = thread.resume(answer.trim() == "yes").await?;
    }
    if let Outcome::Done(ticket) = outcome {
        println!("{}", ticket.reply);
    }
    Ok(())
}
