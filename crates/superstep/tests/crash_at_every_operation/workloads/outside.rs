//! What is done to a thread from outside: drains, breakpoints, updates, streams.

use superstep::prelude::*;
use superstep::{Memory, RawSnapshot, StateUpdate};

use super::{App, Book, Graph, chain, compiled, fan, line, note};
use crate::workload::{Play, workload};

pub(crate) fn all() -> Vec<Box<dyn Play>> {
    vec![
        Box::new(workload("a drain in a chain", || compiled(drained()))),
        Box::new(workload("a drain beside nodes", drained_beside)),
        Box::new(workload("a drain in a graph inside", || drained_inside(Memory::PerCall))),
        Box::new(
            workload("a drain in a graph with a memory", || drained_inside(Memory::PerThread))
                .turns(2),
        ),
        Box::new(workload("a stop at once", stopped)),
        Box::new(workload("a breakpoint before a node", || {
            compiled(chain(&["a", "b", "c"]).interrupt_before(["b"]))
        })),
        Box::new(workload("a breakpoint after a node", || {
            compiled(chain(&["a", "b", "c"]).interrupt_after(["b"]))
        })),
        Box::new(workload("breakpoints everywhere", || {
            compiled(fan(&["a", "b"], "c").interrupt_before(["a", "c"]).interrupt_after(["b"]))
        })),
        Box::new(workload("an update at a breakpoint", updated).change(|seen| {
            at_breakpoint(seen).map(|()| StateUpdate::new::<Book>(line("from outside").round(7)))
        })),
        Box::new(workload("an update in place of a node", updated).change(|seen| {
            let update = || StateUpdate::new::<Book>(line("instead of b").round(7)).as_node("b");
            at_breakpoint(seen).map(|()| update())
        })),
        Box::new(workload("a stream", || compiled(fan(&["a", "b", "c"], "d"))).stream()),
        Box::new(workload("a stream of graphs inside", streamed).stream().turns(2)),
        Box::new(workload("a stream with a question", asked).stream()),
    ]
}

/// A chain whose second node asks for a drain.
fn drained() -> Graph {
    Graph::new()
        .add_node("a", note("a"))
        .add_node("drain", |task: Task| {
            task.control().request_drain("enough");
            line("drain")
        })
        .add_node("c", note("c"))
        .add_node("d", note("d"))
        .add_edge(START, "a")
        .add_edge("a", "drain")
        .add_edge("drain", "c")
        .add_edge("c", "d")
}

fn drained_beside() -> App {
    let graph = drained().add_node("x", note("x")).add_node("y", note("y"));
    compiled(graph.add_edge(START, "x").add_edge("x", "y").add_edge("y", "c"))
}

fn around(inner: &App) -> Graph {
    let leave = |inner: Book| line(inner.lines.join(", "));
    Graph::new()
        .add_node("inner", inner.as_node(|_: &Book| Book::update(), leave))
        .add_node("beside", note("beside"))
        .add_node("after", note("after"))
        .add_edge(START, "inner")
        .add_edge(START, "beside")
        .add_edge(["inner", "beside"], "after")
}

fn drained_inside(memory: Memory) -> App {
    compiled(around(&compiled(drained().memory(memory))))
}

fn stopped() -> App {
    let graph = Graph::new()
        .add_node("a", note("a"))
        .add_node("b", |book: Arc<Book>, task: Task| async move {
            if task.control().drain_requested() || book.round > 0 {
                return line("b");
            }
            let control = task.control().clone();
            task.call("once", || async { Ok::<_, NodeError>(()) }).await.ok();
            // The first time, nothing that runs comes to completion.
            if task.context::<crate::workload::World>().is_some_and(|world| world.tried("b") < 2) {
                control.stop_now("now");
                tokio::time::sleep(std::time::Duration::from_secs(600)).await;
            }
            line("b")
        })
        .add_node("c", note("c"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(["a", "b"], "c");
    compiled(graph)
}

fn updated() -> App {
    compiled(chain(&["a", "b", "c"]).interrupt_before(["b"]))
}

/// Whether the thread stands before `b` and has not been changed yet.
fn at_breakpoint(seen: &RawSnapshot) -> Option<()> {
    let changed = seen.values.get("round").and_then(Value::as_i64) == Some(7);
    (seen.next.iter().any(|name| &**name == "b") && !changed).then_some(())
}

fn streamed() -> App {
    compiled(around(&compiled(chain(&["x", "y"]))))
}

fn asked() -> App {
    let graph = fan(&["a", "b"], "c").add_node("ask", |task: Task| async move {
        let answer: String = task.interrupt("ask?").await;
        line(answer)
    });
    compiled(graph.add_edge(START, "ask"))
}
