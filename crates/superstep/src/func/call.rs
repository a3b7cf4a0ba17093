use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep_checkpoint::{
    AnyCache, Blob, CacheKey, Error, Interrupt, Map, TaskId, TaskWrites, Value, from_value,
    to_value,
};
use tokio::sync::oneshot;

use crate::engine::{
    Attempt, Inflight, Started, Suspension, Task, TaskFuture, TaskResult, Write, cache_key,
    keep_cached, look_up_cached, missed_cached, names, next_attempt, run_watched, started,
};
use crate::engine::{CachePolicy, RetryPolicy, TimeoutPolicy};
use crate::error::NodeError;
use crate::state::Payload;

/// A result type of recorded calls.
pub trait Recordable: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + Send + Sync + 'static> Recordable for T {}

/// A `Result` type, split into its two types: what the function of a recorded call returns.
#[diagnostic::on_unimplemented(
    message = "a recorded call returns a `Result`, not `{Self}`",
    note = "return `Result<T, NodeError>`"
)]
pub trait Fallible {
    /// What it is if all went well.
    type Value;
}

impl<T, E> Fallible for Result<T, E> {
    type Value = T;
}

/// Arguments as data, for [`Call::recorded_args`]: a tuple becomes a list.
///
/// # Errors
/// Their `Serialize` fails.
pub fn arguments(args: &impl Serialize) -> Result<Value, Error> {
    match to_value(args)? {
        Value::Null => Ok(Value::List(Vec::new())),
        args => Ok(args),
    }
}

type Make<'a, T> = Box<dyn Fn(Task) -> TaskFuture<'a, T> + Send + Sync + 'a>;

/// A call whose result is recorded: after an interrupt or a crash it returns the recorded result
/// instead of running again.
///
/// Made by [`Task::call`]; await it. A call that has started must be awaited to completion, or
/// [spawned](Self::spawn).
#[must_use = "a call does nothing until it is awaited or spawned"]
pub struct Call<'a, T> {
    caller: Task,
    name: Arc<str>,
    index: usize,
    make: Make<'a, T>,
    args: Option<Result<Args, Error>>,
    retry: Vec<RetryPolicy>,
    timeout: Option<TimeoutPolicy>,
    cache: Option<CachePolicy>,
}

/// The arguments of a call.
struct Args {
    shown: Value,
    /// What they come to.
    fingerprint: Value,
}

impl Args {
    fn new(args: Value) -> Result<Self, Error> {
        let shown = match args {
            Value::List(list) => Value::List(list),
            one => Value::List(vec![one]),
        };
        Ok(Self { fingerprint: fingerprint(&shown)?, shown })
    }
}

impl<T> fmt::Debug for Call<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("name", &self.name)
            .field("index", &self.index)
            .finish_non_exhaustive()
    }
}

impl Task {
    /// A recorded call: `function` succeeds at most once for this task, across interrupts, crashes
    /// and retries.
    ///
    /// Calls are told apart by their name and the order in which they are made, so a node must make the same calls when it
    /// runs again with the same input and answers.
    ///
    /// `function` is an [`Fn`] because it may run several times, after a crash or a failed attempt. Clone what it consumes:
    /// `task.call("send", || send(client.clone()))`.
    #[doc(alias = "task")]
    pub fn call<'a, F, R, T, E>(&self, name: impl Into<Arc<str>>, function: F) -> Call<'a, T>
    where
        F: Fn() -> R + Send + Sync + 'a,
        R: Future<Output = Result<T, E>> + Send + 'a,
        T: Recordable,
        E: Into<NodeError>,
    {
        self.call_with(name, move |_| function())
    }

