//! Shows that a thread has one run at a time in a process: a second one is refused before it runs a node, whichever checkpointer it
//! uses, and what it brought is not lost. What is asked is shown while other nodes of the superstep still run, so somebody
//! may well answer at once; it would break if the second run took the thread over, as one of another process does.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use superstep::checkpoint::{AnyCheckpointer, CheckpointerLayer, Error, Operation, StorageId};
use superstep::prelude::*;
use superstep::{CompiledGraph, Data, Durability, RunStream, Thread, UpdatesEvent};
use superstep_sqlite::SqliteSaver;
use tokio::sync::Semaphore;

use crate::common::{Counter, Notes, done, line, says};

/// All durabilities.
const ALL: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// A database file that is removed in the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> Self {
        let name = format!("superstep-one-run-{name}-{}.db", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    async fn open(&self) -> AnyCheckpointer {
        AnyCheckpointer::new(SqliteSaver::open(&self.0).await.expect("a database"))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let mut path = self.0.clone().into_os_string();
            path.push(end);
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Nodes that ask and charge side by side.
#[derive(Clone)]
struct Shop {
    charged: Counter,
    /// What the first charge waits for.
    open: Arc<Semaphore>,
}

impl Shop {
    fn new() -> Self {
        Self { charged: Counter::default(), open: Arc::new(Semaphore::new(0)) }
    }

    /// Asks once for each question. Only the first charge has to wait.
    fn graph(&self, questions: &'static [&'static str]) -> CompiledGraph<Notes> {
        let shop = self.clone();
        let charge = move || {
            let shop = shop.clone();
            async move {
                if shop.charged.add() == 0 {
                    shop.open.acquire().await.expect("never closed").forget();
                }
                line("charged")
            }
        };
        let ask = move |task: Task| async move {
            let mut answers = Vec::new();
            for question in questions {
                answers.push(task.interrupt::<String>(*question).await);
            }
            Notes::update().lines(answers)
        };
        StateGraph::new()
            .add_node("ask", ask)
            .add_node("charge", charge)
            .add_edge(START, "ask")
            .add_edge(START, "charge")
            .compile()
            .expect("a graph")
    }

    fn open(&self) {
        self.open.add_permits(1);
    }
}

const UPDATES: [Mode; 1] = [Mode::Updates];

/// Runs until a question is shown.
async fn until_asked(run: &mut RunStream<Notes>) {
    while let Some(event) = run.next().await {
        if let Data::Updates(UpdatesEvent::Interrupted(_)) = event.expect("no error").data {
            return;
        }
    }
    panic!("nothing was asked");
}

/// Runs until a question is stored, which is after it is shown.
async fn until_listed(run: &mut RunStream<Notes>, thread: &Thread<Notes>) {
    loop {
        tokio::select! {
            biased;
            event = run.next() => drop(event.expect("the run has not ended").expect("no error")),
            state = thread.get_state() => if state.is_ok_and(|state| state.interrupts.len() == 1) {
                return;
            },
        }
    }
}

fn questions(outcome: Result<Outcome<Notes>, RunError>) -> Vec<String> {
    let asked = outcome.expect("a run").interrupted().expect("questions");
    asked.iter().map(|question| question.value.as_str().expect("text").to_owned()).collect()
}

#[track_caller]
fn is_busy(outcome: Result<Outcome<Notes>, RunError>) {
    let error = outcome.expect_err("another run is alive");
    assert!(matches!(&error, RunError::Busy { thread, .. } if &**thread == "t"), "{error:?}");
    says(error, &["thread `t` is busy", "try again when that run has ended"]);
}

#[tokio::test]
async fn an_answer_that_comes_too_early_is_refused_and_nothing_runs_twice() {
    for durability in ALL {
        let file = File::new(&format!("early-{durability:?}"));
        let memory = MemorySaver::new();
        let checkpointers = [
            (AnyCheckpointer::new(memory.clone()), AnyCheckpointer::new(memory)),
            (file.open().await, file.open().await),
        ];
        for (one, other) in checkpointers {
            let shop = Shop::new();
            let graph = shop.graph(&["go on?"]);
            let thread = graph.clone().with_any_checkpointer(one.clone()).thread("t");
            let other = graph.with_any_checkpointer(other).thread("t");
            let mut run = thread.invoke(Notes::update()).durability(durability).stream(UPDATES);
            until_asked(&mut run).await;
            is_busy(thread.resume("yes").await);
            is_busy(other.resume("yes").durability(durability).await);
            is_busy(other.invoke(()).await);
            is_busy(other.invoke(Notes::update()).await);
            if durability != Durability::Exit {
                until_listed(&mut run, &other).await;
                is_busy(other.resume("yes").await);
                let look = other.get_state().await.expect("a look is no run");
                assert_eq!(look.interrupts.len(), 1, "the question is open");
            }
            shop.open();
            assert_eq!(questions(run.into_outcome().await), ["go on?"]);
            assert_eq!(shop.charged.get(), 1);
            let mut lines = done(other.resume("yes").durability(durability).await).lines;
            lines.sort();
            assert_eq!(lines, ["charged", "yes"]);
            assert_eq!(shop.charged.get(), 1, "it is charged once ({durability:?})");
            one.delete_thread("t").await.expect("deleted");
        }
    }
}

/// Leaves an answer as soon as the question is listed.
async fn leave(checkpointer: &AnyCheckpointer, answer: &str) {
    loop {
        match superstep::answer(checkpointer, "t", None, answer).await {
            Ok(_) => return,
            Err(RunError::Resume { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_left_meanwhile_is_taken_up_when_the_superstep_stops() {
    for durability in [Durability::Sync, Durability::Async] {
        let file = File::new(&format!("left-{durability:?}"));
        for checkpointer in [AnyCheckpointer::new(MemorySaver::new()), file.open().await] {
            let shop = Shop::new();
            let graph =
                shop.graph(&["first?", "second?"]).with_any_checkpointer(checkpointer.clone());
            let thread = graph.thread("t");
            let run = thread.invoke(Notes::update()).durability(durability).stream(UPDATES);
            let answers = async {
                leave(&checkpointer, "one").await;
                shop.open();
            };
            let (ended, ()) = tokio::join!(run.into_outcome(), answers);
            assert_eq!(questions(ended), ["second?"], "the first is answered ({durability:?})");
            assert_eq!(shop.charged.get(), 1);
            let open = thread.get_state().await.expect("a state").interrupts.len();
            assert_eq!(open, 1);
            let mut lines = done(thread.resume("two").durability(durability).await).lines;
            lines.sort();
            assert_eq!(lines, ["charged", "one", "two"]);
            assert_eq!(shop.charged.get(), 1);
        }
    }
}

#[tokio::test]
async fn an_answer_that_is_left_for_a_graph_inside_is_taken_up_too() {
    let shop = Shop::new();
    let inner = StateGraph::<Notes>::new()
        .add_node("ask", |task: Task| async move { line(task.interrupt::<String>("go on?").await) })
        .add_edge(START, "ask")
        .compile()
        .expect("a graph");
    let leave_inner = |inner: Notes| Notes::update().lines(inner.lines);
    let charge = shop.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("inner", inner.as_node(|_: &Notes| Notes::update(), leave_inner))
        .add_node("charge", move || {
            let shop = charge.clone();
            async move {
                shop.charged.add();
                shop.open.acquire().await.expect("never closed").forget();
                line("charged")
            }
        })
        .add_edge(START, "inner")
        .add_edge(START, "charge");
    let checkpointer = AnyCheckpointer::new(MemorySaver::new());
    let thread =
        graph.compile().expect("a graph").with_any_checkpointer(checkpointer.clone()).thread("t");
    let answers = async {
        leave(&checkpointer, "yes").await;
        shop.open();
    };
    let (ended, ()) = tokio::join!(thread.invoke(Notes::update()), answers);
    assert_eq!(done(ended).lines, ["charged", "yes"]);
    assert_eq!(shop.charged.get(), 1);
}

/// A checkpointer of another process: nobody knows that it keeps the same threads. It can be made to panic.
#[derive(Clone)]
struct Elsewhere {
    inner: AnyCheckpointer,
    storage: Option<StorageId>,
    panics: Arc<AtomicBool>,
}

impl Elsewhere {
    fn new(inner: &AnyCheckpointer) -> Self {
        Self { inner: inner.clone(), storage: None, panics: Arc::default() }
    }
}

impl CheckpointerLayer for Elsewhere {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    fn storage(&self) -> Option<StorageId> {
        self.storage
    }

    fn in_order(&self) -> bool {
        false
    }

    async fn around<T: Send>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let stores = matches!(operation, Operation::Put | Operation::PutAll);
        assert!(!stores || !self.panics.load(Ordering::SeqCst), "a checkpointer that is broken");
        work.await
    }
}

/// A thread as another process has it.
fn elsewhere(graph: &CompiledGraph<Notes>, checkpointer: &AnyCheckpointer) -> Thread<Notes> {
    graph.clone().with_checkpointer(Elsewhere::new(checkpointer)).thread("t")
}

/// Without leases nobody can know that the other process is alive. But it must not report as open what was answered.
#[tokio::test]
async fn a_run_that_another_process_has_taken_over_reports_a_conflict() {
    for durability in ALL {
        let file = File::new(&format!("over-{durability:?}"));
        for checkpointer in [AnyCheckpointer::new(MemorySaver::new()), file.open().await] {
            let shop = Shop::new();
            let graph = shop.graph(&["first?", "second?"]);
            let (here, there) =
                (elsewhere(&graph, &checkpointer), elsewhere(&graph, &checkpointer));
            // The first question is stored, and the charge has not end.
            let mut dropped = here.invoke(Notes::update()).stream(UPDATES);
            until_listed(&mut dropped, &here).await;
            drop(dropped);
            shop.charged.reset();
            let mut run = here.resume("one").durability(durability).stream(UPDATES);
            until_asked(&mut run).await;
            assert_eq!(questions(there.invoke(()).durability(durability).await), ["second?"]);
            shop.open();
            let outcome = run.into_outcome().await;
            assert!(
                matches!(outcome, Err(RunError::Conflict { .. })),
                "{durability:?}: {outcome:?}"
            );
            let ended = done(there.resume("two").durability(durability).await);
            assert_eq!(ended.lines.len(), 3, "{:?}", ended.lines);
        }
    }
}

#[tokio::test]
async fn a_node_cannot_run_the_thread_it_is_on() {
    let checkpointer = MemorySaver::new();
    let inner = checkpointer.clone();
    let graph = StateGraph::<Notes>::new()
        .add_node("again", move |notes: Arc<Notes>| {
            let checkpointer = inner.clone();
            async move {
                if !notes.lines.is_empty() {
                    return Ok(Notes::update());
                }
                let graph = StateGraph::<Notes>::new()
                    .add_node("same", || line("never"))
                    .add_edge(START, "same")
                    .compile()?;
                let outcome =
                    graph.with_checkpointer(checkpointer).thread("t").invoke(line("in")).await;
                is_busy(outcome);
                Ok::<_, NodeError>(line("refused"))
            }
        })
        .add_edge(START, "again")
        .compile()
        .expect("a graph")
        .with_checkpointer(checkpointer);
    assert_eq!(done(graph.thread("t").invoke(Notes::update()).await).lines, ["refused"]);
}

#[tokio::test]
async fn a_run_that_is_dropped_or_panics_leaves_the_thread_free() {
    let checkpointer = Elsewhere {
        storage: Some(StorageId::unique()),
        ..Elsewhere::new(&AnyCheckpointer::new(MemorySaver::new()))
    };
    let shop = Shop::new();
    let graph = shop.graph(&["go on?"]);
    let thread = graph.with_checkpointer(checkpointer.clone()).thread("t");
    let mut run = thread.invoke(Notes::update()).stream(UPDATES);
    until_asked(&mut run).await;
    is_busy(thread.invoke(()).await);
    drop(run);
    assert_eq!(questions(thread.invoke(()).await), ["go on?"]);
    let broken = thread.clone();
    checkpointer.panics.store(true, Ordering::SeqCst);
    let panicked = tokio::spawn(async move { broken.resume("yes").await.map(drop) }).await;
    assert!(panicked.expect_err("a panic").is_panic());
    checkpointer.panics.store(false, Ordering::SeqCst);
    assert_eq!(done(thread.invoke(()).await).lines, ["yes", "charged"]);
}

/// A spawned node notices that its run was dropped when it next awaits something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_run_waits_until_spawned_nodes_of_a_dropped_one_have_stopped() {
    let (inside, begun, go) =
        (Counter::default(), Counter::default(), Arc::new(AtomicBool::new(false)));
    let (counting, beginning, going) = (inside.clone(), begun.clone(), go.clone());
    let graph = StateGraph::<Notes>::new()
        .add_node("busy", move || {
            let nth = counting.add();
            beginning.add();
            while nth == 0 && !going.load(Ordering::SeqCst) {
                std::thread::yield_now();
            }
            line(format!("{nth} {}", going.load(Ordering::SeqCst)))
        })
        .spawned()
        .add_edge(START, "busy")
        .compile()
        .expect("a graph")
        .with_checkpointer(MemorySaver::new());
    let thread = graph.thread("t");
    let first = tokio::spawn({
        let thread = thread.clone();
        async move { thread.invoke(Notes::update()).await.map(drop) }
    });
    while begun.get() == 0 {
        tokio::task::yield_now().await;
    }
    first.abort();
    assert!(first.await.expect_err("it was dropped").is_cancelled());
    let second = tokio::spawn(async move { thread.invoke(()).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(inside.get(), 1, "the second run has not begun a node");
    go.store(true, Ordering::SeqCst);
    assert_eq!(done(second.await.expect("no panic")).lines, ["1 true"]);
}
