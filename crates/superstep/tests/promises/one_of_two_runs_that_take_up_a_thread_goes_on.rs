//! Shows that of two processes that take up a thread at the same time, with an answer or with
//! nothing, one continues and the other is told before it runs a node.
//!
//! It could break because each of them looks at the thread before it says that it continues.

use superstep::checkpoint::{
    AnyCheckpointer, CheckpointerLayer, Error, InterruptId, Operation, StorageId,
};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, Thread};

use crate::common::{Counter, Notes, NotesUpdate, line};

/// A checkpointer that lets others go first before everything it does. It does not say where it keeps things, so two graphs that
/// are given it do not know of each other's runs, like those of two processes.
#[derive(Clone, Default)]
struct Polite(AnyCheckpointer);

impl CheckpointerLayer for Polite {
    fn inner(&self) -> &AnyCheckpointer {
        &self.0
    }

    async fn around<T: Send>(
        &self,
        _: Operation,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        tokio::task::yield_now().await;
        work.await
    }

    fn storage(&self) -> Option<StorageId> {
        None
    }

    fn in_order(&self) -> bool {
        false
    }
}

fn asking(ran: &Counter) -> StateGraph<Notes> {
    let ran = ran.clone();
    let node = move |task: Task| {
        let ran = ran.clone();
        async move {
            ran.add();
            let answer: String = task.interrupt("go on?").await;
            line(answer)
        }
    };
    StateGraph::new().add_node("ask", node).add_edge(START, "ask")
}

fn around(inner: StateGraph<Notes>) -> StateGraph<Notes> {
    let inner = inner.compile().expect("a graph");
    let leave = |inner: Notes| Notes::update().lines(inner.lines);
    StateGraph::new()
        .add_node("inner", inner.as_node(|_: &Notes| Notes::update(), leave))
        .add_edge(START, "inner")
}

fn calling(ran: &Counter) -> StateGraph<Notes> {
    let ran = ran.clone();
    let node = move |task: Task| {
        let ran = ran.clone();
        async move {
            ran.add();
            let call = task.call_with("ask", |task| async move {
                Ok::<_, NodeError>(task.interrupt::<String>("go on?").await)
            });
            call.await.map(line)
        }
    };
    StateGraph::new().add_node("ask", node).add_edge(START, "ask")
}

/// The same graph in two processes.
fn apps(graph: StateGraph<Notes>) -> [CompiledGraph<Notes>; 2] {
    let (graph, checkpointer) = (graph.compile().expect("a graph"), Polite::default());
    [graph.clone(), graph].map(|graph| graph.with_checkpointer(checkpointer.clone()))
}

/// The same thread in two processes.
fn in_two_processes(graph: StateGraph<Notes>) -> (Thread<Notes>, Thread<Notes>) {
    let [here, there] = apps(graph);
    (here.thread("t"), there.thread("t"))
}

/// Asserts that one run is done with these lines and the other one is told of the conflict.
#[track_caller]
fn one_goes_on(
    a: Result<Outcome<Notes>, RunError>,
    b: Result<Outcome<Notes>, RunError>,
    lines: &[&str],
) {
    let (done, refused) = if a.is_ok() { (a, b) } else { (b, a) };
    assert_eq!(crate::common::done(done).lines, lines);
    assert!(matches!(refused, Err(RunError::Conflict { .. })), "{refused:?}");
}

#[tokio::test]
async fn with_an_answer() {
    for graph in [asking, |ran: &Counter| around(asking(ran)), calling] {
        for durability in [Durability::Sync, Durability::Exit] {
            let ran = Counter::default();
            let (here, there) = in_two_processes(graph(&ran));
            let asked = here.invoke(Notes::update()).await.expect("a run").interrupted();
            assert_eq!(asked.map(|asked| asked.len()), Some(1));
            let resume = |thread: &Thread<Notes>| thread.resume("yes").durability(durability);
            let (a, b) = tokio::join!(resume(&here), resume(&there));
            one_goes_on(a, b, &["yes"]);
            assert_eq!(ran.get(), 2, "once to ask, and once with the answer");
        }
    }
}

