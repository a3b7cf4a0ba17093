//! A workflow that is a plain function: `if`, `for` and `?` instead of nodes and edges.
//!
//! What must not happen twice stands in a `#[task]`. When the workflow continues after a question
//! or a crash, it runs again from its first line, and tasks that have finished return what they
//! returned before.

use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use superstep::prelude::*;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Order {
    items: Vec<String>,
}

/// What the bank was asked for: a key for each request, and how much.
static BANK: Mutex<Vec<(String, u64)>> = Mutex::new(Vec::new());

#[task]
async fn price(item: String) -> Result<u64, NodeError> {
    Ok(item.len() as u64 * 100)
}

#[task]
async fn charge(cents: u64, task: Task) -> Result<String, NodeError> {
    // The same each time this very charge is tried, so that a bank that knows it does not charge again.
    let key = task.idempotency_key();
    BANK.lock().expect("nobody panics").push((key, cents));
    Ok(format!("{cents} cents"))
}

#[entrypoint]
async fn order(order: Order, task: Task) -> Result<String, NodeError> {
    // All prices are asked for at once.
    let prices: Vec<_> = order.items.into_iter().map(|item| price(&task, item).spawn()).collect();
    let mut sum = 0;
    for price in prices {
        sum += price.await?;
    }
    let receipt = charge(&task, sum).retry(3).await?;
    let ship: bool = task.interrupt(format!("{receipt} are paid. Ship it?")).await;
    Ok(if ship { "shipped".to_owned() } else { "kept in store".to_owned() })
}

/// Orders, answers, and returns what was asked and what came of it.
async fn placed(ship: bool) -> Result<(Value, String), Box<dyn std::error::Error>> {
    let thread = order().compile().with_checkpointer(MemorySaver::new()).thread("order-1");
    let items = ["tea", "cake"].map(str::to_owned).to_vec();
    let asked = thread.start(Order { items }).await?.interrupted().ok_or("nobody was asked")?;
    let said = thread.resume(ship).await?.done().ok_or("one answer was not enough")?;
    Ok((asked[0].value.clone(), said))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (asked, said) = placed(true).await?;
    println!("{asked}\n{said}\n{:?}", BANK.lock().expect("nobody panics"));
    Ok(())
}

#[cfg(test)]
#[tokio::test]
async fn the_money_is_taken_once() {
    let (asked, said) = placed(false).await.expect("a run");
    assert_eq!(asked, "700 cents are paid. Ship it?".into());
    assert_eq!(said, "kept in store");
    let charged: Vec<_> = BANK.lock().expect("nobody panics").iter().map(|(_, sum)| *sum).collect();
    assert_eq!(charged, [700], "the workflow ran twice");
}
