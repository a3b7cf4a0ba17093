//! What fails: tried again, handled, or taken up later.

use superstep::prelude::*;

use super::{App, Graph, compiled, line, note};
use crate::workload::{Play, World, workload};

pub(crate) fn all() -> Vec<Box<dyn Play>> {
    vec![
        Box::new(workload("a node that is tried again", retried)),
        Box::new(workload("a node that fails once", || failing("bad")).failures(1)),
        Box::new(workload("a node that panics once", panics).failures(1)),
        Box::new(workload("a node that fails beside others", beside).failures(1)),
        Box::new(workload("two nodes that fail, one after the other", two).failures(2)),
        Box::new(workload("an error handler", || handled(false))),
        Box::new(workload("an error handler beside nodes", || handled(true))),
        Box::new(workload("an error handler that goes elsewhere", elsewhere)),
        Box::new(workload("an error handler that fails once", handler_fails).failures(1)),
        Box::new(workload("a call that fails its node", call).failures(1)),
        Box::new(workload("a node that is given up by a time limit", limited)),
        Box::new(workload("a router that fails once", router).failures(1)),
        Box::new(workload("a dispatch that fails once", dispatch).failures(1)),
    ]
}

fn flaky(
    what: &'static str,
    good: u32,
) -> impl Fn(Ctx<World>) -> Result<super::BookUpdate, &'static str> {
    move |Ctx(world)| if world.tried(what) < good { Err("not now") } else { Ok(line(what)) }
}

fn retried() -> App {
    let graph = Graph::new().add_node("a", flaky("a", 3)).retry(5).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge(START, "b"))
}

fn failing(name: &'static str) -> App {
    let graph = Graph::new()
        .add_node("before", note("before"))
        .add_node(name, flaky("bad", 2))
        .add_node("after", note("after"))
        .add_edge(START, "before")
        .add_edge("before", name)
        .add_edge(name, "after");
    compiled(graph)
}

fn panics() -> App {
    let graph = Graph::new().add_node("a", |Ctx(world): Ctx<World>| {
        // A panic is reported by the hook of the test; an assertion is as good as any other.
        assert!(world.tried("a") > 1, "not now");
        line("a")
    });
    compiled(graph.add_edge(START, "a"))
}

fn beside() -> App {
    let graph = Graph::new()
        .add_node("a", note("a"))
        .add_node("bad", flaky("bad", 2))
        .add_node("c", note("c"))
        .add_node("after", note("after"))
        .add_edge(START, "a")
        .add_edge(START, "bad")
        .add_edge(START, "c")
        .add_edge(["a", "bad", "c"], "after");
    compiled(graph)
}

fn two() -> App {
    let graph = Graph::new()
        .add_node("a", flaky("a", 2))
        .add_node("b", flaky("b", 2))
        .add_edge(START, "a")
        .add_edge("a", "b");
    compiled(graph)
}

fn handled(beside: bool) -> App {
    let mut graph = Graph::new()
        .add_node("bad", || Err::<super::BookUpdate, _>(NodeError::permanent("broken")))
        .on_error(|failure: Failure| async move {
            tokio::time::sleep(std::time::Duration::from_secs(20)).await;
            line(format!("{} was {}", failure.node, failure.error))
        })
        .add_node("after", note("after"))
        .add_edge(START, "bad")
        .add_edge("bad", "after");
    if beside {
        graph = graph.add_node("c", note("c")).add_node("d", note("d"));
        graph = graph.add_edge(START, "c").add_edge(START, "d");
    }
    compiled(graph)
}

fn elsewhere() -> App {
    let graph = Graph::new()
        .add_node("bad", || Err::<super::BookUpdate, _>(NodeError::permanent("broken")))
        .on_error(|| Command::update(line("handled")).goto("other"))
        .destinations(["other"])
        .add_node("other", note("other"))
        .add_edge(START, "bad");
    compiled(graph)
}

fn handler_fails() -> App {
    let graph = Graph::new()
        .add_node("bad", || Err::<super::BookUpdate, _>(NodeError::permanent("broken")))
        .on_error(flaky("handler", 2))
        .add_node("c", note("c"))
        .add_edge(START, "bad")
        .add_edge(START, "c");
    compiled(graph)
}

fn call() -> App {
    let node = |Ctx(world): Ctx<World>, task: Task| async move {
        let good = task.call("good", || async { Ok::<_, NodeError>(1_i64) }).await?;
        let flaky = || {
            let tried = world.tried("call");
            async move { if tried < 2 { Err(NodeError::permanent("not now")) } else { Ok(2_i64) } }
        };
        let flaky = task.call("flaky", flaky).await?;
        Ok::<_, NodeError>(line((good + flaky).to_string()))
    };
    let graph = Graph::new().add_node("a", node).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge(START, "b"))
}

fn limited() -> App {
    let limit = TimeoutPolicy::run(std::time::Duration::from_secs(10));
    let node = |Ctx(world): Ctx<World>| async move {
        if world.tried("slow") < 2 {
            tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
        }
        line("a")
    };
    let graph = Graph::new().add_node("a", node).timeout(limit).retry(5).add_node("b", note("b"));
    compiled(graph.add_edge(START, "a").add_edge(START, "b"))
}

fn router() -> App {
    async fn route(_: Arc<super::Book>, task: Task) -> Result<&'static str, NodeError> {
        let world: World = task.context().ok_or("no world")?;
        if world.tried("router") < 2 { Err(NodeError::permanent("lost")) } else { Ok("b") }
    }
    let graph = Graph::new().add_node("a", note("a")).add_node("b", note("b")).add_edge(START, "a");
    compiled(graph.add_conditional_edges("a", ["b"], route))
}

fn dispatch() -> App {
    let graph = Graph::new()
        .add_node("spread", || [1_i64, 2, 3].map(|n| Dispatch::new("work", n)).to_vec())
        .destinations(["work"])
        .add_node("work", |Arg(n): Arg<i64>, Ctx(world): Ctx<World>| {
            if n == 2 && world.tried("work") < 2 { Err("not now") } else { Ok(line(n.to_string())) }
        })
        .add_edge(START, "spread");
    compiled(graph)
}