/// Both know which question they answer, and both give the same answer as the one before.
#[tokio::test]
async fn with_the_same_answer_again() {
    let ran = Counter::default();
    let counted = ran.clone();
    let node = move |task: Task| {
        let ran = counted.clone();
        async move {
            ran.add();
            let first: String = task.interrupt("first?").await;
            let second: String = task.interrupt("second?").await;
            Notes::update().lines([first, second])
        }
    };
    for graph in [|graph| graph, around] {
        let asks = StateGraph::new().add_node("ask", node.clone()).add_edge(START, "ask");
        let (here, there) = in_two_processes(graph(asks));
        here.invoke(Notes::update()).await.expect("a run");
        let asked = here.resume("yes").await.expect("a run").interrupted().expect("a question");
        let before = ran.get();
        let resume = |thread: &Thread<Notes>| thread.resume_all([(asked[0].id.clone(), "yes")]);
        let (a, b) = tokio::join!(resume(&here), resume(&there));
        one_goes_on(a, b, &["yes", "yes"]);
        assert_eq!(ran.get(), before + 1);
    }
}

#[tokio::test]
async fn with_nothing_after_a_failure() {
    let ran = Counter::default();
    let counted = ran.clone();
    let node = move || {
        let ran = counted.clone();
        async move {
            match ran.add() {
                0 => Err(NodeError::permanent("not now")),
                _ => Ok::<NotesUpdate, _>(line("done")),
            }
        }
    };
    let graph = StateGraph::new().add_node("work", node).add_edge(START, "work");
    let (here, there) = in_two_processes(graph);
    here.invoke(Notes::update()).await.expect_err("a failure");
    let (a, b) = tokio::join!(here.invoke(()), there.invoke(()));
    one_goes_on(a, b, &["done"]);
    assert_eq!(ran.get(), 2);
}

#[tokio::test]
async fn with_new_input() {
    let ran = Counter::default();
    let counted = ran.clone();
    let node = move || {
        counted.add();
        async { line("ran") }
    };
    let graph = StateGraph::new().add_node("work", node).add_edge(START, "work");
    let (here, there) = in_two_processes(graph);
    let (a, b) = tokio::join!(here.invoke(line("a")), there.invoke(line("b")));
    assert_eq!(usize::from(a.is_ok()) + usize::from(b.is_ok()), 1);
    assert_eq!(ran.get(), 1);
}

/// Nothing that a run does meanwhile comes before it is known that the thread is its own.
#[tokio::test]
async fn storing_meanwhile() {
    let graph = |ran: &Counter| {
        let counted = ran.clone();
        let node = move || {
            counted.add();
            async { line("ran") }
        };
        let last = || line("last");
        let graph = StateGraph::new().add_node("work", node).add_node("last", last);
        graph.add_edge(START, "work").add_edge("work", "last")
    };
    // On a new thread: input, input that is streamed with its checkpoints, a command that goes somewhere.
    for way in 0..3 {
        let ran = Counter::default();
        let [here, there] = apps(graph(&ran));
        let run = |thread: superstep::Thread<Notes>| async move {
            match way {
                0 => thread.invoke(line("in")).durability(Durability::Async).await,
                1 => {
                    let modes = [Mode::Checkpoints, Mode::Tasks];
                    let run = thread.invoke(line("in")).durability(Durability::Async);
                    run.stream(modes).into_outcome().await
                }
                _ => {
                    let command = Command::update(line("in")).goto("work");
                    thread.invoke(command).durability(Durability::Async).await
                }
            }
        };
        crate::common::done(run(here.thread("alone")).await);
        let alone = ran.get();
        let (a, b) = tokio::join!(run(here.thread("t")), run(there.thread("t")));
        assert_eq!(usize::from(a.is_ok()) + usize::from(b.is_ok()), 1, "way {way}: {a:?} {b:?}");
        let refused = a.err().or(b.err()).expect("one of them");
        assert!(matches!(refused, RunError::Conflict { .. }), "{refused:?}");
        assert_eq!(ran.get(), 2 * alone, "way {way}: the loser ran a node");
    }
}

