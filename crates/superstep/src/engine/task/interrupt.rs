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
use crate::engine::task::timer::{Deadline, Timed};
use crate::error::NodeError;

/// A question, made by [`Task::interrupt`]. Await it for the answer.
#[must_use = "nothing is asked until this is awaited"]
pub struct Asking<A> {
    task: Task,
    question: Result<Value, Error>,
    schema: Option<Value>,
    /// When the clock answers it, if it does.
    deadline: Option<Deadline>,
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

    pub(super) fn with_deadline(mut self, deadline: Deadline) -> Self {
        self.deadline = Some(deadline);
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

/// What is asked.
#[derive(Clone, Copy)]
struct Asked<'a> {
    value: &'a Result<Value, Error>,
    schema: Option<&'a Value>,
    deadline: Option<&'a Deadline>,
}

impl<A: DeserializeOwned> Future for Asking<A> {
    type Output = A;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<A> {
        let this = self.get_mut();
        let index = *this.index.get_or_insert_with(|| this.task.next_question());
        let asked = Asked {
            value: &this.question,
            schema: this.schema.as_ref(),
            deadline: this.deadline.as_ref(),
        };
        this.task.poll_interrupt(index, asked)
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
            deadline: None,
            index: None,
            answer: PhantomData,
        }
    }

    fn next_question(&self) -> usize {
        let mut scratch = self.scratch();
        scratch.asked += 1;
        scratch.asked - 1
    }

    fn poll_interrupt<A: DeserializeOwned>(&self, index: usize, asked: Asked<'_>) -> Poll<A> {
        let mut scratch = self.scratch();
        self.load_answers(&mut scratch);
        let mut question = None;
        if index >= scratch.answers.len() {
            match self.question(&mut scratch, index, asked) {
                Ok(Timed::Passed(answer)) => scratch.answers.push(answer),
                Ok(Timed::Asked(interrupt)) => question = Some(Ok(interrupt)),
                Err(why) => question = Some(Err(why)),
            }
        }
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
        let question =
            question.unwrap_or_else(|| match self.question(&mut scratch, index, asked)? {
                Timed::Asked(interrupt) => Ok(interrupt),
                // The answer that did not fit was to a question that was asked.
                Timed::Passed(_) => {
                    Err(format!("the time of node `{}` was up before it asked", self.name()))
                }
            });
        match question {
            Ok(question) => {
                let asked = &mut scratch.suspension.questions;
                if !asked.iter().any(|asked| asked.id == question.id) {
                    asked.push(question);
                }
            }
            Err(why) => {
                scratch.suspension.refused = Some(self.unaskable(why));
            }
        }
        drop(scratch);
        self.suspend();
        Poll::Pending
    }

    /// The question as it is stored, or the answer if its deadline has passed. The error says why it cannot be asked.
    fn question(
        &self,
        scratch: &mut Scratch,
        index: usize,
        asked: Asked<'_>,
    ) -> Result<Timed, String> {
        let (name, keeps) = (self.name(), self.inner.superstep.setting.run.keeps);
        let value = asked.value.as_ref();
        let id = ids::interrupt_id(self.namespace(), scratch.answers.len());
        // Questions that come later have the id of the first one, which is asked before them.
        let deadline = asked.deadline.filter(|_| index == scratch.answers.len());
        let timed = match (deadline, value) {
            (Some(deadline), Ok(value)) => self
                .timed(scratch, &id, deadline, (value, asked.schema))
                .map_err(|why| format!("node `{name}` {why}"))?,
            (_, Err(error)) if keeps => {
                return Err(format!("the question of node `{name}` cannot be stored: {error}"));
            }
            (_, value) => {
                let value = value.cloned().unwrap_or_default();
                Timed::Asked(Interrupt { value, id, response_schema: asked.schema.cloned() })
            }
        };
        match timed {
            Timed::Asked(_) if !keeps => {
                let what = if deadline.is_some() { "waits" } else { "asked a question" };
                Err(format!(
                    "node `{name}` {what}, but the graph has no checkpointer to keep it; add one with `with_checkpointer`"
                ))
            }
            timed => Ok(timed),
        }
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
        let record = superstep.record(self.id());
        (scratch.answers, scratch.stored_due) = (record.answers, record.due);
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
