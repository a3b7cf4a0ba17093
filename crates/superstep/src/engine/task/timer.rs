//! Waiting for the clock: sleeps, and deadlines of questions.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use superstep_checkpoint::{Interrupt, InterruptId, Value, from_value, storable_time, to_value};

use crate::engine::step::superstep::lock;
use crate::engine::task::handle::{Scratch, Task};
use crate::engine::task::interrupt::Asking;

/// When the clock answers a question, and with what.
#[derive(Clone, Debug)]
pub(super) struct Deadline {
    when: When,
    answer: ClockAnswer,
}

#[derive(Clone, Copy, Debug)]
enum When {
    After(Duration),
    At(SystemTime),
}

#[derive(Clone, Debug)]
enum ClockAnswer {
    /// The question is a sleep.
    Awake,
    Default(Value),
    /// The default cannot be an answer; the text says why.
    Unfit(String),
}

impl Deadline {
    fn sleep(when: When) -> Self {
        Self { when, answer: ClockAnswer::Awake }
    }

    fn default<A: Serialize + DeserializeOwned>(when: When, default: &A) -> Self {
        let read = |value: &Value| from_value::<A>(value.clone());
        let answer = match to_value(default).and_then(|value| read(&value).map(|_| value)) {
            Ok(value) => ClockAnswer::Default(value),
            Err(error) => ClockAnswer::Unfit(format!(
                "cannot use its default as an answer: {error}; give a default that is read as it was written"
            )),
        };
        Self { when, answer }
    }

    /// When it is, if it is reached now. The error says why there is no such time.
    fn due(&self, now: SystemTime) -> Result<SystemTime, String> {
        let due = match self.when {
            When::After(after) => now.checked_add(after),
            When::At(at) => Some(at),
        };
        due.and_then(storable_time).ok_or_else(|| {
            let when = match self.when {
                When::After(after) => format!("for {} seconds", after.as_secs()),
                When::At(_) => "for a time".to_owned(),
            };
            format!("waits {when} that ends after the year 9999; choose an earlier time")
        })
    }

    /// What is stored of a question with this deadline.
    fn question(&self, value: Value, schema: Option<Value>, due: SystemTime) -> Interrupt {
        match &self.answer {
            ClockAnswer::Default(default) => {
                let asked = Interrupt { value, id: "".into(), response_schema: schema };
                asked.with_due(due, Some(default.clone()))
            }
            ClockAnswer::Awake | ClockAnswer::Unfit(_) => Interrupt::sleep_until(due),
        }
    }
}

/// What becomes of a question with a deadline that has no answer.
pub(super) enum Timed {
    /// It is asked.
    Asked(Interrupt),
    /// Its time was up when it was reached first, so nobody could have answered it.
    Passed(Value),
}

impl Task {
    /// Waits at least this long. The run ends meanwhile, and the task continues in whichever
    /// process runs the thread when the time is up.
    ///
    /// The due time is decided when the task first gets here, and stored. It does not move when the node runs again. A
    /// sleep is stored as a question, so that all tools show it, and any answer ends it early.
    ///
    /// Like a question ([`interrupt`](Self::interrupt)), a sleep ends the run with
    /// [`Outcome::Interrupted`](crate::Outcome::Interrupted), and the node runs again from its first
    /// line when it is over. Questions and sleeps of one task come one after the other: to wait for several
    /// things at the same time, use recorded calls or nodes.
    ///
    /// A server wakes the thread when it is time. Without one, call
    /// [`run_due`](crate::CompiledGraph::run_due).
    ///
    /// A time that ends after the year 9999 fails the node; so does a sleep in a graph without a checkpointer.
    pub fn sleep(&self, duration: Duration) -> Sleep {
        self.sleeping(When::After(duration))
    }

    /// As [`sleep`](Self::sleep), until a point in time. If it has passed, the task goes on at once.
    pub fn sleep_until(&self, time: SystemTime) -> Sleep {
        self.sleeping(When::At(time))
    }

    fn sleeping(&self, when: When) -> Sleep {
        Sleep { asking: self.interrupt(()).with_deadline(Deadline::sleep(when)) }
    }

    /// The question with this id and its due time: the one that was decided when it was reached first, or else from now on.
    pub(super) fn timed(
        &self,
        scratch: &mut Scratch,
        id: &InterruptId,
        deadline: &Deadline,
        (value, schema): (&Value, Option<&Value>),
    ) -> Result<Timed, String> {
        if let ClockAnswer::Unfit(why) = &deadline.answer {
            return Err(why.clone());
        }
        let known = |(known, _): &&(InterruptId, SystemTime)| known == id;
        let stored = scratch.stored_due.iter().find(known).map(|(_, due)| *due);
        let run = &self.inner.superstep.setting.run;
        let stored = stored.or_else(|| lock(&run.due).get(id).copied());
        let decided = scratch.decided_due.iter().find(known).map(|(_, due)| *due);
        let now = run.now();
        let due = match stored.or(decided) {
            Some(due) => due,
            None => {
                let due = deadline.due(now)?;
                scratch.decided_due.push((id.clone(), due));
                due
            }
        };
        let asked = deadline.question(value.clone(), schema.cloned(), due);
        match asked.due_answer() {
            Some(answer) if stored.is_none() && due <= now => Ok(Timed::Passed(answer)),
            _ => Ok(Timed::Asked(Interrupt { id: id.clone(), ..asked })),
        }
    }
}

impl<A: Serialize + DeserializeOwned> Asking<A> {
    /// Gives the question a deadline: if nobody has answered after this time, `default` is the
    /// answer.
    ///
    /// The due time is decided when the task first gets here, and stored. An earlier answer wins. A later one is refused,
    /// even if no run has taken the default yet. [`Task::sleep`] says who continues the thread when time is up.
    ///
    /// If the default is not an `A` when it is read again, the node fails.
    pub fn or_after(self, duration: Duration, default: A) -> Self {
        self.with_deadline(Deadline::default(When::After(duration), &default))
    }

    /// As [`or_after`](Self::or_after), at a point in time. If it has passed, nobody is asked.
    pub fn or_at(self, time: SystemTime, default: A) -> Self {
        self.with_deadline(Deadline::default(When::At(time), &default))
    }
}

/// A sleep of a task, made by [`Task::sleep`]. Await it.
#[must_use = "the task does not sleep until this is awaited"]
pub struct Sleep {
    asking: Asking<IgnoredAny>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.get_mut().asking).poll(cx).map(drop)
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep").finish_non_exhaustive()
    }
}