/// A branch is new to both who begin it, and only one of them can store it on top of the same head.
#[tokio::test]
async fn on_a_branch() {
    for durability in [Durability::Sync, Durability::Async] {
        let ran = Counter::default();
        let counted = ran.clone();
        let node = move || {
            counted.add();
            async { line("ran") }
        };
        let graph = StateGraph::new().add_node("work", node).add_edge(START, "work");
        let (thread, there) = in_two_processes(graph);
        crate::common::done(thread.invoke(line("in")).await);
        let history = thread.get_state_history().raw().await.expect("a history");
        let past = history.iter().find(|at| !at.next.is_empty()).expect("before the node");
        let id = past.config.id.expect("an id");
        let branches = [thread.at(id), there.at(id)];
        for command in [false, true] {
            let before = ran.get();
            let run = |branch: &Thread<Notes>| match command {
                true => branch.invoke(Command::update(line("more"))).durability(durability),
                false => branch.invoke(()).durability(durability),
            };
            let (a, b) = tokio::join!(run(&branches[0]), run(&branches[1]));
            let lines: &[&str] = if command { &["in", "more", "ran"] } else { &["in", "ran"] };
            one_goes_on(a, b, lines);
            assert_eq!(ran.get(), before + 1, "{durability:?}: the loser ran a node");
        }
    }
}

/// A workflow has no hidden step that takes its input in.
#[tokio::test]
async fn in_a_workflow() {
    for durability in [Durability::Sync, Durability::Async] {
        let ran = Counter::default();
        let counted = ran.clone();
        let flow = superstep::func::Entrypoint::new("flow", move |n: i64, _: Task| {
            counted.add();
            async move { Ok::<i64, NodeError>(n + 1) }
        });
        let (flow, checkpointer) = (flow.compile(), Polite::default());
        let thread = || flow.clone().with_checkpointer(checkpointer.clone()).thread("t");
        let run = || thread().start(1).durability(durability);
        let (a, b) = tokio::join!(run(), run());
        assert_eq!(usize::from(a.is_ok()) + usize::from(b.is_ok()), 1, "{a:?} {b:?}");
        assert_eq!(ran.get(), 1, "{durability:?}: the loser ran");
    }
}

/// Whoever comes after an answer was taken finds no open question, whether or not the node has ended.
#[tokio::test]
async fn an_answer_that_was_taken_outlives_the_run_that_took_it() {
    for graph in [|graph| graph, around] {
        let ran = Counter::default();
        let counted = ran.clone();
        let node = move |task: Task| {
            let ran = counted.clone();
            async move {
                let answer: String = task.interrupt("go on?").await;
                if ran.add() == 0 {
                    // The process that was given the answer ends here.
                    std::future::pending::<()>().await;
                }
                line(answer)
            }
        };
        let asks = StateGraph::new().add_node("ask", node).add_edge(START, "ask");
        let (thread, _) = in_two_processes(graph(asks));
        let asked = thread.invoke(Notes::update()).await.expect("a run").interrupted();
        let id: InterruptId = asked.expect("a question")[0].id.clone();
        tokio::select! {
            biased;
            ended = thread.resume("yes") => panic!("{ended:?}"),
            () = async {
                while ran.get() == 0 {
                    tokio::task::yield_now().await;
                }
            } => {}
        }
        assert!(thread.get_state().await.expect("a state").interrupts.is_empty());
        let refused = thread.resume_all([(id, "no")]).await;
        assert!(matches!(refused, Err(RunError::Resume { .. })), "{refused:?}");
        assert_eq!(crate::common::done(thread.invoke(()).await).lines, ["yes"]);
    }
}
