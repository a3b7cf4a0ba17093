//! An error that a node returns keeps its causes: in the error of the run, in every form of its text, and in storage.

use std::error::Error;
use std::io;

use superstep::prelude::*;
use superstep::{CompiledGraph, Failure};

use crate::world::{Log, World, done, failed, in_memory, log, look};

#[derive(Debug, thiserror::Error)]
#[error("the model `{model}` did not answer")]
struct NoAnswer {
    model: String,
    #[source]
    cause: io::Error,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificate has expired")]
struct Expired;

fn no_answer() -> NoAnswer {
    NoAnswer { model: "m1".to_owned(), cause: io::Error::other(Expired) }
}

const ALL: &str = "the model `m1` did not answer: the certificate has expired";

fn failing<E: Into<NodeError> + 'static>(error: fn() -> E) -> CompiledGraph<Log> {
    let work = move || async move { Err::<(), NodeError>(error().into()) };
    let graph = StateGraph::<Log>::new().add_node("work", work).add_edge(START, "work");
    in_memory(graph.compile().expect("a graph"), &World::new())
}

fn node_error(error: &RunError) -> &NodeError {
    match error {
        RunError::Node { error, .. } => error,
        other => panic!("a node failed, not {other:?}"),
    }
}

#[tokio::test]
async fn in_every_form_of_its_text() {
    let (error, chain) = failed(failing(no_answer).thread("1").invoke(log("in")).await);
    let whole = format!("node `work` failed: NoAnswer: {ALL}");
    assert_eq!(error.to_string(), "node `work` failed: NoAnswer: the model `m1` did not answer");
    assert_eq!(format!("{error:#}"), whole);
    assert_eq!(chain, whole);
    assert_eq!(format!("{:#}", anyhow::Error::from(error.clone())), whole);
    assert!(format!("{error:?}").contains(ALL), "{error:?}");
    let error = node_error(&error);
    assert_eq!(error.to_string(), "the model `m1` did not answer");
    assert_eq!(format!("{error:#}"), ALL);
    assert_eq!(format!("{error:?}"), format!("NoAnswer: {ALL}"));
}

#[tokio::test]
async fn and_their_types_can_be_asked_for() {
    let (error, _) = failed(failing(no_answer).thread("1").invoke(log("in")).await);
    let error = node_error(&error);
    assert_eq!(error.downcast_ref::<NoAnswer>().map(|error| &*error.model), Some("m1"));
    assert_eq!(error.downcast_ref::<io::Error>().map(io::Error::kind), Some(io::ErrorKind::Other));
    assert_eq!(error.downcast_ref::<Expired>(), Some(&Expired), "inside the `io::Error`");
    assert!(error.downcast_ref::<std::fmt::Error>().is_none());
    let renamed = error.clone().named("Weather");
    assert_eq!(renamed.downcast_ref::<Expired>(), Some(&Expired), "under another name as well");
    assert_eq!(format!("{renamed:?}"), format!("Weather: {ALL}"));
}

#[tokio::test]
async fn that_were_given_a_context() {
    fn error() -> anyhow::Error {
        anyhow::Error::from(no_answer()).context("cannot draft").context("cannot reply")
    }
    let (error, chain) = failed(failing(error).thread("1").invoke(log("in")).await);
    let whole = format!("cannot reply: cannot draft: {ALL}");
    assert_eq!(chain, format!("node `work` failed: Error: {whole}"));
    let error = node_error(&error);
    assert_eq!(format!("{error:#}"), whole);
    assert_eq!(error.downcast_ref::<Expired>(), Some(&Expired));
}

/// A cause that the text of an error ends with is not told twice.
#[tokio::test]
async fn and_told_once() {
    fn error() -> anyhow::Error {
        let cause = no_answer();
        let text = format!("cannot reply: {cause}");
        anyhow::Error::from(cause).context(text)
    }
    let (error, _) = failed(failing(error).thread("1").invoke(log("in")).await);
    assert_eq!(format!("{error:#}"), format!("node `work` failed: Error: cannot reply: {ALL}"));
}

#[tokio::test]
async fn through_graphs_inside_of_graphs() {
    let inner = failing(no_answer);
    let graph = StateGraph::<Log>::new().add_node("inner", inner).add_edge(START, "inner");
    let graph = in_memory(graph.compile().expect("a graph"), &World::new());
    let (error, chain) = failed(graph.thread("1").invoke(log("in")).await);
    let whole = format!("node `inner` failed: NoAnswer: node `work` failed: NoAnswer: {ALL}");
    assert_eq!(chain, whole);
    assert_eq!(format!("{error:#}"), whole);
    let error = node_error(&error);
    assert_eq!(error.downcast_ref::<Expired>(), Some(&Expired));
    assert!(error.downcast_ref::<NoAnswer>().is_some());
}

#[tokio::test]
async fn in_storage() {
    let thread = failing(no_answer).thread("1");
    failed(thread.invoke(log("in")).await);
    let stored = look(&thread).await.tasks[0].error.clone().expect("an error");
    assert_eq!(
        stored,
        r#"NoAnswer("the model `m1` did not answer\ncaused by: the certificate has expired")"#
    );
}

/// F16: what a handler is told does not depend on whether it is taken up again; nor for texts that need escapes.
#[tokio::test]
async fn and_are_the_same_when_they_are_read_back() {
    fn error() -> anyhow::Error {
        anyhow::Error::msg("bell \u{7} and \"quotes\"").context("it's\0")
    }
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("work", || async { Err::<(), _>(error()) })
        .on_error(|failure: Failure, Ctx(world): Ctx<World>, task: Task| async move {
            let first = failure.error.source().map(ToString::to_string);
            world.ran(format!("{:?}, {}, {first:?}", failure.error, failure.error));
            log(task.interrupt::<String>("what now?").await)
        })
        .add_edge(START, "work")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    thread.invoke(log("in")).await.expect("a question");
    done(thread.resume("give up").await);
    let told = world.take();
    assert_eq!(told.len(), 2);
    assert_eq!(told[0], told[1]);
    assert!(told[0].contains("it's\0: bell \u{7} and \"quotes\""), "{told:?}");
}

/// An error of storage has causes as well, and they can be asked for by their type.
#[test]
fn of_storage_too() {
    let source = superstep::checkpoint::Error::backend("cannot write", no_answer());
    let error = RunError::from(source);
    assert_eq!(format!("{error:#}"), format!("the checkpointer failed: cannot write: {ALL}"));
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    assert!(matches!(cause, Some(superstep::checkpoint::Error::Backend { .. })), "{error:?}");
    let error = NodeError::from(error);
    assert!(error.downcast_ref::<NoAnswer>().is_some());
}
