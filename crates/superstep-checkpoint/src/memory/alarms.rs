//! Alarms in the order of time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use super::Threads;
use crate::{Alarm, AlarmPage, CheckpointId, TaskId, TaskWrites};

/// The alarms that were set. Each is looked up when it goes off, so those that were moved or deleted may still be among them.
#[derive(Default)]
pub(super) struct Alarms(BTreeSet<(String, Arc<str>, CheckpointId)>);

impl Alarms {
    /// Takes note of the alarms among these writes.
    pub(super) fn note(
        &mut self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: &[TaskWrites],
    ) {
        let alarms = writes.iter().filter(|writes| writes.task == TaskId::ALARM && ns.is_empty());
        for writes in alarms {
            self.0.insert((writes.path.clone(), thread.into(), checkpoint));
        }
    }

    /// Takes note of all alarms of a thread.
    pub(super) fn note_thread(&mut self, threads: &Threads, thread: &str) {
        let line = threads.get(thread).and_then(|spaces| spaces.get(""));
        for (id, row) in line.into_iter().flatten() {
            let mut written = row.writes.iter();
            if let Some((_, alarm)) = written.find(|((task, _), _)| *task == TaskId::ALARM) {
                self.0.insert((alarm.path.clone(), thread.into(), *id));
            }
        }
    }

    pub(super) fn page(&mut self, threads: &Threads, until: SystemTime, limit: usize) -> AlarmPage {
        let find = |(path, thread, id): &(String, Arc<str>, CheckpointId)| {
            let row = threads.get(thread)?.get("")?.get(id)?;
            let mut written = row.writes.iter();
            let (_, alarm) =
                written.find(|((task, _), alarm)| *task == TaskId::ALARM && alarm.path == *path)?;
            Alarm::found(thread.clone(), *id, path, alarm.value.clone())
        };
        let mut first = Vec::new();
        let mut gone = Vec::new();
        for key in &self.0 {
            match find(key) {
                Some(alarm) => first.push(alarm),
                None => gone.push(key.clone()),
            }
            if first.last().is_some_and(|last| last.at > until || first.len() > limit) {
                break;
            }
        }
        for key in &gone {
            self.0.remove(key);
        }
        AlarmPage::new(first, until, limit)
    }
}
