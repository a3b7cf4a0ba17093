//! Subgraphs, with every kind of memory.

use superstep::Memory;
use superstep::prelude::*;

use super::{App, Book, Graph, chain, compiled, fan, line, note};
use crate::workload::{Answers, Play, World, workload};

pub(crate) fn all() -> Vec<Box<dyn Play>> {
    vec![
        Box::new(workload("a graph inside", || around(inner(), Memory::PerCall)).turns(2)),
        Box::new(
            workload("a graph inside, with a memory", || around(inner(), Memory::PerThread))
                .turns(3),
        ),
        Box::new(
            workload("a graph inside, not stored", || around(inner(), Memory::Nothing)).turns(2),
        ),
        Box::new(workload("graphs two deep", || deep(Memory::PerCall, Memory::PerCall))),
        Box::new(
            workload("graphs two deep, with memories", || {
                deep(Memory::PerThread, Memory::PerThread)
            })
            .turns(2),
        ),
        Box::new(
            workload("a memory inside a call", || deep(Memory::PerCall, Memory::PerThread))
                .turns(2),
        ),
        Box::new(workload("a question inside", || around(asking(), Memory::PerCall)).turns(2)),
        Box::new(
            workload("a question inside, with a memory", || around(asking(), Memory::PerThread))
                .turns(2),
        ),
        Box::new(
            workload("new input while a graph inside asks", || around(asking(), Memory::PerCall))
                .turns(2)
                .abandons(),
        ),
        Box::new(
            workload("new input while a graph with a memory asks", || {
                around(asking(), Memory::PerThread)
            })
            .turns(2)
            .abandons(),
        ),
        Box::new(workload("a question inside, not stored", || around(asking(), Memory::Nothing))),
        Box::new(workload("a question two deep", deep_question).answers(Answers::Bare)),
        Box::new(workload("a graph inside a loop", || looped(Memory::PerCall))),
        Box::new(workload("a memory inside a loop", || looped(Memory::PerThread))),
        Box::new(workload("a memory beside a question", memory_beside_question).turns(2)),
        Box::new(workload("a question two deep, with memories", deep_memories_ask).turns(2)),
        Box::new(workload("a memory that is tried again", || tried(Memory::PerThread)).turns(2)),
        Box::new(workload("graphs side by side", || beside(inner))),
        Box::new(
            workload("questions of graphs side by side, one by one", || beside(asking))
                .answers(Answers::OneById),
        ),
        Box::new(workload("dispatches to a graph", dispatched)),
        Box::new(workload("a graph called by a node", called).turns(2)),
        Box::new(workload("two graphs called by a node, after a call", called_twice)),
        Box::new(workload("a command for the graph around", parent)),
        Box::new(
            workload("calls inside a graph", || around(calling(), Memory::PerCall)).sequential(),
        ),
        Box::new(workload("a fan-out inside a graph beside a node", fan_inside)),
        Box::new(workload("a graph over the same state", within)),
        Box::new(
            workload("a graph inside that fails", || around(failing(), Memory::PerCall))
                .failures(1),
        ),
        Box::new(workload("a graph inside that is tried again", retried)),
    ]
}

/// Counts its own rounds, so that a memory shows.
fn inner() -> Graph {
    Graph::new()
        .add_node("x", |book: Arc<Book>| line("x").round(book.round + 1))
        .add_node("y", |book: Arc<Book>| line(format!("y {}", book.round)))
        .add_edge(START, "x")
        .add_edge("x", "y")
}

fn asking() -> Graph {
    Graph::new()
        .add_node("x", |book: Arc<Book>| line("x").round(book.round + 1))
        .add_node("ask", |book: Arc<Book>, task: Task| async move {
            let answer: String = task.interrupt(format!("inside {}?", book.round)).await;
            line(answer)
        })
        .add_edge(START, "x")
        .add_edge("x", "ask")
}

fn calling() -> Graph {
    let node = |task: Task| async move {
        let one = task.call("one", || async { Ok::<_, NodeError>(1_i64) }).await?;
        let two = task.call("two", || async { Ok::<_, NodeError>(2_i64) }).await?;
        Ok::<_, NodeError>(line((one + two).to_string()))
    };
    Graph::new()
        .add_node("x", note("x"))
        .add_node("y", node)
        .add_edge(START, "x")
        .add_edge("x", "y")
}

fn failing() -> Graph {
    let node = |Ctx(world): Ctx<World>| {
        if world.tried("inside") < 2 { Err("not now") } else { Ok(line("mended")) }
    };
    Graph::new()
        .add_node("x", note("x"))
        .add_node("y", node)
        .add_edge(START, "x")
        .add_edge("x", "y")
}

/// What is new in the subgraph goes to its parent graph.
fn enter(book: &Book) -> super::BookUpdate {
    Book::update().lines([format!("entered with {}", book.lines.len())])
}

fn leave(inner: Book) -> super::BookUpdate {
    let text = inner.lines.join(", ");
    line(format!("[{text}; round {}, total {}]", inner.round, inner.total))
}

fn around(inner: Graph, memory: Memory) -> App {
    let inner = compiled(inner.memory(memory));
    let graph = Graph::new()
        .add_node("before", note("before"))
        .add_node("inner", inner.as_node(enter, leave))
        .add_node("after", note("after"))
        .add_edge(START, "before")
        .add_edge("before", "inner")
        .add_edge("inner", "after");
    compiled(graph)
}

fn deep(outer: Memory, innermost: Memory) -> App {
    let middle = compiled(
        Graph::new()
            .add_node("first", note("first"))
            .add_node("inner", compiled(inner().memory(innermost)).as_node(enter, leave))
            .add_edge(START, "first")
            .add_edge("first", "inner")
            .memory(outer),
    );
    let graph = Graph::new()
        .add_node("middle", middle.as_node(enter, leave))
        .add_node("after", note("after"))
        .add_edge(START, "middle")
        .add_edge("middle", "after");
    compiled(graph)
}

