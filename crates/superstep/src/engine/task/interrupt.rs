//! Asking a question and waiting for the answer.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep_checkpoint::{Error, Interrupt, Value, from_value, to_value};

use crate::engine::stored::ids;
use crate::engine::task::handle::{Refusal, Scratch, Task};
use crate::error::NodeError;

/// A question, made by [`Task::interrupt`]. Await it for the answer.
#[must_use = "nothing is asked until this is awaited"]
pub struct Asking<A> {
    task: Task,
    question: Result<Value, Error>,
    schema: Option<Value>,
    /// Which question of its task this is; known once it is asked.
    index: Option<usize>,
    answer: PhantomData<fn() -> A>,
}

impl<A> Asking<A> {
    /// Attaches a JSON schema of the answer, which is stored and shown with the question.
    ///
    /// If it cannot be serialized, the node fails.
    pub fn schema(mut self, schema: impl Serialize) -> Self {
        match to_value(&schema) {
            Ok(schema) => self.schema = Some(schema),
            Err(error) => {
                self.question = Err(Error::codec(format_args!("its schema: {error}")));
            }
        }
        self
    }

    /// As [`schema`](Self::schema), with the schema of the answer's type.
    #[cfg(feature = "schemars")]
    pub fn with_schema(self) -> Self
    where
        A: schemars::JsonSchema,
    {
        self.schema(schemars::schema_for!(A))
    }
}

impl<A: DeserializeOwned> Future for Asking<A> {
    type Output = A;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<A> {
        let this = self.get_mut();
        let index = *this.index.get_or_insert_with(|| this.task.next_question());
        this.task.poll_interrupt(index, &this.question, this.schema.as_ref())
    }
}

impl<A> fmt::Debug for Asking<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking").field("question", &self.question).finish_non_exhaustive()
    }
}

impl Task {
    /// Asks a question and waits for the answer, which may come in another process.
    ///
    /// Without an answer, the question is recorded, the run ends with
    /// [`Outcome::Interrupted`](crate::Outcome::Interrupted), and the node's future is dropped.
    /// When the thread is resumed, the node runs again from its first line and each question takes
    /// the answer of its position.
    ///
    /// An interrupt is not an error: error handling or time limits in the node cannot swallow it.
    /// If the answer is not an `A`, the run that gave it fails with
    /// [`RunError::Resume`](crate::RunError::Resume), and the question stays open.
    pub fn interrupt<A: DeserializeOwned>(&self, question: impl Serialize) -> Asking<A> {
        Asking {
            task: self.clone(),
            question: to_value(&question),
            schema: None,
            index: None,
            answer: PhantomData,
        }
    }

    fn next_question(&self) -> usize {
        let mut scratch = self.scratch();
        scratch.asked += 1;
        scratch.asked - 1
    }

    fn poll_interrupt<A: DeserializeOwned>(
        &self,
        index: usize,
        question: &Result<Value, Error>,
        schema: Option<&Value>,
    ) -> Poll<A> {
        let mut scratch = self.scratch();
        self.load_answers(&mut scratch);
        let ns = self.namespace();
        if let Some(answer) = scratch.answers.get(index) {
            match from_value(answer.clone()) {
                Ok(answer) => {
                    scratch.used = scratch.used.max(index + 1);
                    return Poll::Ready(answer);
                }
                Err(error) => {
                    let text = format!(
                        "the answer to question {index} of node `{}` does not fit: {error}",
                        self.name()
                    );
                    // The question stays open: the answer is forgotten, and the caller that gave it
                    // is told.
                    scratch.answers.truncate(index);
                    scratch.forgot = true;
                    scratch.suspension.refused = Some(Refusal::Answer(text));
                }
            }
        }
        match (question, self.inner.superstep.setting.run.keeps) {
            (_, false) => {
                let text = format!(
                    "node `{}` asked a question, but the graph has no checkpointer to keep it; add one with `with_checkpointer`",
                    self.name()
                );
                scratch.suspension.refused = Some(self.unaskable(text));
            }
            (Err(error), _) => {
                let text =
                    format!("the question of node `{}` cannot be stored: {error}", self.name());
                scratch.suspension.refused = Some(self.unaskable(text));
            }
            (Ok(value), true) => {
                let id = ids::interrupt_id(ns, scratch.answers.len());
                if !scratch.suspension.questions.iter().any(|asked| asked.id == id) {
                    let response_schema = schema.cloned();
                    let asked = Interrupt { value: value.clone(), id, response_schema };
                    scratch.suspension.questions.push(asked);
                }
            }
        }
        drop(scratch);
        self.suspend();
        Poll::Pending
    }

    fn unaskable(&self, text: String) -> Refusal {
        let error = NodeError::permanent(text);
        Refusal::Question { node: self.inner.name.clone(), task: self.id(), error }
    }

    /// Takes the answers that were stored, and those that this run was given for the next
    /// questions: a graph that is not stored starts over, and may have asked several times before.
    fn load_answers(&self, scratch: &mut Scratch) {
        if scratch.loaded {
            return;
        }
        scratch.loaded = true;
        let superstep = &self.inner.superstep;
        scratch.answers = superstep.record(self.id()).answers;
        if let Some(seed) = superstep.seeds.get(&self.path()) {
            scratch.answers.clone_from(seed);
        }
        let run = &superstep.setting.run;
        let stored = scratch.answers.len();
        let next = |answers: &Vec<_>| ids::interrupt_id(self.namespace(), answers.len());
        while let Some(answer) = run.take_answer(&next(&scratch.answers)) {
            scratch.answers.push(answer);
        }
        if scratch.answers.len() == stored && superstep.setting.checkpointer.is_none() {
            // Another engine gives the questions of such a graph new ids each time.
            let id = next(&scratch.answers);
            scratch.answers.extend(run.take_sole_answer(self.namespace(), &id));
        }
    }
}
