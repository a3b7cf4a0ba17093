use std::sync::Arc;
use std::time::SystemTime;

use uuid::Uuid;

use super::Checkpointer;
use crate::value::due_text;
use crate::wire::UtcTime;
use crate::{
    Blob, CheckpointId, Error, Stored, TaskId, TaskWrites, ThreadPage, ThreadQuery, ThreadStatus,
    Value,
};

/// The slot of alarms. It is a reserved one, so that a later alarm replaces an earlier one.
const SLOT: &str = "__resume__";

/// How many threads are looked at together where alarms have no index.
const PAGE: usize = 100;

/// A time at which to look at a thread, because a question of it has a
/// [due time](crate::Interrupt::due).
///
/// It is stored as a write of [`TaskId::ALARM`] whose path is the time, at the checkpoint whose task asks, in one operation
/// with the question. An alarm is never later than the earliest due time of the head. It may be too early, and alarms of
/// older checkpoints stay; so whoever finds one reads the head ([`Stored::due`]) and moves the alarm.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Alarm {
    /// The thread.
    pub thread: Arc<str>,
    /// The checkpoint beside which it is stored.
    pub checkpoint: CheckpointId,
    /// When to look.
    pub at: SystemTime,
    /// What is stored, different for each alarm.
    pub stored: Blob,
}

impl Alarm {
    /// An alarm as a backend has found it. `None` if the path is no time: the alarm is off.
    pub fn found(
        thread: impl Into<Arc<str>>,
        checkpoint: CheckpointId,
        path: &str,
        stored: Blob,
    ) -> Option<Self> {
        let at = UtcTime::parse(path)?;
        Some(Self { thread: thread.into(), checkpoint, at, stored })
    }

    /// The path of an alarm at this time. The order of paths is that of times.
    pub fn path(at: SystemTime) -> String {
        due_text(at)
    }

    /// The write that sets an alarm.
    ///
    /// # Errors
    /// Its content cannot be encoded.
    pub fn set(at: Option<SystemTime>) -> Result<TaskWrites, Error> {
        let path = at.map(Self::path).unwrap_or_default();
        let unique = Blob::from_value(&Value::from(Uuid::new_v4().to_string()))?;
        Ok(TaskWrites::new(TaskId::ALARM, path, vec![(SLOT.into(), unique)]))
    }

    /// The write that moves this alarm, or turns it off, unless somebody has set it meanwhile.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn moved(&self, at: Option<SystemTime>) -> Result<TaskWrites, Error> {
        Ok(Self::set(at)?.expecting(SLOT, Some(self.stored.clone())))
    }
}

/// Alarms, the earliest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlarmPage {
    /// Those that have gone off.
    pub alarms: Vec<Alarm>,
    /// The time of the first one after these, whether or not it has gone off.
    pub next: Option<SystemTime>,
}

impl AlarmPage {
    /// The page made of the first `limit + 1` alarms in the order of time.
    pub fn new(first: impl IntoIterator<Item = Alarm>, until: SystemTime, limit: usize) -> Self {
        let mut page = Self::default();
        for alarm in first {
            if alarm.at > until || page.alarms.len() >= limit {
                page.next = Some(alarm.at);
                break;
            }
            page.alarms.push(alarm);
        }
        page
    }
}

impl Stored {
    /// The alarm beside this checkpoint, if it is on.
    pub fn alarm(&self) -> Option<Alarm> {
        let found = self.writes.iter().find(|write| write.task == TaskId::ALARM)?;
        Alarm::found(self.thread.clone(), self.checkpoint.id, &found.path, found.value.clone())
    }
}

/// Finds alarms by looking at every thread that is not done.
pub(super) async fn walk_alarms<C: Checkpointer + ?Sized>(
    checkpointer: &C,
    until: SystemTime,
    limit: usize,
) -> Result<AlarmPage, Error> {
    let mut found = Vec::new();
    let mut query = ThreadQuery::new(PAGE);
    for status in [ThreadStatus::Waiting, ThreadStatus::Ready, ThreadStatus::Failed] {
        query = query.status(status);
    }
    loop {
        let ThreadPage { threads, next } = checkpointer.threads(query.clone()).await?;
        for info in threads {
            let head = checkpointer.get(&info.thread, "", Some(info.head)).await;
            match head {
                Ok(head) => found.extend(head.and_then(|head| head.alarm())),
                // Damage of one thread must not keep the others asleep.
                Err(Error::Codec(_)) => {}
                Err(error) => return Err(error),
            }
        }
        match next {
            Some(next) => query = query.after(next),
            None => break,
        }
    }
    found.sort_by(|a, b| (a.at, &a.thread).cmp(&(b.at, &b.thread)));
    Ok(AlarmPage::new(found, until, limit))
}
