//! When the clock has something to do on a thread.

use std::time::SystemTime;

use super::ThreadStatus;
use crate::wire::UtcTime;
use crate::{Error, Interrupt, Stored, TaskId, Value};

impl Stored {
    /// When a run of the thread would find that a question is due, if this is its head: the earliest
    /// [due time](Interrupt::due) of its open questions.
    ///
    /// There is none while a run may be alive or a failure has to be looked at: some task has failed, or has stored nothing, or
    /// a run has taken an answer. The run that takes such a thread up answers what is due. If the clock has answered and the
    /// run that took the answer has not come to its end, it is when another one may take the thread up.
    ///
    /// # Errors
    /// The data it depends on cannot be read.
    pub fn due(&self) -> Result<Option<SystemTime>, Error> {
        if self.writes.is_empty() {
            return Ok(None);
        }
        let claim = self.written(TaskId::CLAIM)?;
        let claimed = |field: &str| claim.as_ref().and_then(|claim| claim.get(field));
        if let Some(again) = claimed("again").and_then(Value::as_str) {
            let unfinished = [ThreadStatus::Ready, ThreadStatus::Waiting].contains(&self.status()?);
            return Ok(UtcTime::parse(again).filter(|_| unfinished));
        }
        let Some(due) = self.open_questions()?.iter().filter_map(Interrupt::due).min() else {
            return Ok(None);
        };
        let left: Vec<String> = match claimed("left") {
            Some(Value::List(left)) => {
                left.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        };
        let waits = self.status_beside(&left)? == ThreadStatus::Waiting;
        Ok(waits.then_some(due))
    }
}
