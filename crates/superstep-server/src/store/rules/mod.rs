//! The rules of the queue, as pure functions.
//!
//! A rule gets the rows of one thread and returns its answer with the [`Changes`] that go with it. A database loads the rows,
//! calls the rule, and applies the changes, all in one transaction that keeps others away from the thread. So each rule is
//! written once, whatever the database.

mod admit;
mod answer;
mod cancel;
mod claim;
mod finish;
mod once;
mod recover;
mod wake;

use serde_json::{Value as Json, json};

use super::records::ThreadEnd;
use super::{Answered, Cancel, Run, RunStatus, Thread, ThreadStatus, Wake, Webhook};
use crate::time::Micros;

pub(super) use admit::admit;
pub(super) use cancel::{cancel, delete_run};
pub(super) use claim::claim;
pub(super) use finish::finish;
pub(super) use once::{has_room, keep, known, oldest};
pub(super) use recover::recover;
pub(super) use wake::wake;

/// A thread, and its runs that are pending or running in the order in which they are due.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadRows {
    pub(super) thread: Option<Thread>,
    pub(super) open: Vec<Run>,
}

/// What a rule changes in the rows of one thread. A database applies the fields in this order.
#[derive(Clone, Debug, Default)]
#[must_use = "a rule has no effect until its changes are applied"]
pub(super) struct Changes {
    /// Deleted with all its runs and their events.
    pub(super) delete_thread: Option<String>,
    /// Deleted with their events.
    pub(super) remove_runs: Vec<String>,
    pub(super) put_thread: Option<Thread>,
    pub(super) put_runs: Vec<Run>,
    /// What is to be told of runs that ended, due at their end.
    pub(super) webhooks: Vec<Webhook>,
    /// What a deleted run ended with, which readers in other processes still have to learn. Its events are kept for them.
    pub(super) kept_end: Option<(String, Json)>,
    /// Put into the table of answers.
    pub(super) answers: Vec<Answered>,
    /// Results of runs that are deleted, by the idempotency keys of their requests: kept with what is kept for the key.
    pub(super) results: Vec<(String, Json)>,
}

/// The rows of a thread while a rule changes them.
#[derive(Debug)]
struct Edit {
    rows: ThreadRows,
    changes: Changes,
    now: Micros,
}

impl Edit {
    fn new(rows: ThreadRows, now: Micros) -> Self {
        Self { rows, changes: Changes::default(), now }
    }

    fn put_run(&mut self, mut run: Run) {
        let since = std::mem::replace(&mut run.updated_at, self.now);
        if run.status.is_over() {
            self.changes.webhooks.extend(Webhook::of(&run, since, self.now));
        }
        self.rows.open.retain(|open| open.run_id != run.run_id);
        if !run.status.is_over() {
            self.rows.open.push(run.clone());
        }
        self.changes.put_runs.push(run);
    }

    fn remove_run(&mut self, id: &str) {
        self.rows.open.retain(|open| open.run_id != id);
        self.changes.remove_runs.push(id.to_owned());
    }

    /// Cancels a run that waits, or marks one that runs.
    fn cancel(&mut self, mut run: Run, action: Cancel) -> WasCancelled {
        match (run.status, action) {
            (RunStatus::Running, _) => {
                run.cancel = Some(action);
                self.put_run(run);
                WasCancelled::Running
            }
            (_, Cancel::Rollback) => {
                self.remove_run(&run.run_id);
                WasCancelled::Pending
            }
            (_, Cancel::Interrupt) => {
                run.status = RunStatus::Interrupted;
                run.result = Some(json!({}));
                self.put_run(run);
                WasCancelled::Pending
            }
        }
    }