    /// As [`call`](Self::call), for a function that uses the task of the call itself: to ask, to emit, to make calls of
    /// its own.
    pub fn call_with<'a, F, R, T, E>(&self, name: impl Into<Arc<str>>, function: F) -> Call<'a, T>
    where
        F: Fn(Task) -> R + Send + Sync + 'a,
        R: Future<Output = Result<T, E>> + Send + 'a,
        T: Recordable,
        E: Into<NodeError>,
    {
        Call {
            caller: self.clone(),
            name: name.into(),
            index: self.next_call(),
            make: Box::new(move |task| {
                let future = function(task);
                Box::pin(async move { future.await.map_err(Into::into) })
            }),
            args: None,
            retry: Vec::new(),
            timeout: None,
            cache: None,
        }
    }
}

impl<'a, T: Recordable> Call<'a, T> {
    /// The arguments of the call: shown in streams, the key of its cached result, and compared when
    /// the call returns its record. If they differ, the record belongs to another call, and the
    /// node fails.
    ///
    /// If they cannot be serialized, the call fails without running.
    pub fn args(self, args: impl Serialize) -> Self {
        self.recorded_args(to_value(&args))
    }

    /// As [`args`](Self::args), with [arguments](arguments) that are already serialized, or the
    /// serialization error.
    pub fn recorded_args(mut self, args: Result<Value, Error>) -> Self {
        self.args = Some(args.and_then(Args::new));
        self
    }

    /// An idempotency key for external services, the same each time this call runs. See
    /// [`Task::idempotency_key`].
    pub fn idempotency_key(&self) -> String {
        self.caller.child(self.name.clone(), self.index).idempotency_key()
    }

    /// The arguments, if the call was given any.
    fn known_args(&self) -> Result<Option<&Args>, NodeError> {
        let args = self.args.as_ref().map(Result::as_ref).transpose();
        args.map_err(|error| self.unrecordable("arguments", error))
    }

    fn shown_args(&self) -> Result<Value, NodeError> {
        let args = self.known_args()?;
        Ok(args.map_or_else(|| Value::List(Vec::new()), |args| args.shown.clone()))
    }

    fn unrecordable(&self, what: &str, error: &Error) -> NodeError {
        let (index, name, caller) = (self.index, &self.name, self.caller.name());
        NodeError::permanent(format!(
            "the {what} of call {index} of `{caller}`, `{name}`, cannot be recorded: {error}"
        ))
    }

    /// Tries again when the call fails.
    pub fn retry(mut self, policy: impl Into<RetryPolicy>) -> Self {
        self.retry.push(policy.into());
        self
    }

    /// Limits the time of one attempt.
    pub fn timeout(mut self, policy: TimeoutPolicy) -> Self {
        self.timeout = Some(policy);
        self
    }

    /// Reuses the result of an equal earlier call, on any thread, if the graph has a cache.
    pub fn cache(mut self, policy: CachePolicy) -> Self {
        self.cache = Some(policy);
        self
    }

    /// Runs the call, or returns its record. Returns `None` if the call is interrupted: then the
    /// caller is, too.
    async fn run(self, inflight: Inflight) -> Option<Result<T, NodeError>> {
        match self.run_or_replay().await {
            Ok(TaskResult::Returned(value)) => Some(Ok(value)),
            Err(error) => Some(Err(error)),
            Ok(TaskResult::Suspended(suspension)) => {
                drop(inflight);
                self.caller.suspend_with(*suspension);
                None
            }
        }
    }

