//! What the clock does on a thread: it answers questions that are due, and has the thread looked at in time.

use std::time::{Duration, SystemTime};

use superstep_checkpoint::{Alarm, Error, Interrupt, InterruptId, TaskId, TaskWrites, Value};

use crate::engine::drive::answer::Open;
use crate::engine::drive::driver::Driver;
use crate::engine::drive::open::Start;
use crate::engine::step::superstep::lock;
use crate::engine::stored::pending::Alarmed;
use crate::error::RunError;

/// How long others leave a thread to the run that has answered for the clock. After that, it is taken for dead.
const AGAIN: Duration = Duration::from_secs(300);

impl Driver {
    /// The answers of the clock to questions that are due. The claim with them says until when this run is left alone.
    pub(in crate::engine) fn due_answers(&mut self, start: &Start) -> Vec<(InterruptId, Value)> {
        let timed = |(_, question): (_, &Interrupt)| question.due().is_some();
        if !self.pending.questions().any(timed) {
            return Vec::new();
        }
        let now = self.setting.run.now();
        let open = self.open_questions(start);
        let due = open.into_iter().filter(|open| is_due(&open.question, now));
        due.filter_map(|Open { question, .. }| Some((question.id.clone(), question.due_answer()?)))
            .collect()
    }

    /// Lets tasks at any depth keep the due times that were decided before. Tasks of graphs that are not stored find them
    /// nowhere else.
    pub(in crate::engine) fn share_due(&self) {
        if self.is_nested() {
            return;
        }
        let due = self.pending.questions();
        let due = due.filter_map(|(_, asked)| Some((asked.id.clone(), asked.due()?)));
        lock(&self.setting.run.due).extend(due);
    }

    /// Until when others leave the thread to this run.
    pub(in crate::engine) fn again(&self) -> Option<SystemTime> {
        self.setting.run.now().checked_add(AGAIN)
    }

    /// Whether a run that is to do what is due has something to do.
    ///
    /// # Errors
    /// It has not.
    pub(in crate::engine) fn check_due(
        &self,
        due: &[(InterruptId, Value)],
    ) -> Result<(), RunError> {
        if !due.is_empty() || self.is_left_behind() {
            return Ok(());
        }
        let next = self.pending.questions().filter_map(|(_, question)| question.due()).min();
        let thread = self.setting.run.thread.clone().unwrap_or_default();
        Err(RunError::NotDue { thread, next })
    }

    /// Whether a run has answered for the clock, and others have waited long enough for it.
    pub(in crate::engine) fn is_left_behind(&self) -> bool {
        self.pending.claim.again.is_some_and(|again| again <= self.setting.run.now())
    }

    /// The alarm that has to be stored with these questions, if there is none at that time yet.
    ///
    /// Alarms of questions that other tasks have stored hold until those tasks have asked again.
    pub(in crate::engine) fn alarm(
        &mut self,
        questions: &[Interrupt],
    ) -> Result<Option<TaskWrites>, Error> {
        let Some(due) = questions.iter().filter_map(Interrupt::due).min() else { return Ok(None) };
        if self.is_nested() || self.setting.checkpointer.is_none() {
            return Ok(None);
        }
        let now = self.setting.run.now();
        let known = self.pending.alarm.take().unwrap_or_else(|| {
            let due = self.pending.questions().filter_map(|(_, question)| question.due());
            Alarmed { waiting: due.filter(|due| *due > now).min(), set: None }
        });
        let at = [Some(due), known.waiting, known.set].into_iter().flatten().min();
        self.pending.alarm = Some(Alarmed { set: at, ..known });
        if at == known.set { Ok(None) } else { Alarm::set(at).map(Some) }
    }
}

impl Driver {
    /// Sets the alarm for all questions of a superstep that stops. The one that was set while other tasks ran may have gone off
    /// since; whoever looked then has found a thread that somebody runs, and has turned it off.
    pub(in crate::engine) fn set_alarm_again(
        &self,
        questions: &[(String, Vec<Interrupt>)],
        writes: &mut Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let due = questions.iter().flat_map(|(_, asked)| asked).filter_map(Interrupt::due).min();
        if due.is_none() || self.is_nested() || self.setting.checkpointer.is_none() {
            return Ok(());
        }
        writes.retain(|writes| writes.task != TaskId::ALARM);
        writes.push(Alarm::set(due)?);
        Ok(())
    }
}

/// Says that an answer came after the deadline.
pub(crate) fn too_late(id: &InterruptId) -> String {
    format!(
        "the answer to question `{id}` is too late: its deadline has passed, and the clock answers; continue the thread with no input"
    )
}

/// Whether it is too late for anybody but the clock to answer.
pub(crate) fn is_due(question: &Interrupt, now: SystemTime) -> bool {
    question.due().is_some_and(|due| due <= now)
}
