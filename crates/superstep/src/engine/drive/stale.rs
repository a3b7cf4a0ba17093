//! Whether a thread that another version of the graph stored can continue with this one.

use superstep_checkpoint::wire::{JoinName, JoinValue};

use crate::engine::drive::driver::Driver;
use crate::engine::drive::open::Start;
use crate::engine::kernel::plan::plan;
use crate::engine::step::entry::Entry;
use crate::engine::stored::ids;
use crate::error::{RunError, nearest};

impl Driver {
    /// Finds what is stored as the thread's next work and would be silently dropped.
    ///
    /// Values of channels that the graph no longer has are no such thing: they are kept in every checkpoint that follows.
    pub(in crate::engine) fn check_fits(&mut self, start: &Start) -> Result<(), RunError> {
        if self.setting.layout.lenient {
            return Ok(());
        }
        let mut problems = self.lost_triggers();
        for packet in &self.head.sends {
            if self.setting.layout.node(&packet.node).is_none() {
                let near = self.near(&packet.node);
                problems.push(format!(
                    "something was dispatched to node `{}`, which the graph does not have{near}",
                    packet.node
                ));
            }
        }
        // A branch takes up no work.
        if !start.branches {
            problems.extend(self.lost_work());
        }
        if problems.is_empty() {
            return Ok(());
        }
        let thread = self.setting.run.thread.clone().unwrap_or_default();
        Err(RunError::Stale { thread, problems })
    }

    fn near(&self, name: &str) -> String {
        nearest(
            name,
            self.setting.layout.nodes.iter().filter(|def| !def.hidden).map(|def| &*def.name),
        )
    }

    /// Triggers that are set, of nodes and joins that the graph does not have.
    fn lost_triggers(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (name, blob) in self.recorder.unknown(&self.setting.layout) {
            if let Some(node) = name.strip_prefix("branch:to:") {
                let near = self.near(node);
                problems.push(format!(
                    "node `{node}` was to run next, but the graph has no such node{near}"
                ));
            } else if let Some(join) = JoinName::parse(name)
                && !blob
                    .to_value()
                    .and_then(JoinValue::from_value)
                    .is_ok_and(|held| held.is_empty())
            {
                let members: Vec<_> =
                    join.sources.split('+').map(|name| format!("`{name}`")).collect();
                problems.push(format!(
                    "node `{}` was waiting for {}, some of which had finished, but the graph has no such join",
                    join.target,
                    members.join(", ")
                ));
            }
        }
        problems
    }

    /// Work of nodes that this graph would not run here.
    fn lost_work(&mut self) -> Vec<String> {
        if self.pending.is_empty() {
            return Vec::new();
        }
        let mut head = self.head.clone();
        head.updated = None;
        let superstep = self.superstep();
        let planned = plan(&self.setting.layout, &head).into_iter();
        let known: Vec<_> =
            planned.map(|planned| Entry::new(&superstep, planned).task.id()).collect();
        let mut problems = Vec::new();
        for (id, record) in self.pending.all() {
            let Some(node) = ids::pulled(&record.path).filter(|_| !known.contains(&id)) else {
                continue;
            };
            let did = match (record.is_finished(), record.questions.is_empty()) {
                (true, _) => "had finished",
                (false, false) => "waits for an answer",
                // A failed node left nothing that could be lost.
                (false, true) => continue,
            };
            let why = match self.setting.layout.node(node) {
                Some(_) => "what leads to it has changed".to_owned(),
                None => format!("the graph has no such node{}", self.near(node)),
            };
            problems.push(format!("node `{node}` {did} here, but {why}"));
        }
        problems.sort();
        problems
    }
}
