//! A task that asks, or whose inner graph is drained, stops there. There is not an error that a
//! node could catch, and no way to return past an open question.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use crate::world::{Log, LogUpdate, World, asked, done, in_memory, log, look, next, settles};
use futures_util::FutureExt;
use superstep::prelude::*;
use superstep::{CompiledGraph, IntoNode};

const SWALLOWED: &str = "swallowed";

/// In the reference a question is an exception: the node would continue with `SWALLOWED`, and the
/// run would be done.
async fn pauses_and_takes_the_answer<M>(node: impl IntoNode<Log, M>) {
    pauses(StateGraph::<Log>::new().add_node("ask", node)).await;
}

async fn pauses(graph: StateGraph<Log>) {
    let world = World::new();
    let graph = graph.add_edge(START, "ask").compile().expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert_eq!(asked(thread.invoke(log("in")).await), ["go?"]);
    let state = look(&thread).await;
    assert_eq!(next(&state), ["ask"]);
    assert_eq!(state.state().log, ["in"], "nothing the node did afterwards has any effect");
    assert_eq!(state.interrupts.len(), 1);
    assert_eq!(done(thread.resume("yes").await).log, ["in", "yes"]);
}

/// F2: handling of errors.
#[tokio::test(start_paused = true)]
async fn by_handling_errors() {
    async fn careless(task: Task) -> Result<String, NodeError> {
        let ask = async { Ok::<String, NodeError>(task.interrupt("go?").await) };
        let answer = ask.await.map_err(|_| "mapped away")?;
        Ok(answer)
    }
    pauses_and_takes_the_answer(|task: Task| async move {
        let answer = careless(task).await;
        log(answer.ok().unwrap_or_else(|| SWALLOWED.to_owned()))
    })
    .await;
}

/// F2: a limit on time around it.
#[tokio::test(start_paused = true)]
async fn by_a_timeout() {
    pauses_and_takes_the_answer(|task: Task| async move {
        let answer = tokio::time::timeout(Duration::from_millis(1), task.interrupt("go?")).await;
        log(answer.unwrap_or_else(|_| SWALLOWED.to_owned()))
    })
    .await;
}

/// F2: a timeout that has run out when the question is asked, so that the node returns in the same poll.
#[tokio::test(start_paused = true)]
async fn by_a_timeout_of_nothing() {
    pauses_and_takes_the_answer(|task: Task| async move {
        let answer = tokio::time::timeout(Duration::ZERO, task.interrupt("go?")).await;
        log(answer.unwrap_or_else(|_| SWALLOWED.to_owned()))
    })
    .await;
}

/// F2: another branch that is ready.
#[tokio::test(start_paused = true)]
async fn by_a_branch_that_is_ready() {
    pauses_and_takes_the_answer(|task: Task| async move {
        let answer = tokio::select! {
            biased;
            answer = task.interrupt("go?") => answer,
            () = std::future::ready(()) => SWALLOWED.to_owned(),
        };
        log(answer)
    })
    .await;
}

/// F2: asked by a helper that runs as a task of the runtime.
#[tokio::test(start_paused = true)]
async fn by_a_spawned_helper() {
    pauses_and_takes_the_answer(|task: Task| async move {
        let helper = tokio::spawn(async move { task.interrupt::<String>("go?").await });
        let answer = tokio::time::timeout(Duration::from_secs(1), helper).await;
        log(answer.ok().and_then(Result::ok).unwrap_or_else(|| SWALLOWED.to_owned()))
    })
    .await;
}

/// F2: catching panics.
#[tokio::test(start_paused = true)]
async fn by_catching_panics() {
    pauses_and_takes_the_answer(|task: Task| async move {
        let ask = AssertUnwindSafe(task.interrupt::<String>("go?")).catch_unwind();
        log(ask.await.unwrap_or_else(|_| SWALLOWED.to_owned()))
    })
    .await;
}

/// F2: a panic after the question is no failure of the node either.
#[tokio::test(start_paused = true)]
async fn by_a_panic_beside_it() {
    pauses_and_takes_the_answer(|task: Task| async move {
        let mut ask = Box::pin(task.interrupt::<String>("go?"));
        let Some(answer) = ask.as_mut().now_or_never() else { panic!("nobody answers") };
        log(answer)
    })
    .await;
}

/// F2: a question in a recorded call whose errors do not matter to the caller.
#[tokio::test(start_paused = true)]
async fn by_a_recorded_call() {
    pauses_and_takes_the_answer(|task: Task| async move {
        let ask = |call: Task| async move { Ok::<String, NodeError>(call.interrupt("go?").await) };
        let answer = task.call_with("ask", ask).await;
        log(answer.unwrap_or_else(|_| SWALLOWED.to_owned()))
    })
    .await;
}

/// F2: a question in a graph whose errors do not matter to the node that calls it.
#[tokio::test(start_paused = true)]
async fn by_the_node_that_calls_a_graph() {
    let inner = StateGraph::<Log>::new()
        .add_node("inner", |task: Task| async move { log(task.interrupt::<String>("go?").await) })
        .add_edge(START, "inner")
        .compile()
        .expect("a graph");
    pauses_and_takes_the_answer(move |task: Task| {
        let inner = inner.clone();
        async move {
            let call = task.invoke(&inner, Log::update());
            let ended = tokio::time::timeout(Duration::ZERO, call).await;
            let answers = ended.ok().and_then(Result::ok).map(|inner| inner.log);
            Log::update().log(answers.unwrap_or_else(|| vec![SWALLOWED.to_owned()]))
        }
    })
    .await;
}