    async fn run_or_replay(&self) -> Result<TaskResult<T>, NodeError> {
        self.caller.note_progress();
        let task = self.caller.child(self.name.clone(), self.index);
        let superstep = task.inner.superstep.clone();
        let (returned, failed) = (task.stored().returned, task.failed_before());
        if returned.is_none()
            && failed.is_none()
            && let Some(drained) = drained(&task)
        {
            return Ok(drained);
        }
        superstep.work().calls.insert(self.name.clone());
        let input = Value::List(vec![self.shown_args()?, Value::Map(Map::new())]);
        superstep.setting.emitter.task_start(&task, task.step(), &input, &[names::PUSH.into()]);
        if let Some(returned) = returned {
            self.check_args(&task)?;
            return self.replay(returned).map(TaskResult::Returned);
        }
        if let Some(error) = failed {
            self.check_args(&task)?;
            return Err(error);
        }
        let cache = superstep.setting.cache();
        let key = cache.map(|_| self.cache_key(&task)).transpose()?.flatten();
        if let Some(returned) = self.cached(key.as_ref(), cache).await? {
            self.keep(&task, vec![(names::RETURN, returned.clone())]).await?;
            let writes = [Write::Return(Payload::new(returned.clone()))];
            superstep.setting.emitter.update(&task, None, &writes, true)?;
            return self.replay(returned).map(TaskResult::Returned);
        }
        task.take_call_slot().await;
        if let Some(drained) = drained(&task) {
            task.leave_call_slot();
            return Ok(drained);
        }
        let ended = self.storable(self.attempts(&task).await);
        task.leave_call_slot();
        // A result that cannot be recorded is a failure of the call.
        let ended = ended.and_then(|ran| match ran {
            TaskResult::Returned(value) => {
                let returned = to_value(&value).map_err(|e| self.unrecordable("result", &e))?;
                Ok(TaskResult::Returned((value, returned)))
            }
            TaskResult::Suspended(suspension) => Ok(TaskResult::Suspended(suspension)),
        });
        self.remember(&task, &ended)?;
        match ended {
            Ok(TaskResult::Returned((value, returned))) => {
                let writes = [Write::Return(Payload::new(value.clone()))];
                let mut stored = vec![(names::RETURN, returned.clone())];
                if let Some(answers) = task.answers() {
                    stored.push((names::RESUME, Value::List(answers)));
                }
                self.keep(&task, stored).await?;
                if let (Some(key), Some(cache)) = (key, cache) {
                    let ttl = self.cache.as_ref().and_then(|policy| policy.ttl);
                    let kept = vec![(names::RETURN.into(), Blob::from_value(&returned)?)];
                    keep_cached(cache, key, kept, ttl, self.is_strict()).await?;
                }
                superstep.setting.emitter.update(&task, None, &writes, false)?;
                superstep.setting.emitter.task_end(&task, task.step(), &writes, None, &[])?;
                self.caller.note_progress();
                Ok(TaskResult::Returned(value))
            }
            Ok(TaskResult::Suspended(suspension)) => {
                let questions = &suspension.questions;
                if !questions.is_empty() {
                    let mut stored = vec![(names::INTERRUPT, Interrupt::list_to(questions))];
                    if let Some(answers) = task.answers() {
                        stored.push((names::RESUME, Value::List(answers)));
                    }
                    self.keep(&task, stored).await?;
                }
                Ok(TaskResult::Suspended(suspension))
            }
            Err(error) => {
                superstep.setting.emitter.task_end(&task, task.step(), &[], Some(&error), &[])?;
                self.keep(&task, vec![(names::ERROR, Value::from(error.stored()))]).await?;
                Err(error)
            }
        }
    }

    /// A call whose result cannot be stored has failed: it would have no record.
    fn storable(
        &self,
        ended: Result<TaskResult<T>, NodeError>,
    ) -> Result<TaskResult<T>, NodeError> {
        if let Ok(TaskResult::Returned(value)) = &ended
            && let Err(error) = to_value(value).and_then(|value| Blob::from_value(&value))
        {
            let text = format!("call `{}` gave a result that cannot be stored: {error}", self.name);
            return Err(NodeError::permanent(text).named("TypeError"));
        }
        ended
    }

    fn is_strict(&self) -> bool {
        self.cache.as_ref().is_some_and(|policy| policy.strict)
    }

