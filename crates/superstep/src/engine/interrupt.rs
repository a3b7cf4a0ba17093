//! Asking a question and waiting for the answer.

use std::future::Future;
use std::task::Poll;

use serde::Serialize;
use serde::de::DeserializeOwned;
use superstep_checkpoint::{Interrupt, Value, from_value, to_value};

use super::ids;
use super::task::{Scratch, Task, lock};
use crate::error::NodeError;

impl Task {
    /// Asks a question and waits for the answer, however long that takes.
    ///
    /// Without an answer, the question is recorded, the run ends with
    /// [`Outcome::Interrupted`](crate::Outcome::Interrupted), and this node is dropped where it stands. When the thread is
    /// resumed, the node runs again from its first line and each question takes the answer of its position.
    ///
    /// There is no error to catch: nothing a node does with errors or time limits makes a question disappear.
    pub fn interrupt<A: DeserializeOwned>(
        &self,
        question: impl Serialize,
    ) -> impl Future<Output = A> + Send + 'static {
        let task = self.clone();
        let question = to_value(&question);
        let mut index = None;
        std::future::poll_fn(move |_| {
            let index = *index.get_or_insert_with(|| task.next_question());
            task.poll_interrupt(index, &question)
        })
    }

    fn next_question(&self) -> usize {
        let mut scratch = lock(&self.inner.scratch);
        scratch.asked += 1;
        scratch.asked - 1
    }

    fn poll_interrupt<A: DeserializeOwned>(
        &self,
        index: usize,
        question: &Result<Value, superstep_checkpoint::Error>,
    ) -> Poll<A> {
        let mut scratch = lock(&self.inner.scratch);
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
                    // The question stays open: the answer is forgotten, and whoever gave it is told.
                    scratch.answers.truncate(index);
                    scratch.forgot = true;
                    scratch.suspension.refused = Some(NodeError::permanent(text));
                }
            }
        }
        match (question, self.inner.superstep.run.keeps) {
            (_, false) => {
                let text = format!(
                    "node `{}` asked a question, but the graph has no checkpointer to keep it; add one with `with_checkpointer`",
                    self.name()
                );
                scratch.suspension.refused = Some(NodeError::permanent(text));
            }
            (Err(error), _) => {
                let text =
                    format!("the question of node `{}` cannot be stored: {error}", self.name());
                scratch.suspension.refused = Some(NodeError::permanent(text));
            }
            (Ok(value), true) => {
                let id = ids::interrupt_id(ns, scratch.answers.len());
                if !scratch.suspension.questions.iter().any(|asked| asked.id == id) {
                    let asked = Interrupt { value: value.clone(), id, response_schema: None };
                    scratch.suspension.questions.push(asked);
                }
            }
        }
        self.suspend(&mut scratch);
        Poll::Pending
    }

    /// Takes the answers that were stored, and the one that this run was given for the next question.
    fn load_answers(&self, scratch: &mut Scratch) {
        if scratch.loaded {
            return;
        }
        scratch.loaded = true;
        let superstep = &self.inner.superstep;
        scratch.answers = superstep.record(self.id()).answers;
        if let Some(seed) = superstep.seeds.get(&self.inner.path.text()) {
            scratch.answers.clone_from(seed);
        }
        let id = ids::interrupt_id(self.namespace(), scratch.answers.len());
        if let Some(answer) = superstep.run.take_answer(&id) {
            scratch.answers.push(answer);
        }
    }
}
