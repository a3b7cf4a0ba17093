//! Where tests look at tasks and bend their course. Without the feature `testing` nothing happens here.

use std::time::SystemTime;

use crate::engine::drive::run::Context;
use crate::engine::step::attempt::{End, TaskResult};
use crate::engine::task::handle::Task;
use crate::error::NodeError;

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Returned,
    Failed,
    Stopped,
}

impl Way {
    pub(in crate::engine) fn of(ended: &Result<End, NodeError>) -> Self {
        match ended {
            Ok(End::Done(_) | End::ForParent(_)) => Self::Returned,
            Ok(End::Suspended(_)) => Self::Stopped,
            Ok(End::Failed(_)) | Err(_) => Self::Failed,
        }
    }
}

impl<T> From<&Result<TaskResult<T>, NodeError>> for Way {
    fn from(ended: &Result<TaskResult<T>, NodeError>) -> Self {
        match ended {
            Ok(TaskResult::Returned(_)) => Self::Returned,
            Ok(TaskResult::Suspended(_)) => Self::Stopped,
            Err(_) => Self::Failed,
        }
    }
}

/// One attempt of a node or of a recorded call, from its beginning to its end.
pub(crate) struct Attempt {
    #[cfg(feature = "testing")]
    noted: Option<(crate::testing::Journal, usize)>,
}

#[cfg(not(feature = "testing"))]
impl Attempt {
    pub(crate) fn begins(_: &Task, _: bool) -> Self {
        Self {}
    }

    pub(crate) fn ends(self, _: &Task, _: Way) -> impl Future<Output = ()> + Send + 'static {
        std::future::ready(())
    }
}

#[cfg(feature = "testing")]
impl Attempt {
    /// Tasks of hidden nodes are ours, and nobody's business.
    pub(crate) fn begins(task: &Task, hidden: bool) -> Self {
        let journal = task.context::<crate::testing::Journal>().filter(|_| !hidden);
        Self {
            noted: journal.map(|journal| {
                let at = journal.begins(task);
                (journal, at)
            }),
        }
    }

    pub(crate) async fn ends(self, task: &Task, way: Way) {
        if let Some((journal, at)) = self.noted {
            journal.ends(at, way);
        }
        if let Some(order) = task.context::<crate::testing::CompletionOrder>() {
            tokio::time::sleep(order.delay(task)).await;
        }
    }
}

/// The time, or that of the clock which a test has put into the context.
pub(crate) fn now(context: &Context) -> SystemTime {
    #[cfg(feature = "testing")]
    if let Some(clock) = context.get::<crate::testing::Clock>() {
        return clock.now();
    }
    let _ = context;
    SystemTime::now()
}

/// A random number, or one that a test has chosen.
pub(in crate::engine) fn random(task: &Task) -> u32 {
    #[cfg(feature = "testing")]
    if let Some(order) = task.context::<crate::testing::CompletionOrder>() {
        return order.random(task);
    }
    let _ = task;
    let bytes = uuid::Uuid::new_v4().into_bytes();
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