    /// The cached result of an equal call. One that cannot be read, or has another type, counts as
    /// missing.
    async fn cached(
        &self,
        key: Option<&CacheKey>,
        cache: Option<&AnyCache>,
    ) -> Result<Option<Value>, NodeError> {
        let (Some(key), Some(cache)) = (key, cache) else { return Ok(None) };
        let strict = self.is_strict();
        let kept = look_up_cached(cache, key, strict).await?.and_then(|mut kept| kept.pop());
        let Some((_, blob)) = kept else { return Ok(None) };
        let returned = blob.to_value();
        match returned.and_then(|returned| from_value::<T>(returned.clone()).map(|_| returned)) {
            Ok(returned) => Ok(Some(returned)),
            Err(error) => {
                missed_cached(error, key, strict)?;
                Ok(None)
            }
        }
    }

    fn replay(&self, returned: Value) -> Result<T, NodeError> {
        from_value(returned).map_err(|error| {
            NodeError::permanent(format!(
                "the recorded result of call `{}` is not of the type the call returns: {error}",
                self.name
            ))
        })
    }

    /// A record that was made with other arguments is not the record of this call.
    fn check_args(&self, task: &Task) -> Result<(), NodeError> {
        let recorded = task.inner.superstep.record(args_id(task.id())).args;
        let (Some(recorded), Some(args)) = (recorded, self.known_args()?) else { return Ok(()) };
        if recorded == args.fingerprint {
            return Ok(());
        }
        let args = &args.shown;
        let (index, name, caller) = (self.index, &self.name, self.caller.name());
        let text = format!(
            "call {index} of `{caller}`, `{name}`, was recorded with other arguments than {args}; code that runs again must make the same calls in the same order"
        );
        Err(NodeError::permanent(text).named("ReplayMismatch"))
    }

    /// Keeps what the call did for a further attempt of its caller.
    fn remember(
        &self,
        task: &Task,
        ended: &Result<TaskResult<(T, Value)>, NodeError>,
    ) -> Result<(), NodeError> {
        let returned = match ended {
            Ok(TaskResult::Returned((_, returned))) => Some(returned.clone()),
            Ok(TaskResult::Suspended(_)) | Err(_) => None,
        };
        let mut work = task.inner.superstep.work();
        let record = work.records.entry(task.id()).or_default();
        record.returned = returned;
        record.answers = task.answers().unwrap_or_default();
        if let Some(args) = self.known_args()? {
            let args = Some(args.fingerprint.clone());
            work.records.entry(args_id(task.id())).or_default().args = args;
        }
        Ok(())
    }

    fn cache_key(&self, task: &Task) -> Result<Option<CacheKey>, NodeError> {
        let Some(policy) = &self.cache else { return Ok(None) };
        let ns = vec!["__pregel_ns_writes".to_owned(), "task".to_owned(), task.name().to_owned()];
        let key = cache_key(&self.shown_args()?, policy)
            .map_err(|error| self.unrecordable("arguments", &error))?;
        Ok(Some(CacheKey { ns, key }))
    }

    async fn attempts(&self, task: &Task) -> Result<TaskResult<T>, NodeError> {
        let mut attempt = 1;
        loop {
            task.begin_attempt(attempt);
            let watched = Attempt::begins(task, false);
            let ended = match started(task.name(), || (self.make)(task.clone())) {
                Err(panicked) => Err(panicked),
                Ok(future) => run_watched(future, task, self.timeout).await,
            };
            watched.ends(task, (&ended).into()).await;
            let error = match ended {
                Ok(ran) => return Ok(ran),
                Err(error) => error,
            };
            attempt = next_attempt(&self.retry, error, task).await?;
        }
    }

