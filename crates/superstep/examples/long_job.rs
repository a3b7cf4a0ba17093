//! A long job that is told to stop, and continues with the next start.
//!
//! It reads a book, one page in each superstep. Stop it with ctrl-c or `kill` whenever you like:
//! the page it is at is read to completion, unless that takes longer than the grace, and the next
//! start continues after the last page that was read.
//!
//! ```sh
//! cargo run -p superstep --example long_job -- book.db
//! ```
//!
//! More arguments say how many pages there are, how long one takes, and how long the grace is, in milliseconds.

use std::time::Duration;

use superstep::prelude::*;
use superstep::{RunControl, shutdown};
use superstep_sqlite::SqliteSaver;

#[derive(State, Clone, Default)]
struct Book {
    pages: u64,
    read: u64,
}

/// How long a page takes. It is no state: the next process may be faster.
#[derive(Clone, Copy)]
struct Pace(Duration);

async fn read(book: Arc<Book>, Ctx(pace): Ctx<Pace>) -> BookUpdate {
    let page = book.read + 1;
    println!("page {page} of {}", book.pages);
    tokio::time::sleep(pace.0).await;
    println!("page {page} is read");
    Book::update().read(page)
}

fn is_there_more(book: &Book) -> &'static str {
    if book.read < book.pages { "read" } else { END }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap_or_else(|| "book.db".to_owned());
    let mut numbers = args.map(|arg| arg.parse::<u64>());
    let pages = numbers.next().unwrap_or(Ok(100))?;
    let pace = Pace(Duration::from_millis(numbers.next().unwrap_or(Ok(1_000))?));
    let grace = Duration::from_millis(numbers.next().unwrap_or(Ok(25_000))?);

    let thread = StateGraph::<Book>::new()
        .add_node("read", read)
        .add_edge(START, "read")
        .add_conditional_edges("read", ["read", END], is_there_more)
        .compile()?
        .with_context(pace)
        .with_checkpointer(SqliteSaver::open(file).await?)
        .thread("the job");

    let control = RunControl::new();
    shutdown::on_sigterm(control.clone(), grace)?;
    let is_new = thread.get_state().await?.is_new();
    let run = if is_new { thread.invoke(Book::update().pages(pages)) } else { thread.invoke(()) };
    match run.control(control).await? {
        Outcome::Drained(reason) => println!("stopped by {reason}; continues at the next start"),
        _ => println!("the end"),
    }
    Ok(())
}