/// F2, in a node that runs on another thread.
#[tokio::test(flavor = "multi_thread")]
async fn by_a_spawned_node() {
    let node = |task: Task| async move {
        let answer = tokio::select! {
            biased;
            answer = task.interrupt("go?") => answer,
            () = std::future::ready(()) => SWALLOWED.to_owned(),
        };
        log(answer)
    };
    pauses(StateGraph::<Log>::new().add_node("ask", node).spawned()).await;
}

/// An inner graph of two supersteps that is asked to stop after the first.
fn drained_inside() -> CompiledGraph<Log> {
    StateGraph::<Log>::new()
        .add_node("x", |Ctx(world): Ctx<World>, task: Task| async move {
            world.ran("x");
            if world.is_broken() {
                task.control().request_drain("deploy");
            }
            log("x")
        })
        .add_node("y", |Ctx(world): Ctx<World>| {
            world.ran("y");
            log("y")
        })
        .add_edge(START, "x")
        .add_edge("x", "y")
        .compile()
        .expect("a graph")
}

/// F39: in the reference the drain is an exception in the node that calls the graph, and its error handling eats it.
async fn drains_and_goes_on<M>(node: impl IntoNode<Log, M>) {
    let world = World::broken();
    let graph = StateGraph::<Log>::new()
        .add_node("call", node)
        .add_node("after", |Ctx(world): Ctx<World>| {
            world.ran("after");
            log("after")
        })
        .add_edge(START, "call")
        .add_edge("call", "after")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    match thread.invoke(log("in")).await {
        Ok(Outcome::Drained(reason)) => assert_eq!(&*reason, "deploy"),
        other => panic!("the run should be drained, but ended with {other:?}"),
    }
    assert_eq!(next(&look(&thread).await), ["call"]);
    assert_eq!(look(&thread).await.state().log, ["in"]);

    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "x", "y", "after"]);
    assert_eq!(world.take(), ["x", "y", "after"], "the inner graph went on where it was");
}

/// F39.
#[tokio::test(start_paused = true)]
async fn a_drain_by_handling_errors() {
    let inner = drained_inside();
    drains_and_goes_on(move |task: Task| {
        let inner = inner.clone();
        async move {
            let ended = task.invoke(&inner, Log::update()).await;
            Log::update().log(ended.map_or_else(|_| vec![SWALLOWED.to_owned()], |log| log.log))
        }
    })
    .await;
}

/// F39.
#[tokio::test(start_paused = true)]
async fn a_drain_by_a_branch_that_is_ready() {
    let inner = drained_inside();
    drains_and_goes_on(move |task: Task| {
        let inner = inner.clone();
        async move {
            tokio::select! {
                biased;
                ended = task.invoke(&inner, Log::update()) => ended.map(|inner| Log::update().log(inner.log)),
                () = tokio::time::sleep(Duration::from_secs(1)) => Ok(log(SWALLOWED)),
            }
        }
    })
    .await;
}

/// F39, for a graph that is a node: the node's error handler is not called.
#[tokio::test(start_paused = true)]
async fn a_drain_by_an_error_handler() {
    let world = World::broken();
    let inner = drained_inside();
    let graph = StateGraph::<Log>::new()
        .add_node(
            "call",
            inner.as_node(|_: &Log| Log::update(), |inner: Log| Log::update().log(inner.log)),
        )
        .on_error(|Ctx(world): Ctx<World>| {
            world.ran("handler");
            log(SWALLOWED)
        })
        .add_edge(START, "call")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert!(matches!(thread.invoke(log("in")).await, Ok(Outcome::Drained(_))));
    world.mend();
    assert_eq!(done(thread.invoke(()).await).log, ["in", "x", "y"]);
    assert_eq!(world.take(), ["x", "y"]);
}

/// F2: the node's error handler.
#[tokio::test(start_paused = true)]
async fn by_an_error_handler() {
    let node = |task: Task| async move {
        let answer: String = task.interrupt("go?").await;
        Ok::<LogUpdate, NodeError>(log(answer))
    };
    let graph = StateGraph::<Log>::new().add_node("ask", node);
    pauses(graph.on_error(|_: Failure| log(SWALLOWED))).await;
}

/// F2: a question asked by a router is one of its node's task.
#[tokio::test(start_paused = true)]
async fn by_a_router() {
    let world = World::new();
    let graph = StateGraph::<Log>::new()
        .add_node("a", |Ctx(world): Ctx<World>| {
            world.ran("a");
            log("a")
        })
        .add_node("b", || log("b"))
        .add_edge(START, "a")
        .add_conditional_edges("a", ["b", END], |_: Arc<Log>, task: Task| async move {
            let ask = tokio::time::timeout(Duration::from_secs(1), task.interrupt::<bool>("go?"));
            if ask.await.unwrap_or(false) { "b" } else { END }
        })
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &world).thread("1");
    assert_eq!(asked(settles(thread.invoke(log("in"))).await), ["go?"]);
    assert_eq!(next(&look(&thread).await), ["a"]);
    assert_eq!(done(settles(thread.resume(true)).await).log, ["in", "a", "b"]);
    assert_eq!(world.take(), ["a", "a"]);
}
