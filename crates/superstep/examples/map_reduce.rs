//! Map and reduce: one task for each part of the work, all in one superstep, and one that puts the results together.
//!
//! How many parts there are is known only at run time. A router dispatches the node `count` once for each of them, with an
//! argument of its own. `report` runs after the superstep, when all of them have finished.

use std::collections::BTreeMap;

use superstep::CompiledGraph;
use superstep::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Library {
    books: Vec<String>,
    /// Longest words with their lengths. Whichever task finishes first, entries are merged in the order of the books.
    #[channel(reduce = Merge)]
    longest: BTreeMap<String, usize>,
    report: String,
}

fn each_book(library: &Library) -> Vec<Dispatch> {
    library.books.iter().map(|book| Dispatch::new("count", book.clone())).collect()
}

async fn count(Arg(book): Arg<String>) -> Result<LibraryUpdate, NodeError> {
    let longest = book.split_whitespace().max_by_key(|word| word.len()).ok_or("an empty book")?;
    Ok(Library::update().longest([(longest.to_owned(), longest.len())]))
}

async fn report(library: Arc<Library>) -> LibraryUpdate {
    let words = library.longest.iter().map(|(word, length)| format!("{word} ({length})"));
    Library::update().report(words.collect::<Vec<_>>().join(", "))
}

fn app() -> Result<CompiledGraph<Library>, CompileError> {
    StateGraph::new()
        .add_node("count", count)
        .add_node("report", report)
        .add_conditional_edges(START, ["count"], each_book)
        .add_edge("count", "report")
        .compile()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let books = ["call me ishmael", "it was the best of times", "all happy families are alike"];
    let books = books.map(str::to_owned);
    let library = app()?.invoke(Library::update().books(books)).await?.done();
    println!("{}", library.ok_or("nothing stops this graph")?.report);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(books: impl IntoIterator<Item = String>) -> Result<String, RunError> {
        let books = Library::update().books(books.into_iter().collect::<Vec<_>>());
        let library = app().expect("a graph").invoke(books).await?.done();
        Ok(library.expect("the end").report)
    }

    #[tokio::test]
    async fn every_part_is_counted() {
        let books = ["a bee", "a wasp", "an ant"].map(str::to_owned);
        assert_eq!(read(books).await.expect("a report"), "ant (3), bee (3), wasp (4)");
        let many = (0..500).map(|nth| format!("word{nth:03}"));
        assert_eq!(read(many).await.expect("a report").split(", ").count(), 500);
    }

    #[tokio::test]
    async fn one_part_that_fails_fails_the_whole() {
        let failed = read(["a bee".to_owned(), String::new()]).await.expect_err("an empty book");
        assert!(failed.to_string().contains("`count`"), "{failed}");
    }
}
