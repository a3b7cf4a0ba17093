//! What must hold when something that was stored is taken up again.

use std::collections::{BTreeSet, HashMap};

use superstep::Durability;
use superstep::checkpoint::{AnyCheckpointer, Query, TaskId, reserved_index};
use superstep::testing::Ran;

use crate::workload::{Outcome, Traits};

/// Asserts that a workload came to the same end as when nothing disturbed it.
pub(crate) fn same(expected: &Outcome, found: &Outcome) -> Result<(), String> {
    if found.state != expected.state {
        return Err(format!("the state is {}, and not {}", found.state, expected.state));
    }
    match (&found.returned, &expected.returned) {
        (Some(found), Some(expected)) if found != expected => {
            Err(format!("the last run returned {found}, and not {expected}"))
        }
        _ => Ok(()),
    }
}

/// What was stored, and how far a process had come, when it ended or its storage failed.
pub(crate) struct Gone {
    /// The tasks and recorded calls whose completion was stored.
    complete: BTreeSet<TaskId>,
    /// The superstep of the newest checkpoint of the outermost graph; -2 if there is none.
    head: i64,
    /// What had run by then.
    pub(crate) ran: Vec<Ran>,
}

impl Gone {
    pub(crate) async fn look(
        checkpointer: &AnyCheckpointer,
        thread: &str,
        ran: Vec<Ran>,
    ) -> Result<Self, String> {
        let query = Query { thread: Some(thread.into()), ..Query::default() };
        let stored = checkpointer.list(query).await.map_err(|error| error.to_string())?;
        let mut complete = BTreeSet::new();
        let mut head = -2;
        for checkpoint in stored.iter().rev() {
            if checkpoint.ns.is_empty() {
                head = checkpoint.metadata.step;
            }
            for write in &checkpoint.writes {
                let tells = reserved_index(&write.channel).is_some()
                    || ["__error_source_node__", "__args__"].contains(&&*write.channel);
                if !tells && !write.task.is_reserved() {
                    complete.insert(write.task);
                }
            }
        }
        Ok(Self { complete, head, ran })
    }

    /// What was stored holds: nothing complete runs again, and no more is lost than the durability mode says.
    pub(crate) fn check(
        &self,
        traits: Traits,
        durability: Durability,
        again: &[Ran],
    ) -> Result<(), String> {
        if let Some(ran) = again.iter().find(|ran| self.complete.contains(&ran.task)) {
            return Err(format!("`{}` ran again although its completion was stored", ran.name));
        }
        self.check_supersteps(durability)?;
        if durability == Durability::Sync && traits.sequential {
            self.check_calls(again)?;
        }
        Ok(())
    }

    /// A superstep of the last run starts when the one before it is stored; storing meanwhile, when the one before that is.
    fn check_supersteps(&self, durability: Durability) -> Result<(), String> {
        let lost_max = match durability {
            Durability::Sync => 1,
            Durability::Async => 2,
            _ => return Ok(()),
        };
        let outermost = self.ran.iter().filter(|ran| ran.ns.is_empty());
        let Some(reached) = outermost.map(|ran| ran.step).max() else { return Ok(()) };
        if self.head < reached - lost_max {
            return Err(format!(
                "superstep {reached} ran, and the last one that is stored is {}",
                self.head
            ));
        }
        Ok(())
    }

    /// A recorded call that was followed by another one had been stored.
    fn check_calls(&self, again: &[Ran]) -> Result<(), String> {
        let mut last: HashMap<(&str, i64, &str), &Ran> = HashMap::new();
        for ran in &self.ran {
            let Some((caller, _)) = ran.name.rsplit_once('/') else { continue };
            if let Some(before) = last.insert((&ran.ns, ran.step, caller), ran)
                && before.task != ran.task
                && again.iter().any(|again| again.task == before.task)
            {
                return Err(format!("`{}` ran again after `{}` had begun", before.name, ran.name));
            }
        }
        Ok(())
    }
}
