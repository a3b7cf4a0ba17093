//! A plain function that is durable: told to stop by SIGTERM, it continues with the next start.
//!
//! ```sh
//! cargo run -p superstep-examples --bin import -- import.db
//! ```

use std::time::Duration;

use superstep::prelude::*;
use superstep::{RunControl, shutdown};
use superstep_sqlite::SqliteSaver;

/// How slow the service is. It is not input: the next process may have a faster one.
#[derive(Clone, Copy)]
struct Latency(Duration);

/// Runs once for each chunk, and is recorded.
#[task]
async fn load(chunk: u64, task: Task) -> Result<u64, NodeError> {
    println!("loading chunk {chunk}");
    let Latency(latency) = task.context().ok_or("this workflow needs a `Latency`")?;
    tokio::time::sleep(latency).await;
    println!("loaded chunk {chunk}");
    Ok(chunk * 100)
}

#[entrypoint]
async fn import(chunks: u64, task: Task) -> Result<u64, NodeError> {
    let mut rows = 0;
    for chunk in 1..=chunks {
        rows += load(&task, chunk).await?;
    }
    Ok(rows)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap_or_else(|| "import.db".to_owned());
    let latency = args.next().map_or(Ok(1_000), |millis| millis.parse())?;
    let thread = import()
        .compile()
        .with_checkpointer(SqliteSaver::open(file).await?)
        .with_context(Latency(Duration::from_millis(latency)))
        .thread("import-1");

    let control = RunControl::new();
    shutdown::on_sigterm(control.clone(), Duration::from_secs(25))?;
    let is_new = thread.get_state().await?.is_new();
    let run = if is_new { thread.start(5) } else { thread.invoke(()) };
    match run.control(control).await? {
        Outcome::Done(rows) => println!("{rows} rows"),
        Outcome::Drained(reason) => println!("stopped by {reason}; the next start continues"),
        _ => println!("nothing is asked here"),
    }
    Ok(())
}
