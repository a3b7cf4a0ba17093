//! Questions, and answers that come one by one.

use superstep::prelude::*;

use super::{App, Book, Graph, compiled, line, note};
use crate::workload::{Answers, Play, World, workload};

pub(crate) fn all() -> Vec<Box<dyn Play>> {
    vec![
        Box::new(workload("a question", one)),
        Box::new(workload("a question, answered without its id", one).answers(Answers::Bare)),
        Box::new(workload("two questions of one node", two).answers(Answers::Bare)),
        Box::new(workload("a question in each of two turns", one).turns(2)),
        Box::new(workload("questions of siblings", siblings)),
        Box::new(workload("questions of siblings, one by one", siblings).answers(Answers::OneById)),
        Box::new(workload("a question beside nodes that go on", beside)),
        Box::new(workload("a question in a loop", looped)),
        Box::new(workload("a question in a call", in_call)),
        Box::new(workload("a question in a call of a call", in_inner_call)),
        Box::new(workload("a call beside one that asks", beside_call)),
        Box::new(workload("calls that ask, one by one", calls).answers(Answers::OneById)),
        Box::new(workload("a question between calls", between).sequential()),
        Box::new(workload("questions of dispatched nodes", dispatched).answers(Answers::OneById)),
        Box::new(workload("a question of a router", routed)),
        Box::new(workload("a question of an error handler", handled)),
        Box::new(workload("a question, then a failure", fails).failures(1)),
        Box::new(workload("a question that is asked after another attempt", retried)),
    ]
}

async fn ask(task: Task) -> super::BookUpdate {
    let answer: String = task.interrupt(format!("{}?", task.name())).await;
    line(answer)
}

fn one() -> App {
    let graph = Graph::new().add_node("a", note("a")).add_node("ask", ask).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge("a", "ask").add_edge("ask", "b"))
}

fn two() -> App {
    let node = |task: Task| async move {
        let first: String = task.interrupt("first?").await;
        let second: String = task.interrupt(format!("second after {first}?")).await;
        line(second)
    };
    compiled(Graph::new().add_node("a", node).add_edge(START, "a"))
}

fn siblings() -> App {
    let graph = Graph::new()
        .add_node("a", ask)
        .add_node("b", ask)
        .add_node("c", ask)
        .add_node("end", note("end"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(START, "c")
        .add_edge(["a", "b", "c"], "end");
    compiled(graph)
}

fn beside() -> App {
    let graph = Graph::new()
        .add_node("ask", ask)
        .add_node("b", note("b"))
        .add_node("c", note("c"))
        .add_edge(START, "ask")
        .add_edge(START, "b")
        .add_edge("b", "c")
        .add_edge("ask", "c");
    compiled(graph)
}

fn looped() -> App {
    let node = |book: Arc<Book>, task: Task| async move {
        let answer: String = task.interrupt(format!("round {}?", book.round)).await;
        line(answer).round(book.round + 1)
    };
    let graph = Graph::new().add_node("a", node).add_edge(START, "a");
    compiled(graph.add_conditional_edges(
        "a",
        ["a", END],
        |book: &Book| {
            if book.round < 3 { "a" } else { END }
        },
    ))
}

async fn asking(call: Task) -> Result<String, NodeError> {
    Ok(call.interrupt(format!("{}?", call.name())).await)
}

fn in_call() -> App {
    let node = |task: Task| async move {
        let said = task.call("say", || async { Ok::<_, NodeError>("said".to_owned()) }).await?;
        let asked = task.call_with("ask", asking).await?;
        Ok::<_, NodeError>(line(format!("{said} {asked}")))
    };
    let graph = Graph::new().add_node("a", node).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge("a", "b"))
}

fn in_inner_call() -> App {
    let node = |task: Task| async move {
        let outer = task.call_with("outer", |call: Task| async move {
            let first = call.call_with("first", asking).await?;
            let second = call.call_with("second", asking).await?;
            Ok::<_, NodeError>(format!("{first} {second}"))
        });
        outer.await.map(line)
    };
    compiled(Graph::new().add_node("a", node).add_edge(START, "a"))
}

fn beside_call() -> App {
    let node = |task: Task| async move {
        let slow = task.call("slow", || async {
            tokio::time::sleep(std::time::Duration::from_secs(90)).await;
            Ok::<_, NodeError>("slow".to_owned())
        });
        let (slow, asked) = (slow.spawn(), task.call_with("ask", asking).spawn());
        Ok::<_, NodeError>(line(format!("{} {}", slow.await?, asked.await?)))
    };
    compiled(Graph::new().add_node("a", node).add_edge(START, "a"))
}

fn calls() -> App {
    let node = |task: Task| async move {
        let calls = ["a", "b", "c"].map(|name| task.call_with(name, asking).spawn());
        let mut said = Vec::new();
        for call in calls {
            said.push(call.await?);
        }
        Ok::<_, NodeError>(line(said.join(" ")))
    };
    compiled(Graph::new().add_node("a", node).add_edge(START, "a"))
}

fn between() -> App {
    let node = |task: Task| async move {
        let before = task.call("before", || async { Ok::<_, NodeError>(1_i64) }).await?;
        let answer: String = task.interrupt("go on?").await;
        let after = task.call("after", || async { Ok::<_, NodeError>(2_i64) }).await?;
        Ok::<_, NodeError>(line(format!("{before} {answer} {after}")))
    };
    let graph = Graph::new().add_node("a", node).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge("a", "b"))
}

fn dispatched() -> App {
    let graph = Graph::new()
        .add_node("spread", || [1_i64, 2, 3].map(|n| Dispatch::new("work", n)).to_vec())
        .destinations(["work"])
        .add_node("work", |Arg(n): Arg<i64>, task: Task| async move {
            let answer: String = task.interrupt(format!("work {n}?")).await;
            line(answer)
        })
        .add_edge(START, "spread");
    compiled(graph)
}

fn routed() -> App {
    async fn route(_: Arc<Book>, task: Task) -> &'static str {
        let answer: String = task.interrupt("where to?").await;
        if answer.is_empty() { END } else { "b" }
    }
    let graph = Graph::new().add_node("a", note("a")).add_node("b", note("b")).add_edge(START, "a");
    compiled(graph.add_conditional_edges("a", ["b", END], route))
}

fn handled() -> App {
    let graph = Graph::new()
        .add_node("a", || Err::<super::BookUpdate, _>(NodeError::permanent("broken")))
        .on_error(|failure: Failure, task: Task| async move {
            let answer: String = task.interrupt(format!("{}?", failure.error)).await;
            line(answer)
        })
        .add_node("b", note("b"))
        .add_edge(START, "a")
        .add_edge(START, "b");
    compiled(graph)
}

fn fails() -> App {
    let node = |Ctx(world): Ctx<World>, task: Task| async move {
        let answer: String = task.interrupt("try it?").await;
        if world.tried("after the answer") < 2 {
            return Err(NodeError::permanent("not now"));
        }
        Ok(line(answer))
    };
    let graph = Graph::new().add_node("a", node).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge(START, "b"))
}

fn retried() -> App {
    let node = |Ctx(world): Ctx<World>, task: Task| async move {
        if world.tried("before the question") % 2 == 1 {
            return Err(NodeError::from("not yet"));
        }
        let answer: String = task.interrupt("now?").await;
        Ok(line(answer))
    };
    compiled(Graph::new().add_node("a", node).retry(3).add_edge(START, "a"))
}
