//! Shows what `Durability::Async` promises: supersteps are stored in order while the next one runs, everything is stored when
//! the run returns, what cannot be stored fails the run, and a process that ends loses the last superstep at most.
//!
//! It could break if something overtook what is being stored, if a run went further ahead, or if it ended without waiting.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use superstep::checkpoint::{
    AnyCheckpointer, CheckpointId, CheckpointerLayer, Error, Put, StorageId, TaskWrites,
};
use superstep::prelude::*;
use superstep::{CompiledGraph, Durability, Memory, RunControl};
use tokio::time::Instant;

use crate::common::{Counter, Notes, done, line, ms, next, sleep};
use crate::world::{Watched, failed};

/// A checkpointer that takes a second for everything, and may fail or never come back at a checkpoint.
#[derive(Clone, Default)]
struct Slow {
    inner: AnyCheckpointer,
    stored: Arc<Mutex<Vec<String>>>,
    fails_at: Option<i64>,
    hangs_at: Option<i64>,
    /// Those who ask are served one after the other, if there is a queue.
    queue: Option<Arc<tokio::sync::Mutex<()>>>,
    /// How many checkpoints were asked for before the one they continue was stored.
    asked_ahead: Counter,
}

impl Slow {
    /// One that may be asked ahead, and one that may not.
    fn both() -> [Self; 2] {
        [Self::default(), Self { queue: Some(Arc::default()), ..Self::default() }]
    }

    /// Waits for those who asked before.
    async fn turn(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match &self.queue {
            Some(queue) => Some(queue.lock().await),
            None => None,
        }
    }

    /// As another process finds it.
    fn mended(&self) -> Self {
        let queue = self.queue.as_ref().map(|_| Arc::default());
        Self { fails_at: None, hangs_at: None, queue, ..self.clone() }
    }

