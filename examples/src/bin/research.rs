//! Researches 200 items at once and keeps the 199 that succeed.
//!
//! ```sh
//! cargo run -p superstep-examples --bin research
//! ```

use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Research {
    items: Vec<u32>,
    #[channel(reduce = Append)]
    found: Vec<String>,
    #[channel(reduce = Append)]
    failed: Vec<String>,
    report: String,
}

/// One task per item.
fn each_item(research: &Research) -> Vec<Dispatch> {
    research.items.iter().map(|item| Dispatch::new("search", *item)).collect()
}

async fn search(Arg(item): Arg<u32>, task: Task) -> Result<ResearchUpdate, NodeError> {
    match item {
        117 => Err(NodeError::permanent("no such page")),
        n if n % 50 == 0 && task.attempt() == 1 => Err("connection reset".into()), // tried again
        _ => Ok(Research::update().found([format!("page {item}")])),
    }
}

async fn report(research: Arc<Research>) -> ResearchUpdate {
    let (found, failed) = (research.found.len(), research.failed.join(", "));
    Research::update().report(format!("{found} found; failed: {failed}"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let app = StateGraph::<Research>::new()
        .add_node("search", search)
        .retry(RetryPolicy::attempts(3))
        .collect_failures(|Arg(item): Arg<u32>, failure: Failure| {
            Research::update().failed([format!("{item} ({})", failure.error)])
        })
        .add_node("report", report)
        .add_conditional_edges(START, ["search"], each_item)
        .add_edge("search", "report")
        .compile()?;
    let run =
        app.invoke(Research::update().items((1..=200).collect::<Vec<_>>())).max_concurrency(16);
    if let Outcome::Done(research) = run.await? {
        println!("{}", research.report);
    }
    Ok(())
}
