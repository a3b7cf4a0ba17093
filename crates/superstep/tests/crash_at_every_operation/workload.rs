//! What a process does on a thread: turn after turn, whatever the thread needs next.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use superstep::checkpoint::{AnyCheckpointer, Value};
use superstep::prelude::*;
use superstep::testing::{CompletionOrder, Journal};
use superstep::{CompiledGraph, Durability, Input, RawSnapshot, StateUpdate, Thread};

/// A process that runs a thread this often and does not come to an end never will.
const RUNS_MAX: usize = 60;

/// What the world outside remembers, across processes: how often something was tried.
#[derive(Clone, Debug, Default)]
pub(crate) struct World(Arc<Mutex<HashMap<&'static str, u32>>>);

impl World {
    /// Counts one more try, and says which one it is; the first is 1.
    pub(crate) fn tried(&self, what: &'static str) -> u32 {
        let mut tried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = tried.entry(what).or_default();
        *count += 1;
        *count
    }
}

/// How open questions are answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answers {
    /// All of them, by id.
    #[default]
    All,
    /// One in each run, by id.
    OneById,
    /// The only one there is, with no id.
    Bare,
}

type Change = fn(&RawSnapshot) -> Option<StateUpdate>;

/// A graph, and what is done with it.
pub(crate) struct Workload<S: State, O> {
    pub(crate) name: &'static str,
    build: fn() -> CompiledGraph<S, O>,
    turns: Vec<Value>,
    answers: Answers,
    change: Option<Change>,
    failures: usize,
    stream: bool,
    abandons: bool,
    pub(crate) traits: Traits,
}

/// What the table may expect of a workload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traits {
    /// Calls of one node are made one after the other.
    pub(crate) sequential: bool,
}

pub(crate) fn workload<S: State, O>(
    name: &'static str,
    build: fn() -> CompiledGraph<S, O>,
) -> Workload<S, O> {
    Workload {
        name,
        build,
        turns: vec![Value::from(serde_json::json!({ "lines": ["in 1"], "often": ["in 1"] }))],
        answers: Answers::default(),
        change: None,
        failures: 0,
        stream: false,
        abandons: false,
        traits: Traits::default(),
    }
}

impl<S: State, O> Workload<S, O> {
    /// The inputs of the turns.
    pub(crate) fn inputs<V: Into<Value>>(mut self, turns: impl IntoIterator<Item = V>) -> Self {
        self.turns = turns.into_iter().map(Into::into).collect();
        self
    }

    /// Several turns, each with an input of its own.
    pub(crate) fn turns(self, turns: usize) -> Self {
        self.inputs((1..=turns).map(|turn| {
            let line = format!("in {turn}");
            Value::from(serde_json::json!({ "lines": [line], "often": [line] }))
        }))
    }

    pub(crate) fn answers(mut self, answers: Answers) -> Self {
        self.answers = answers;
        self
    }

    /// What is changed from outside when the thread stands at a breakpoint.
    pub(crate) fn change(mut self, change: Change) -> Self {
        self.change = Some(change);
        self
    }

    /// How many runs may fail in one process.
    pub(crate) fn failures(mut self, failures: usize) -> Self {
        self.failures = failures;
        self
    }

    /// What is asked in the first turn is never answered.
    pub(crate) fn abandons(mut self) -> Self {
        self.abandons = true;
        self
    }

    /// Runs are read as streams.
    pub(crate) fn stream(mut self) -> Self {
        self.stream = true;
        self
    }

    pub(crate) fn sequential(mut self) -> Self {
        self.traits.sequential = true;
        self
    }
}

/// What a process has at hand.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) checkpointer: AnyCheckpointer,
    pub(crate) thread: Arc<str>,
    pub(crate) durability: Durability,
    pub(crate) world: World,
    pub(crate) journal: Journal,
    pub(crate) order: CompletionOrder,
    /// Told when storage has failed a run. The thread is then taken up again, unless this says no.
    pub(crate) unstored: Option<Unstored>,
}

pub(crate) type Unstored =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// What is left when everything is done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// The state, as it is stored.
    pub(crate) state: Value,
    /// The state, as the last run returned it, if there was one.
    pub(crate) returned: Option<String>,
}

