//! Recorded calls in nodes.

use superstep::prelude::*;

use super::{App, Book, Graph, compiled, line, note};
use crate::workload::{Play, World, workload};

pub(crate) fn all() -> Vec<Box<dyn Play>> {
    vec![
        Box::new(workload("calls one after the other", in_sequence).sequential()),
        Box::new(workload("calls with arguments", with_args).sequential()),
        Box::new(workload("calls side by side", at_once)),
        Box::new(workload("calls of calls", nested)),
        Box::new(workload("a call that fails, caught", caught).sequential()),
        Box::new(workload("a call that is tried again", retried)),
        Box::new(workload("calls in a loop of nodes", looped).sequential()),
        Box::new(workload("calls of nodes side by side", siblings).sequential()),
        Box::new(workload("calls of dispatched nodes", dispatched)),
        Box::new(workload("a call that nobody waits for", unawaited)),
    ]
}

async fn say(text: &'static str) -> Result<String, NodeError> {
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    Ok(text.to_owned())
}

async fn three(task: Task) -> Result<super::BookUpdate, NodeError> {
    let mut said = Vec::new();
    for (name, text) in [("one", "1"), ("two", "2"), ("three", "3")] {
        said.push(task.call(name, || say(text)).await?);
    }
    Ok(line(said.join(" ")))
}

fn in_sequence() -> App {
    let graph = Graph::new().add_node("a", three).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge("a", "b"))
}

fn with_args() -> App {
    let node = |task: Task| async move {
        let mut sum = 0;
        for n in 1..=3_i64 {
            sum += task.call("add", || async move { Ok::<_, NodeError>(n) }).args(n).await?;
        }
        Ok::<_, NodeError>(line(sum.to_string()))
    };
    compiled(Graph::new().add_node("a", node).add_edge(START, "a"))
}

fn at_once() -> App {
    let node = |task: Task| async move {
        let calls = ["x", "y", "z"].map(|text| task.call("say", move || say(text)).spawn());
        let mut said = Vec::new();
        for call in calls {
            said.push(call.await?);
        }
        Ok::<_, NodeError>(line(said.join(" ")))
    };
    let graph = Graph::new().add_node("a", node).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge("a", "b"))
}

fn nested() -> App {
    let node = |task: Task| async move {
        let outer = |call: Task| async move {
            let one = call.call("one", || say("1")).await?;
            let two = call.call("two", || say("2")).await?;
            Ok::<_, NodeError>(format!("{one}{two}"))
        };
        let first = task.call_with("outer", outer).await?;
        let second = task.call_with("outer", outer).await?;
        Ok::<_, NodeError>(line(format!("{first} {second}")))
    };
    compiled(Graph::new().add_node("a", node).add_edge(START, "a"))
}

fn caught() -> App {
    let node = |task: Task| async move {
        let failed =
            task.call("bad", || async { Err::<String, _>(NodeError::permanent("no luck")) });
        let said = match failed.await {
            Ok(said) => said,
            Err(error) => format!("caught {error}"),
        };
        let then = task.call("then", || say("then")).await?;
        Ok::<_, NodeError>(line(format!("{said}, {then}")))
    };
    compiled(Graph::new().add_node("a", node).add_edge(START, "a"))
}

fn retried() -> App {
    let node = |Ctx(world): Ctx<World>, task: Task| async move {
        let flaky = || {
            let tried = world.tried("flaky");
            async move { if tried < 3 { Err("not yet") } else { Ok("at last".to_owned()) } }
        };
        let said = task.call("flaky", flaky).retry(5).await?;
        Ok::<_, NodeError>(line(said))
    };
    compiled(Graph::new().add_node("a", node).add_edge(START, "a"))
}

fn looped() -> App {
    let node = |book: Arc<Book>, task: Task| async move {
        let update = three(task).await?;
        Ok::<_, NodeError>(update.round(book.round + 1))
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

fn siblings() -> App {
    let graph = Graph::new()
        .add_node("a", three)
        .add_node("b", three)
        .add_node("c", note("c"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(["a", "b"], "c");
    compiled(graph)
}

fn dispatched() -> App {
    let graph = Graph::new()
        .add_node("spread", || [1_i64, 2].map(|n| Dispatch::new("work", n)).to_vec())
        .destinations(["work"])
        .add_node("work", |Arg(n): Arg<i64>, task: Task| async move {
            let first = task.call("first", || say("first")).await?;
            let second = task.call("second", || say("second")).await?;
            Ok::<_, NodeError>(line(format!("{n}: {first} {second}")))
        })
        .add_edge(START, "spread");
    compiled(graph)
}

fn unawaited() -> App {
    let node = |task: Task| async move {
        drop(task.call("aside", || say("aside")).spawn());
        let said = task.call("main", || say("main")).await?;
        Ok::<_, NodeError>(line(said))
    };
    let graph = Graph::new().add_node("a", node).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge("a", "b"))
}
