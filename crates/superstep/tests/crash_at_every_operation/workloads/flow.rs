//! Edges, routers, dispatches, joins.

use superstep::Join;
use superstep::prelude::*;

use super::{App, Book, Graph, chain, compiled, fan, line, note};
use crate::workload::{Play, workload};

pub(crate) fn all() -> Vec<Box<dyn Play>> {
    vec![
        Box::new(workload("a lone node", || compiled(chain(&["a"])))),
        Box::new(workload("a chain", || compiled(chain(&["a", "b", "c", "d", "e"])))),
        Box::new(workload("a chain, three turns", || compiled(chain(&["a", "b"]))).turns(3)),
        Box::new(workload("nodes that write nothing", silent)),
        Box::new(workload("a fan-out with a join", || compiled(fan(&["a", "b", "c"], "after")))),
        Box::new(workload("a fan-out of spawned nodes", spawned)),
        Box::new(workload("two diamonds", diamonds)),
        Box::new(workload("a join of ways of different length", uneven)),
        Box::new(workload("a join of two of three, two turns", two_of_three).turns(2)),
        Box::new(workload("a loop by a router", || compiled(looped(6)))),
        Box::new(workload("a loop by commands", by_command)),
        Box::new(workload("a long loop", || compiled(looped(12)))),
        Box::new(workload("dispatches", dispatches)),
        Box::new(workload("dispatches by a router", routed)),
        Box::new(workload("dispatches beside nodes", beside)),
        Box::new(workload("dispatches of dispatches", twice)),
        Box::new(workload("a deferred node", deferred)),
        Box::new(workload("routers that wait", waiting)),
        Box::new(workload("a fan-out of two turns", || compiled(fan(&["a", "b"], "c"))).turns(2)),
    ]
}

fn silent() -> App {
    let graph = Graph::new()
        .add_node("a", || ())
        .add_node("b", || ())
        .add_node("c", note("c"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(["a", "b"], "c");
    compiled(graph)
}

fn spawned() -> App {
    let graph = Graph::new()
        .add_node("a", note("a"))
        .spawned()
        .add_node("b", note("b"))
        .spawned()
        .add_edge(START, "a")
        .add_edge(START, "b");
    compiled(graph)
}

fn diamonds() -> App {
    let graph = fan(&["a", "b"], "c")
        .add_node("d", note("d"))
        .add_node("e", note("e"))
        .add_node("f", note("f"))
        .add_edge("c", "d")
        .add_edge("c", "e")
        .add_edge(["d", "e"], "f");
    compiled(graph)
}

fn two_of_three() -> App {
    let graph = chain(&["a", "b", "c", "d"])
        .add_node("fast", note("fast"))
        .add_node("joined", note("joined"))
        .add_edge(START, "fast")
        .add_edge(Join::at_least(2, ["fast", "b", "d"]), "joined");
    compiled(graph)
}

fn uneven() -> App {
    let graph = chain(&["a", "b", "c"])
        .add_node("short", note("short"))
        .add_node("end", note("end"))
        .add_edge(START, "short")
        .add_edge(["c", "short"], "end");
    compiled(graph)
}

fn looped(rounds: i64) -> Graph {
    Graph::new()
        .add_node("step", |book: Arc<Book>| {
            line(format!("round {}", book.round)).round(book.round + 1)
        })
        .add_edge(START, "step")
        .add_conditional_edges("step", ["step", END], move |book: &Book| {
            if book.round < rounds { "step" } else { END }
        })
}

fn by_command() -> App {
    let graph = Graph::new()
        .add_node("step", |book: Arc<Book>| {
            let to = if book.round < 4 { "other" } else { END };
            Command::update(line("step").round(book.round + 1)).goto(to)
        })
        .destinations(["other", END])
        .add_node("other", |book: Arc<Book>| {
            Command::update(line(format!("other {}", book.round))).goto("step")
        })
        .destinations(["step"])
        .add_edge(START, "step");
    compiled(graph)
}

fn workers(graph: Graph) -> Graph {
    graph
        .add_node("worker", |Arg(n): Arg<i64>| line(format!("worker {n}")).total(n))
        .add_node("gather", |book: Arc<Book>| line(format!("{} of them", book.total)))
        .add_edge("worker", "gather")
}

fn spread(count: i64) -> Vec<Dispatch> {
    (0..count).map(|n| Dispatch::new("worker", n)).collect()
}

fn dispatches() -> App {
    let graph = workers(Graph::new())
        .add_node("spread", || spread(4))
        .destinations(["worker"])
        .add_edge(START, "spread");
    compiled(graph)
}

fn routed() -> App {
    let graph = workers(Graph::new())
        .add_node("plan", note("plan"))
        .add_edge(START, "plan")
        .add_conditional_edges("plan", ["worker"], |book: &Book| spread(book.total + 2));
    compiled(graph)
}

fn beside() -> App {
    let graph = workers(fan(&["a", "b"], "c"))
        .add_node("spread", || spread(2))
        .destinations(["worker"])
        .add_node("d", note("d"))
        .add_edge(START, "spread")
        .add_edge("spread", "d");
    compiled(graph)
}

fn twice() -> App {
    let graph = workers(Graph::new())
        .add_node("spread", || vec![Dispatch::new("split", 1_i64), Dispatch::new("split", 2_i64)])
        .destinations(["split"])
        .add_node("split", |Arg(n): Arg<i64>| {
            Command::update(line(format!("split {n}"))).goto(spread(n))
        })
        .destinations(["worker"])
        .add_edge(START, "spread");
    compiled(graph)
}

fn deferred() -> App {
    let graph = chain(&["a", "b", "c"])
        .add_node("short", note("short"))
        .add_node("last", |book: Arc<Book>| line(format!("after {}", book.lines.len())))
        .defer()
        .add_edge(START, "short")
        .add_edge("short", "last")
        .add_edge("c", "last");
    compiled(graph)
}

fn waiting() -> App {
    async fn route(book: Arc<Book>) -> &'static str {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        if book.total > 0 { "next" } else { END }
    }
    let graph = Graph::new()
        .add_node("a", note("a"))
        .add_node("b", note("b"))
        .add_node("next", note("next"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_conditional_edges("a", ["next", END], route)
        .add_conditional_edges("b", ["next", END], route);
    compiled(graph)
}