pub(crate) type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A workload whose types are nobody's business.
pub(crate) trait Play: Send + Sync {
    fn name(&self) -> &'static str;
    fn traits(&self) -> Traits;
    /// Takes the thread up wherever it is, and works until there is nothing left to do.
    fn play(&self, process: Process) -> BoxFuture<'_, Result<Outcome, String>>;
}

impl<S: State, O: fmt::Debug + Send + 'static> Play for Workload<S, O> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn traits(&self) -> Traits {
        self.traits
    }

    fn play(&self, process: Process) -> BoxFuture<'_, Result<Outcome, String>> {
        Box::pin(async move {
            let app = (self.build)()
                .with_any_checkpointer(process.checkpointer)
                .with_context(process.world)
                .with_context(process.journal)
                .with_context(process.order);
            let thread = app.thread(process.thread);
            let mut failures = 0;
            let mut returned = None;
            for turn in 0..self.turns.len() {
                for runs in 0.. {
                    let ran = match self.next(&thread, turn).await {
                        Ok(None) => break,
                        Ok(Some(_)) if runs > RUNS_MAX => {
                            return Err("the thread is run again and again".to_owned());
                        }
                        Ok(Some(input)) => self.run(&thread, input, turn, process.durability).await,
                        Err(error) => Err(error),
                    };
                    match ran {
                        Ok(done) => returned = done,
                        Err(error @ (RunError::Checkpoint(_) | RunError::Conflict { .. })) => {
                            match &process.unstored {
                                Some(told) => told(text(error)).await?,
                                None => return Err(text(error)),
                            }
                            // What it would have returned is nobody's to know.
                            returned = None;
                        }
                        Err(_) if failures < self.failures => failures += 1,
                        Err(error) => return Err(text(error)),
                    }
                }
            }
            let state = thread.get_state().raw().await.map_err(text)?.values;
            Ok(Outcome { state, returned })
        })
    }
}

impl<S: State, O: fmt::Debug + Send + 'static> Workload<S, O> {
    /// What the thread needs next in this turn; `None` if the turn is over.
    async fn next(&self, thread: &Thread<S, O>, turn: usize) -> Result<Option<Input>, RunError> {
        let begun = thread.get_state_history().filter("turn", turn as i64).limit(1).raw().await?;
        if begun.is_empty() {
            return Ok(Some(Input::value(self.turns[turn].clone())));
        }
        let mut seen = thread.get_state().raw().await?;
        if let Some(change) = self.change.and_then(|change| change(&seen)) {
            thread.bulk_update_state([vec![change]]).await?;
            seen = thread.get_state().raw().await?;
        }
        let abandoned = self.abandons && turn == 0 && !seen.interrupts.is_empty();
        if seen.next.is_empty() || abandoned {
            return Ok(None);
        }
        let mut answers = seen.interrupts.iter().map(|asked| {
            let question = match &asked.value {
                Value::Str(question) => question.clone(),
                other => other.to_string(),
            };
            (asked.id.clone(), Value::from(format!("{question} yes")))
        });
        Ok(Some(match self.answers {
            _ if seen.interrupts.is_empty() => Input::nothing(),
            Answers::All => Input::answers(answers),
            Answers::OneById => Input::answers(answers.next()),
            Answers::Bare => {
                Input::answer(answers.next().map(|(_, answer)| answer).unwrap_or_default())
            }
        }))
    }

    /// What the run returned, if it was done.
    async fn run(
        &self,
        thread: &Thread<S, O>,
        input: Input,
        turn: usize,
        durability: Durability,
    ) -> Result<Option<String>, RunError> {
        let turn = turn as i64;
        let run = thread.invoke(input).durability(durability).metadata("turn", turn);
        let ended = if self.stream {
            let modes = [Mode::Updates, Mode::Values, Mode::Tasks, Mode::Checkpoints];
            run.stream(modes).subgraphs(true).into_outcome().await?
        } else {
            run.await?
        };
        Ok(ended.done().map(|output| format!("{output:?}")))
    }
}

fn text(error: RunError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