    fn stored(&self) -> Vec<String> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, what: String) {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

impl CheckpointerLayer for Slow {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    /// Each of them stands for another process.
    fn storage(&self) -> Option<StorageId> {
        None
    }

    async fn put(&self, put: Put) -> Result<(), Error> {
        let (ns, step) =
            (put.ns.split(':').next().unwrap_or_default().to_owned(), put.metadata.step);
        let head = self.inner.get(&put.thread, &put.ns, None).await?;
        if head.map(|head| head.checkpoint.id) != put.head {
            self.asked_ahead.add();
        }
        let _turn = self.turn().await;
        sleep(1000).await;
        if self.hangs_at == Some(step) {
            std::future::pending::<()>().await;
        }
        if self.fails_at == Some(step) {
            return Err(Error::backend("cannot store", "the disk is full"));
        }
        self.inner.put(put).await?;
        self.note(format!("{ns} {step}").trim().to_owned());
        Ok(())
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        for put in puts {
            CheckpointerLayer::put(self, put).await?;
        }
        Ok(())
    }

    fn in_order(&self) -> bool {
        self.queue.is_some()
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let _turn = self.turn().await;
        sleep(1000).await;
        let count = writes.len();
        self.inner.put_writes(thread, ns, checkpoint, writes).await?;
        self.note(format!("writes of {count}"));
        Ok(())
    }
}

/// Five nodes that take some time each.
fn chain(checkpointer: &Slow, ran: &Counter, each: u64) -> CompiledGraph<Notes> {
    let mut graph = StateGraph::new().add_edge(START, "1");
    for name in ["1", "2", "3", "4", "5"] {
        let ran = ran.clone();
        graph = graph.add_node(name, move || {
            ran.add();
            async move {
                sleep(each).await;
                line(name)
            }
        });
    }
    for pair in ["1", "2", "3", "4", "5"].windows(2) {
        graph = graph.add_edge(pair[0], pair[1]);
    }
    graph.compile().expect("a graph").with_checkpointer(checkpointer.clone())
}

#[tokio::test(start_paused = true)]
async fn supersteps_are_stored_in_order_while_the_next_one_runs() {
    let ran = Counter::default();
    for checkpointer in Slow::both() {
        let thread = chain(&checkpointer, &ran, 1000).thread("t");
        let began = Instant::now();
        let notes = done(thread.invoke(line("in")).durability(Durability::Async).await);
        assert_eq!(notes.lines, ["in", "1", "2", "3", "4", "5"]);
        let all = ["-1", "0", "1", "2", "3", "4", "5"];
        assert_eq!(checkpointer.stored(), all, "all of it, when it returns");
        // The input and the hidden first superstep take no time of their own, the last checkpoint nothing to run beside.
        assert!(began.elapsed() <= ms(8000), "{:?}", began.elapsed());
        assert_eq!(thread.get_state().await.expect("a look").state().lines, notes.lines);
    }

    let began = Instant::now();
    let again = chain(&Slow::default(), &ran, 1000).thread("t");
    done(again.invoke(line("in")).durability(Durability::Sync).await);
    assert_eq!(began.elapsed(), Duration::from_secs(12), "one after the other");
}

/// A checkpointer that has the next checkpoint before it is done with the last need not wait for the run in between.
#[tokio::test(start_paused = true)]
async fn a_checkpointer_that_keeps_the_order_is_asked_ahead() {
    for checkpointer in Slow::both() {
        let ran = Counter::default();
        let thread = chain(&checkpointer, &ran, 10).thread("t");
        done(thread.invoke(line("in")).durability(Durability::Async).await);
        // While the nodes take less time than the checkpointer. The first one runs when its input is stored.
        let expected = if checkpointer.in_order() { 4 } else { 0 };
        assert_eq!(checkpointer.asked_ahead.get(), expected);
        assert_eq!(checkpointer.stored(), ["-1", "0", "1", "2", "3", "4", "5"]);
    }
}

/// What is asked for is that it survives the process, and with it every superstep of a subgraph.
#[tokio::test]
async fn only_what_is_stored_meanwhile_need_not_wait_for_the_disk() {
    let inner = StateGraph::<Notes>::new()
        .add_node("inner", || line("inner"))
        .add_edge(START, "inner")
        .compile()
        .expect("a graph");
    for (durability, relaxed) in
        [(Durability::Sync, false), (Durability::Async, true), (Durability::Exit, false)]
    {
        let checkpointer = Watched::default();
        let graph = StateGraph::<Notes>::new()
            .add_node("outer", inner.clone())
            .add_edge(START, "outer")
            .compile()
            .expect("a graph");
        let thread = graph.with_checkpointer(checkpointer.clone()).thread("t");
        done(thread.invoke(line("in")).durability(durability).await);
        let expected = if relaxed { checkpointer.stored().len() } else { 0 };
        assert!(!checkpointer.stored().is_empty());
        assert_eq!(checkpointer.stored_relaxed(), expected, "{durability:?}");
    }
}

/// Writes of tasks come after the checkpoint they belong to, and before the next one.
#[tokio::test(start_paused = true)]
async fn writes_of_tasks_are_stored_in_their_place() {
    let checkpointer = Slow::default();
    let note = |time: u64| {
        move || async move {
            sleep(time).await;
            line(time.to_string())
        }
    };
    let graph = StateGraph::new()
        .add_node("a", note(500))
        .add_node("b", note(2500))
        .add_node("c", note(5000))
        .add_node("after", || line("after"))
        .add_edge(START, "a")
        .add_edge(START, "b")
        .add_edge(START, "c")
        .add_edge(["a", "b", "c"], "after");
    let thread =
        graph.compile().expect("a graph").with_checkpointer(checkpointer.clone()).thread("t");
    done(thread.invoke(line("in")).durability(Durability::Async).await);
    let expected = ["-1", "0", "writes of 1", "writes of 1", "1", "2"];
    assert_eq!(checkpointer.stored(), expected);
}

/// F30: the reference tells of the failure when all nodes have run.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_stored_fails_the_run() {
    for (step, checkpointer) in
        (-1..=5).flat_map(|step| Slow::both().map(|checkpointer| (step, checkpointer)))
    {
        let checkpointer = Slow { fails_at: Some(step), ..checkpointer };
        let ran = Counter::default();
        let thread = chain(&checkpointer, &ran, 1000).thread("t");
        let (error, text) = failed(thread.invoke(line("in")).durability(Durability::Async).await);
        assert!(matches!(error, RunError::Checkpoint(_)), "{error:?}");
        assert!(text.contains("the disk is full"), "{text}");
        // The node after the superstep has begun when its checkpoint fails, and no other one.
        assert!(i64::from(ran.get()) <= (step + 1).clamp(0, 5), "{} ran, {step}", ran.get());

        let thread = chain(&checkpointer.mended(), &ran, 1).thread("t");
        let begun = thread.get_state().await.expect("a look").metadata.is_some();
        let run = if begun { thread.invoke(()) } else { thread.invoke(line("in")) };
        assert_eq!(done(run.await).lines, ["in", "1", "2", "3", "4", "5"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_loses_one_superstep_at_most() {
    for (step, checkpointer) in
        (0..=5).flat_map(|step| Slow::both().map(|checkpointer| (step, checkpointer)))
    {
        let checkpointer = Slow { hangs_at: Some(step), ..checkpointer };
        let ran = Counter::default();
        let thread = chain(&checkpointer, &ran, 10).thread("t");
        let run = thread.invoke(line("in")).durability(Durability::Async);
        let ended = tokio::time::timeout(Duration::from_secs(3600), run).await;
        assert!(ended.is_err(), "it waits for what is being stored");
        let begun = i64::from(ran.get());
        assert!(begun <= step + 1, "no run gets further ahead: {begun}, {step}");

        let thread = chain(&checkpointer.mended(), &ran, 1).thread("t");
        let seen = thread.get_state().await.expect("a look");
        assert_eq!(seen.metadata.as_ref().expect("it has begun").step, step - 1);
        let before = ran.get();
        assert_eq!(done(thread.invoke(()).await).lines, ["in", "1", "2", "3", "4", "5"]);
        // Checkpoint `step` holds what node `step` wrote; so that one and those after it run.
        assert_eq!(i64::from(ran.get() - before), 5 - (step - 1).max(0));
    }
}

/// A question, a failure and a drain are told when everything is stored.
#[tokio::test(start_paused = true)]
async fn however_the_run_ends() {
    let ask = |task: Task| async move { line(task.interrupt::<String>("go on?").await) };
    let graph = StateGraph::new()
        .add_node("first", || line("first"))
        .add_node("ask", ask)
        .add_node("bad", || Err::<(), _>("broken"))
        .add_node("drain", |task: Task| {
            task.control().request_drain("deploy");
            line("drain")
        })
        .add_node("end", || line("end"))
        .add_edge(START, "first")
        .add_conditional_edges("first", ["ask", "bad", "drain"], |notes: &Notes| {
            notes.lines[0].clone()
        })
        .add_edge("drain", "end");
    let app = graph.compile().expect("a graph");
    let ends = [("ask", 1), ("bad", 1), ("drain", 2)];
    for (checkpointer, (end, step)) in
        Slow::both().iter().flat_map(|checkpointer| ends.map(|end| (checkpointer, end)))
    {
        let thread = app.clone().with_checkpointer(checkpointer.clone()).thread(end);
        let run = thread.invoke(line(end)).durability(Durability::Async).control(RunControl::new());
        let ended = run.await;
        let before = checkpointer.stored();
        sleep(60_000).await;
        assert_eq!(checkpointer.stored(), before, "nothing is stored any more: {ended:?}");
        let seen = thread.get_state().await.expect("a look");
        assert_eq!(seen.metadata.as_ref().expect("it has begun").step, step);
        let stands = if end == "drain" { "end" } else { end };
        assert_eq!(next(&seen), [stands]);
        assert_eq!(seen.interrupts.len(), usize::from(end == "ask"));
        assert_eq!(seen.tasks[0].error.is_some(), end == "bad");
    }
}

/// What a subgraph has done is not stored before the superstep that the task belongs to.
#[tokio::test(start_paused = true)]
async fn a_graph_inside_waits_for_the_one_around_it() {
    let inner = StateGraph::<Notes>::new()
        .add_node("x", || line("x"))
        .add_edge(START, "x")
        .memory(Memory::PerThread)
        .compile()
        .expect("a graph");
    let leave = |inner: Notes| Notes::update().lines(inner.lines);
    let graph = StateGraph::new()
        .add_node("inner", inner.as_node(|_: &Notes| Notes::update(), leave))
        .add_edge(START, "inner");
    let graph = graph.compile().expect("a graph");
    for checkpointer in Slow::both() {
        let thread = graph.clone().with_checkpointer(checkpointer.clone()).thread("t");
        done(thread.invoke(line("in")).durability(Durability::Async).await);
        assert_eq!(checkpointer.stored(), ["-1", "0", "inner -1", "inner 0", "inner 1", "1"]);
    }
}
