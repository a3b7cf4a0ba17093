//! Shows that a run that lacks what a node asks for as `Ctx<T>` fails before any node runs and before anything is stored,
//! and says which node asks for which type. It would break if the context were looked for only when the node is called.

use crate::common::{Counter, Notes, done, kept, line, says};
use superstep::prelude::*;

#[derive(Clone)]
struct Client(&'static str);

#[derive(Clone)]
struct Clock;

fn graph(ran: &Counter) -> StateGraph<Notes> {
    let ran = ran.clone();
    StateGraph::new()
        .add_node("first", move || {
            ran.add();
            line("first")
        })
        .add_node("calls", |Ctx(client): Ctx<Client>| line(client.0))
        .add_node("waits", |Ctx(_): Ctx<Clock>| line("waits"))
        .add_edge(START, "first")
        .add_edge("first", "calls")
        .add_edge("first", "waits")
}

#[tokio::test]
async fn all_that_is_missing_is_named_and_nothing_runs() {
    let ran = Counter::default();
    let thread = kept(graph(&ran)).thread("t");
    let error = thread.invoke(Notes::update()).await.expect_err("no context");
    assert!(matches!(error, RunError::Invalid(_)), "{error:?}");
    says(&error, &["`calls`", "Client", "`waits`", "Clock", "`with_context`"]);
    assert_eq!(ran.get(), 0);
    assert!(thread.get_state().await.expect("a look").metadata.is_none(), "nothing is stored");
}

#[tokio::test]
async fn the_graph_or_the_run_gives_it() {
    let ran = Counter::default();
    let app = kept(graph(&ran)).with_context(Clock).with_context(Client("of the graph"));
    let notes = done(app.thread("t").invoke(Notes::update()).await);
    assert_eq!(notes.lines, ["first", "of the graph", "waits"]);
    let notes = done(app.thread("u").invoke(Notes::update()).context(Client("of the run")).await);
    assert_eq!(notes.lines, ["first", "of the run", "waits"]);
}

#[tokio::test]
async fn a_thread_can_be_run_once_it_is_there() {
    let ran = Counter::default();
    let thread = kept(graph(&ran)).thread("t");
    thread.invoke(Notes::update()).await.expect_err("no context");
    let run = thread.invoke(Notes::update()).context(Clock).context(Client("c"));
    assert_eq!(done(run.await).lines, ["first", "c", "waits"]);
}

/// A graph that is a node, at any depth, is looked at as well.
#[tokio::test]
async fn also_of_a_graph_inside() {
    let ran = Counter::default();
    let innermost = StateGraph::<Notes>::new()
        .add_node("calls", |Ctx(client): Ctx<Client>| line(client.0))
        .add_edge(START, "calls");
    let inner = StateGraph::<Notes>::new()
        .add_node("deep", innermost.compile().expect("a graph"))
        .add_edge(START, "deep");
    let counted = ran.clone();
    let outer = StateGraph::<Notes>::new()
        .add_node("first", move || {
            counted.add();
            line("first")
        })
        .add_node("inner", inner.compile().expect("a graph"))
        .add_edge(START, "first")
        .add_edge("first", "inner");
    let thread = kept(outer).thread("t");
    let error = thread.invoke(Notes::update()).await.expect_err("no context");
    assert!(matches!(error, RunError::Invalid(_)), "{error:?}");
    says(&error, &["`inner/deep/calls`", "Client", "`with_context`"]);
    assert_eq!(ran.get(), 0);
    assert!(thread.get_state().await.expect("a look").metadata.is_none(), "nothing is stored");
    done(thread.invoke(Notes::update()).context(Client("c")).await);
    assert_eq!(ran.get(), 1);
}

/// A graph that a node calls is not known before, but none of its own nodes runs.
#[tokio::test]
async fn also_of_a_graph_that_a_node_calls() {
    let ran = Counter::default();
    let inner = graph(&ran).compile().expect("a graph");
    let outer = StateGraph::<Notes>::new()
        .add_node("calls it", move |task: Task| {
            let inner = inner.clone();
            async move {
                task.invoke(&inner, Notes::update()).await?;
                Ok::<_, NodeError>(line("called"))
            }
        })
        .add_edge(START, "calls it");
    let error = kept(outer).thread("t").invoke(Notes::update()).await.expect_err("no context");
    says(&error, &["`calls it`", "`calls`", "Client", "`waits`", "Clock"]);
    assert_eq!(ran.get(), 0);
}