fn deep_question() -> App {
    let middle = compiled(
        Graph::new()
            .add_node("inner", compiled(asking()).as_node(enter, leave))
            .add_edge(START, "inner"),
    );
    compiled(
        Graph::new().add_node("middle", middle.as_node(enter, leave)).add_edge(START, "middle"),
    )
}

/// One graph with a memory is done while another one asks.
fn memory_beside_question() -> App {
    let counting = compiled(inner().memory(Memory::PerThread));
    let asking = compiled(asking().memory(Memory::PerThread));
    let graph = Graph::new()
        .add_node("counts", counting.as_node(enter, leave))
        .add_node("asks", asking.as_node(enter, leave))
        .add_node("after", note("after"))
        .add_edge(START, "counts")
        .add_edge(START, "asks")
        .add_edge(["counts", "asks"], "after");
    compiled(graph)
}

fn deep_memories_ask() -> App {
    let innermost = compiled(asking().memory(Memory::PerThread));
    let middle = Graph::new()
        .add_node("first", |book: Arc<Book>| line("first").round(book.round + 1))
        .add_node("inner", innermost.as_node(enter, leave))
        .add_edge(START, "first")
        .add_edge("first", "inner")
        .memory(Memory::PerThread);
    let graph = Graph::new()
        .add_node("middle", compiled(middle).as_node(enter, leave))
        .add_node("after", note("after"))
        .add_edge(START, "middle")
        .add_edge("middle", "after");
    compiled(graph)
}

/// The first attempt fails in the middle of the subgraph.
fn tried(memory: Memory) -> App {
    let graph = Graph::new()
        .add_node("inner", compiled(failing().memory(memory)).as_node(enter, leave))
        .retry(3)
        .add_node("after", note("after"))
        .add_edge(START, "inner")
        .add_edge("inner", "after");
    compiled(graph)
}

fn looped(memory: Memory) -> App {
    let inner = compiled(inner().memory(memory));
    let graph =
        Graph::new()
            .add_node("inner", inner.as_node(enter, leave))
            .add_node("count", |book: Arc<Book>| Book::update().round(book.round + 1))
            .add_edge(START, "inner")
            .add_edge("inner", "count")
            .add_conditional_edges("count", ["inner", END], |book: &Book| {
                if book.round < 3 { "inner" } else { END }
            });
    compiled(graph)
}

fn beside(inner: fn() -> Graph) -> App {
    let graph = Graph::new()
        .add_node("left", compiled(inner()).as_node(enter, leave))
        .add_node("right", compiled(inner()).as_node(enter, leave))
        .add_node("after", note("after"))
        .add_edge(START, "left")
        .add_edge(START, "right")
        .add_edge(["left", "right"], "after");
    compiled(graph)
}

fn dispatched() -> App {
    let graph = Graph::new()
        .add_node("spread", || {
            let sent = |n| serde_json::json!({ "lines": [format!("sent {n}")] });
            [1, 2].map(|n| Dispatch::new("inner", sent(n))).to_vec()
        })
        .destinations(["inner"])
        .add_node("inner", compiled(inner().output_channels(["total"])))
        .add_edge(START, "spread");
    compiled(graph)
}

fn called() -> App {
    let inner = compiled(inner());
    let graph = Graph::new()
        .add_node("a", {
            let inner = inner.clone();
            move |task: Task| {
                let inner = inner.clone();
                async move {
                    let book =
                        task.invoke(&inner, Book::update().lines(["called".to_owned()])).await?;
                    Ok::<_, NodeError>(leave(book))
                }
            }
        })
        .calls(&inner)
        .add_edge(START, "a");
    compiled(graph)
}

fn called_twice() -> App {
    let inner = compiled(inner());
    let graph = Graph::new().add_node("a", move |task: Task| {
        let inner = inner.clone();
        async move {
            let said = task.call("say", || async { Ok::<_, NodeError>("said".to_owned()) }).await?;
            let first = task.invoke(&inner, Book::update().lines([said])).await?;
            let second = task.invoke(&inner, Book::update().lines(first.lines)).await?;
            Ok::<_, NodeError>(leave(second))
        }
    });
    compiled(graph.add_edge(START, "a"))
}

fn parent() -> App {
    let inner = compiled(
        Graph::new()
            .add_node("x", note("x"))
            .add_node("up", || Command::update(line("from inside")).goto("target").to_parent())
            .add_edge(START, "x")
            .add_edge("x", "up"),
    );
    let graph = Graph::new()
        .add_node("inner", inner.as_node(enter, leave))
        .destinations(["target"])
        .add_node("target", note("target"))
        .add_edge(START, "inner");
    compiled(graph)
}

fn fan_inside() -> App {
    let inner = compiled(fan(&["x", "y", "z"], "end"));
    let graph =
        chain(&["a", "b"]).add_node("inner", inner.as_node(enter, leave)).add_edge(START, "inner");
    compiled(graph)
}

fn within() -> App {
    let inner = compiled(chain(&["x", "y"]).output_channels(["round", "total"]));
    let graph = Graph::new()
        .add_node("inner", inner)
        .add_node("after", note("after"))
        .add_edge(START, "inner")
        .add_edge("inner", "after");
    compiled(graph)
}

fn retried() -> App {
    let graph = Graph::new()
        .add_node("inner", compiled(failing()).as_node(enter, leave))
        .retry(3)
        .add_node("after", note("after"))
        .add_edge(START, "inner")
        .add_edge("inner", "after");
    compiled(graph)
}