    /// Stores the result before the caller sees it.
    async fn keep(&self, task: &Task, writes: Vec<(&'static str, Value)>) -> Result<(), NodeError> {
        let superstep = &task.inner.superstep;
        let (Some(checkpointer), Some(thread)) =
            (&superstep.setting.checkpointer, &superstep.setting.run.thread)
        else {
            return Ok(());
        };
        let writes = writes
            .into_iter()
            .map(|(name, value)| Ok((name.into(), Blob::from_value(&value)?)))
            .collect::<Result<_, Error>>()?;
        let path = task.path();
        let mut writes = vec![TaskWrites::new(task.id(), path.clone(), writes)];
        if let Some(args) = self.known_args()? {
            let args = vec![(names::ARGS.into(), Blob::from_value(&args.fingerprint)?)];
            writes.push(TaskWrites::new(args_id(task.id()), path, args));
        }
        if !superstep.setting.stores {
            superstep.work().unsaved.extend(writes);
            superstep.setting.wake();
            return Ok(());
        }
        let (ns, checkpoint) = (&superstep.setting.ns, superstep.checkpoint);
        match checkpointer.put_writes(thread, ns, checkpoint, writes).await {
            Ok(()) => Ok(()),
            Err(error) => {
                superstep.fail_run(error.into());
                std::future::pending().await
            }
        }
    }
}

/// Stops a call of a workflow that has not started when a drain is requested.
///
/// A workflow is one superstep, so a drain that completed the superstep would run all remaining
/// work. A node of a graph makes all its calls, because its superstep completes.
fn drained<T>(call: &Task) -> Option<TaskResult<T>> {
    let setting = &call.inner.superstep.setting;
    let reason = setting.run.control.drain_reason().filter(|_| setting.layout.single)?;
    let suspension = Suspension { drained: Some(reason.to_string()), ..Suspension::default() };
    Some(TaskResult::Suspended(Box::new(suspension)))
}

/// A digest of the arguments, to compare them.
fn fingerprint(args: &Value) -> Result<Value, Error> {
    let blob = Blob::from_value(args)?;
    Ok(Value::from(format!("{:032x}", xxhash_rust::xxh3::xxh3_128(blob.bytes()))))
}

/// The id under which the arguments of a call are stored. No task has it, so LangGraph ignores
/// them.
fn args_id(call: TaskId) -> TaskId {
    let place = [call.as_bytes(), names::ARGS.as_bytes()].concat();
    TaskId::from_bytes(xxhash_rust::xxh3::xxh3_128(&place).to_be_bytes())
}

impl<T: Recordable> Call<'static, T> {
    /// Starts the call now, concurrently with the node. The superstep waits for it even if nothing
    /// awaits it.
    pub fn spawn(self) -> Spawned<T> {
        let (tell, told) = oneshot::channel();
        let superstep = self.caller.inner.superstep.clone();
        let inflight = self.caller.enter();
        let future = Box::pin(async move {
            if let Some(result) = self.run(inflight).await {
                // The receiver may be gone; the result is recorded anyway.
                let _ = tell.send(result);
            }
        });
        superstep.work().started.push(Started { future });
        superstep.setting.wake();
        Spawned { told: Some(told) }
    }
}

impl<'a, T: Recordable> IntoFuture for Call<'a, T> {
    type Output = Result<T, NodeError>;
    type IntoFuture = TaskFuture<'a, T>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let inflight = self.caller.enter();
            match self.run(inflight).await {
                Some(result) => result,
                None => std::future::pending().await,
            }
        })
    }
}

/// A recorded call that runs concurrently with the node. Await it for the result.
#[derive(Debug)]
pub struct Spawned<T> {
    /// `None` if the call is interrupted.
    told: Option<oneshot::Receiver<Result<T, NodeError>>>,
}

impl<T> Future for Spawned<T> {
    type Output = Result<T, NodeError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(told) = &mut self.told else { return Poll::Pending };
        match Pin::new(told).poll(cx) {
            Poll::Ready(Ok(result)) => Poll::Ready(result),
            Poll::Ready(Err(_)) => {
                // The call is interrupted, and this task will be when all its other calls have
                // ended.
                self.told = None;
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl From<u32> for RetryPolicy {
    fn from(attempts: u32) -> Self {
        Self::attempts(attempts)
    }
}

impl Task {
    fn child(&self, name: Arc<str>, index: usize) -> Task {
        self.called(name, index)
    }
}
