use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use superstep_checkpoint::Value;

use super::input::Input;
use super::options::{RunOptions, Target};
use super::stream::RunStream;
use crate::engine::BreakAt;
use crate::engine::Mode;
use crate::engine::Outcome;
use crate::engine::{Durability, RunControl};
use crate::error::RunError;
use crate::node::BoxFuture;
use crate::state::State;

/// A run of a graph: await it, spawn it, or [stream](Run::stream) its events.
///
/// [`invoke`](crate::Thread::invoke) and [`resume`](crate::Thread::resume) return one. It is a future, so that it can be
/// passed to `tokio::spawn`, `select!` or a timeout. Nothing runs before it is polled.
///
/// ```
/// # use superstep::prelude::*;
/// # #[derive(State, Clone, Default)]
/// # struct Payment { amount: i64, status: String }
/// # async fn pay(payment: Arc<Payment>, task: Task) -> PaymentUpdate {
/// #     let approved: bool = task.interrupt("Pay?").await;
/// #     Payment::update().status(if approved { "paid" } else { "declined" })
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let app = StateGraph::new().add_node("pay", pay).add_edge(START, "pay").compile()?;
/// # let thread = app.with_checkpointer(MemorySaver::new()).thread("invoice-7");
/// use superstep::Data;
///
/// let asked = tokio::spawn(thread.invoke(Payment::update().amount(250))).await??;
/// assert!(matches!(asked, Outcome::Interrupted(_)));
///
/// let mut run = thread.resume(true).stream([Mode::Updates]);
/// while let Some(event) = run.next().await {
///     match event?.data {
///         Data::Updates(update) => println!("{update:?}"),
///         Data::Outcome(outcome) => assert_eq!(outcome.done().unwrap().status, "paid"),
///         _ => {}
///     }
/// }
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// Dropping it stops the run: what was stored stays, and the thread continues from there with no input.
///
/// A thread has one run at a time in a process: while another one is alive, this one ends with
/// [`RunError::Busy`](crate::RunError::Busy).
#[must_use = "a run does nothing until it is awaited or its events are taken"]
pub struct Run<S: State, O = S> {
    phase: Phase<S, O>,
}

enum Phase<S: State, O> {
    Ready(Box<Request<S, O>>),
    Running(BoxFuture<Result<Outcome<O>, RunError>>),
    Over,
}

/// The graph, thread and options of a run.
pub(super) struct Request<S: State, O> {
    pub(super) target: Target<S, O>,
    pub(super) input: Input,
    pub(super) options: RunOptions,
}

impl<S: State, O> fmt::Debug for Run<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut run = f.debug_struct("Run");
        if let Phase::Ready(request) = &self.phase {
            run.field("target", &request.target).field("input", &request.input);
        }
        run.finish_non_exhaustive()
    }
}

impl<S: State, O> Run<S, O> {
    pub(crate) fn new(target: Target<S, O>, input: Input) -> Self {
        let request = Request { target, input, options: RunOptions::default() };
        Self { phase: Phase::Ready(Box::new(request)) }
    }

    fn into_request(self) -> Request<S, O> {
        match self.phase {
            Phase::Ready(request) => *request,
            Phase::Running(_) | Phase::Over => panic!("{STARTED}"),
        }
    }

    fn options(&mut self) -> &mut RunOptions {
        match &mut self.phase {
            Phase::Ready(request) => &mut request.options,
            Phase::Running(_) | Phase::Over => panic!("{STARTED}"),
        }
    }

    /// Streams the events of the run. The last event is [`Data::Outcome`](crate::Data::Outcome),
    /// whatever the modes.
    ///
    /// # Panics
    /// The run was polled before.
    #[doc(alias = "astream")]
    #[doc(alias = "stream_mode")]
    pub fn stream(self, modes: impl IntoIterator<Item = Mode>) -> RunStream<S, O> {
        RunStream::new(self.into_request(), modes.into_iter().collect())
    }

    /// The maximum number of supersteps of the run. With `u64::MAX` there is no limit.
    pub fn recursion_limit(mut self, limit: u64) -> Self {
        self.options().recursion_limit = Some(limit);
        self
    }

    /// The maximum number of tasks of one graph that run at the same time.
    pub fn max_concurrency(mut self, tasks: usize) -> Self {
        self.options().max_concurrency = Some(tasks);
        self
    }

    /// When the run stores its progress.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.options().durability = durability;
        self
    }

    /// Adds a value to the context of this run, which nodes take as [`Ctx<T>`](crate::Ctx). It
    /// replaces the graph's value of this type.
    pub fn context<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.options().context.insert(value);
        self
    }

    /// Connects the run to a control that can stop it.
    pub fn control(mut self, control: RunControl) -> Self {
        self.options().control = Some(control);
        self
    }

    /// Stops before these nodes, in place of those the graph was compiled with.
    pub fn interrupt_before(mut self, nodes: impl Into<BreakAt>) -> Self {
        self.options().before = Some(nodes.into().0);
        self
    }

    /// Stops after these nodes, in place of those the graph was compiled with.
    pub fn interrupt_after(mut self, nodes: impl Into<BreakAt>) -> Self {
        self.options().after = Some(nodes.into().0);
        self
    }

    /// Attaches a value to every checkpoint of the run.
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.options().metadata.insert(key.into(), value.into());
        self
    }
}

const STARTED: &str = "options of a run are given before it is polled";

impl<S: State, O> Unpin for Run<S, O> {}

impl<S: State, O: Send + 'static> Future for Run<S, O> {
    type Output = Result<Outcome<O>, RunError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if matches!(this.phase, Phase::Ready(_)) {
            let ready = std::mem::replace(&mut this.phase, Phase::Over);
            let request = Self { phase: ready }.into_request();
            let keys: Arc<[usize]> = request.target.graph.inner().layout.output.clone().into();
            let Request { target, input, options } = request;
            this.phase = Phase::Running(Box::pin(target.drive(input, options, None, keys)));
        }
        let Phase::Running(run) = &mut this.phase else {
            panic!("a run was polled after it had ended")
        };
        let Poll::Ready(ended) = run.as_mut().poll(cx) else { return Poll::Pending };
        this.phase = Phase::Over;
        Poll::Ready(ended)
    }
}
