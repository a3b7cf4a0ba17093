use std::fmt;

use serde::Serialize;
use superstep_checkpoint::{Interrupt, Value, to_value};

use crate::engine::{Durability, Outcome};
use crate::error::RunError;
use crate::run::{Input, IntoInput, Thread};
use crate::state::State;

/// Scripted answers to the questions of a graph, for tests.
///
/// Each answer is used once, for the first question it matches; of several that match, the first
/// that is left. A question without an answer, and an unused answer, fail the test.
///
/// ```
/// use superstep::prelude::*;
/// use superstep::testing::{Script, virtual_time};
///
/// #[derive(State, Clone, Default)]
/// struct Form {
///     name: String,
///     age: u8,
/// }
/// # fn main() -> Result<(), CompileError> {
/// let app = StateGraph::<Form>::new()
///     .add_node("ask", |task: Task| async move {
///         let name: String = task.interrupt("What is your name?").await;
///         let age: u8 = task.interrupt(format!("How old are you, {name}?")).await;
///         Form::update().name(name).age(age)
///     })
///     .add_edge(START, "ask")
///     .compile()?
///     .with_checkpointer(MemorySaver::new());
///
/// let script = Script::new().answer("name", "Ada").answer("How old", 36);
/// let form = virtual_time(script.run(&app.thread("1"), Form::update())).expect("a run");
/// assert_eq!((form.name.as_str(), form.age), ("Ada", 36));
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
#[must_use = "a script does nothing until a thread is run with it"]
pub struct Script {
    answers: Vec<Answer>,
    durability: Durability,
    one_at_a_time: bool,
}

struct Answer {
    /// A description, for the message about an unused answer.
    about: String,
    fits: Fits,
    value: Value,
}

type Fits = Box<dyn Fn(&Interrupt) -> bool + Send + Sync>;

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.answers.iter().map(|answer| &answer.about)).finish()
    }
}

impl Script {
    /// A script without answers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers a question whose text contains this. The text of a question that is not a string is
    /// its JSON.
    ///
    /// # Panics
    /// The answer cannot be turned into data.
    pub fn answer(self, question: impl Into<String>, answer: impl Serialize) -> Self {
        let part = question.into();
        let about = format!("{part:?}");
        let fits = move |question: &Interrupt| text(question).contains(&part);
        self.add(about, Box::new(fits), answer)
    }

    /// Answers a question for which this returns `true`.
    ///
    /// # Panics
    /// The answer cannot be turned into data.
    pub fn answer_if(
        self,
        fits: impl Fn(&Interrupt) -> bool + Send + Sync + 'static,
        answer: impl Serialize,
    ) -> Self {
        let about = format!("number {} (a predicate)", self.answers.len() + 1);
        self.add(about, Box::new(fits), answer)
    }

    fn add(mut self, about: String, fits: Fits, answer: impl Serialize) -> Self {
        let value = to_value(&answer)
            .unwrap_or_else(|error| panic!("the answer to {about} cannot be serialized: {error}"));
        self.answers.push(Answer { about, fits, value });
        self
    }

    /// The durability of the runs.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Answers one of several open questions in each run, and not all of them.
    pub fn one_at_a_time(mut self) -> Self {
        self.one_at_a_time = true;
        self
    }

    /// Runs the thread from this input to completion, through all questions, breakpoints and
    /// drains.
    ///
    /// # Errors
    /// The run failed.
    ///
    /// # Panics
    /// A question has no answer, or an answer is unused.
    pub async fn run<S: State, O: Send + 'static>(
        mut self,
        thread: &Thread<S, O>,
        input: impl IntoInput<S>,
    ) -> Result<O, RunError> {
        let output = self.play(thread, input.into_input()).await?;
        let left: Vec<_> = self.answers.iter().map(|answer| &*answer.about).collect();
        assert!(
            left.is_empty(),
            "the run is done, and these answers are unused: {}",
            left.join(", ")
        );
        Ok(output)
    }

    /// As [`run`](Self::run), for a thread in any state that an earlier process left: the input is
    /// given only to a new thread, and answers that were given before may stay unused.
    ///
    /// # Errors
    /// A run failed, or the thread cannot be read.
    ///
    /// # Panics
    /// A question has no answer.
    pub async fn take_up<S: State, O: Send + 'static>(
        mut self,
        thread: &Thread<S, O>,
        input: impl IntoInput<S>,
    ) -> Result<O, RunError> {
        let begun = !thread.get_state().raw().await?.is_new();
        let input = if begun { Input::nothing() } else { input.into_input() };
        self.play(thread, input).await
    }

    async fn play<S: State, O: Send + 'static>(
        &mut self,
        thread: &Thread<S, O>,
        mut input: Input,
    ) -> Result<O, RunError> {
        loop {
            input = match thread.invoke(input).durability(self.durability).await? {
                Outcome::Done(output) => return Ok(output),
                Outcome::Drained(_) => Input::nothing(),
                Outcome::Interrupted(asked) if asked.is_empty() => Input::nothing(),
                Outcome::Interrupted(asked) => {
                    let count = if self.one_at_a_time { 1 } else { asked.len() };
                    let answers = asked.iter().take(count);
                    Input::answers(answers.map(|asked| (asked.id.clone(), self.take(asked))))
                }
            };
        }
    }

    fn take(&mut self, question: &Interrupt) -> Value {
        match self.answers.iter().position(|answer| (answer.fits)(question)) {
            Some(at) => self.answers.remove(at).value,
            None => panic!(
                "no answer for the question {:?} (`{}`); answers are left for: {self:?}",
                text(question),
                question.id,
            ),
        }
    }
}

fn text(question: &Interrupt) -> String {
    match &question.value {
        Value::Str(text) => text.clone(),
        other => other.to_string(),
    }
}