    /// Brings the thread up to date after one of its runs ended (`end`) or was taken away. If the thread is to be woken, it is
    /// by a run as the one that it was put to sleep `after`.
    fn settle(&mut self, end: Option<ThreadEnd>, after: Option<&Run>) {
        let Some(thread) = &mut self.rows.thread else { return };
        thread.updated_at = self.now;
        let status = match end {
            Some(ThreadEnd { status, values, interrupts, error, due }) => {
                let after = || after.cloned().map(Box::new);
                thread.wake = due.and_then(|due| Some(Wake { due, after: after()? }));
                if let Some(values) = values {
                    thread.values = values;
                }
                thread.interrupts = interrupts;
                thread.error = error;
                thread.state_updated_at = self.now;
                status
            }
            None => resting(thread),
        };
        thread.status = if self.rows.open.is_empty() { status } else { ThreadStatus::Busy };
        self.changes.put_thread = Some(thread.clone());
    }
}

/// What a cancelled run was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WasCancelled {
    /// It waited, and does not run any more.
    Pending,
    /// It runs, and has to be stopped.
    Running,
}

/// The status of a thread without a run in progress, from what is known of it.
fn resting(thread: &Thread) -> ThreadStatus {
    if !thread.interrupts.is_empty() {
        ThreadStatus::Interrupted
    } else if !thread.error.is_null() {
        ThreadStatus::Error
    } else {
        ThreadStatus::Idle
    }
}

#[cfg(test)]
mod tests {
    //! What the tables of the rules are written with.

    use serde_json::{Map, json};

    use super::*;
    use crate::store::Multitask;

    pub(super) const NOW: Micros = Micros(1_000);

    pub(super) fn run(id: &str, status: RunStatus) -> Run {
        Run {
            run_id: id.to_owned(),
            thread_id: "t".to_owned(),
            assistant_id: "a".to_owned(),
            graph_id: "g".to_owned(),
            created_at: Micros(1),
            updated_at: Micros(1),
            status,
            metadata: Map::new(),
            kwargs: Map::new(),
            multitask: Multitask::Enqueue,
            attempt: u32::from(status == RunStatus::Running),
            begun: status == RunStatus::Running,
            worker: None,
            epoch: u64::from(status == RunStatus::Running),
            admitted_by: None,
            followed: false,
            cancel: None,
            stateless: None,
            result: None,
            session: false,
            origin: Default::default(),
        }
    }

    /// A busy thread with these runs.
    pub(super) fn rows(open: &[(&str, RunStatus)]) -> ThreadRows {
        let mut thread = Thread::new("t".to_owned(), Map::new(), Micros(0));
        thread.status = ThreadStatus::Busy;
        let open = open.iter().map(|(id, status)| run(id, *status)).collect();
        ThreadRows { thread: Some(thread), open }
    }

    /// Changes in one line: `-run` is removed, `run:status` is put, `=status` is that of the thread.
    pub(super) fn shown(changes: &Changes) -> String {
        let mut words: Vec<String> = Vec::new();
        words.extend(changes.delete_thread.iter().map(|thread| format!("--{thread}")));
        words.extend(changes.remove_runs.iter().map(|run| format!("-{run}")));
        words.extend(changes.put_runs.iter().map(|run| {
            let cancel = run.cancel.map_or(String::new(), |cancel| format!("!{}", cancel.as_str()));
            format!("{}:{}{cancel}", run.run_id, run.status.as_str())
        }));
        let thread = changes.put_thread.as_ref();
        words.extend(thread.map(|thread| format!("={}", thread.status.as_str())));
        words.join(" ")
    }

    #[test]
    fn a_thread_rests_as_what_is_known_of_it_says() {
        let thread = |interrupts: &[&str], error| {
            let mut thread = Thread::new("t".to_owned(), Map::new(), Micros(0));
            thread.interrupts = interrupts.iter().map(|id| ((*id).to_owned(), json!([]))).collect();
            thread.error = error;
            resting(&thread)
        };
        assert_eq!(thread(&[], json!(null)), ThreadStatus::Idle);
        assert_eq!(thread(&[], json!("boom")), ThreadStatus::Error);
        assert_eq!(thread(&["task"], json!("boom")), ThreadStatus::Interrupted);
    }
}
