//! Every workload, in every durability mode, ended before and after everything it stores.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use superstep::Durability;
use superstep::checkpoint::{AnyCheckpointer, Query, TaskId, reserved_index};
use superstep::testing::{CompletionOrder, Crash, CrashSaver, Journal, Ran};

use crate::workload::{Outcome, Play, Process, World};

/// What a table found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// How many processes were ended.
    pub(crate) crashes: usize,
    pub(crate) problems: Vec<String>,
}

const WORKLOADS_MIN: usize = 104;

impl Found {
    /// Says what was found, and fails if that is a problem, or less than there should be.
    pub(crate) fn report(&self, savers: &str, workloads: usize, crashes_min: usize) {
        println!("{savers}: {workloads} workloads, {} crashes", self.crashes);
        for problem in &self.problems {
            println!("- {problem}");
        }
        assert!(self.problems.is_empty(), "{} problems", self.problems.len());
        assert!(workloads >= WORKLOADS_MIN, "{workloads} workloads");
        assert!(self.crashes >= crashes_min, "{} crashes", self.crashes);
    }
}

/// Runs the table on a saver, each process on a thread of its own. Of the moments to end at, every `nth` is taken, others for each
/// workload.
pub(crate) async fn run(
    workloads: &[Box<dyn Play>],
    modes: &[Durability],
    saver: &AnyCheckpointer,
    nth: usize,
) -> Found {
    let mut found = Found::default();
    for (number, workload) in workloads.iter().enumerate() {
        for durability in modes.iter().copied() {
            let row = Row { workload: &**workload, durability };
            row.run(saver, number % nth, nth, &mut found).await;
        }
    }
    found
}

struct Row<'a> {
    workload: &'a dyn Play,
    durability: Durability,
}

impl Row<'_> {
    async fn run(&self, saver: &AnyCheckpointer, first: usize, nth: usize, found: &mut Found) {
        let process = self.process("undisturbed", 0);
        let undisturbed = CrashSaver::over(saver.clone(), Crash::Never);
        let expected = match self.play(&undisturbed, &process).await {
            Some(Ok(expected)) => expected,
            failed => {
                found.problems.push(format!("{self}, undisturbed: {failed:?}"));
                return;
            }
        };
        let points = Crash::points(undisturbed.operations()).enumerate();
        for (seed, crash) in points.skip(first).step_by(nth) {
            found.crashes += 1;
            if let Err(problem) = self.crash(saver.clone(), crash, seed as u64, &expected).await {
                found.problems.push(format!("{self}, crash {crash:?}: {problem}"));
            }
        }
    }

    /// Ends a process at a point, then another one somewhere on its way, and lets a third one finish.
    async fn crash(
        &self,
        saver: AnyCheckpointer,
        crash: Crash,
        seed: u64,
        expected: &Outcome,
    ) -> Result<(), String> {
        let mut process = self.process(&format!("{crash:?}"), seed);
        let first = CrashSaver::over(saver, crash);
        if let Some(ended) = self.play(&first, &process).await {
            // Another order may need fewer operations; then there is nothing to recover from, and nothing to excuse.
            return self.same(expected, &ended?);
        }
        let gone = self.look_back(&first, &process).await?;

        process.journal = Journal::new();
        let again = if seed.is_multiple_of(2) {
            Crash::Before(1 + seed as usize % 3)
        } else {
            Crash::Never
        };
        let second = CrashSaver::over(first.survivor(), again);
        let ended = self.play(&second, &process).await;
        gone.check(self, &process.journal)?;
        if let Some(ended) = ended {
            return self.same(expected, &ended?);
        }
        let gone = self.look_back(&second, &process).await?;
        process.journal = Journal::new();
        let third = CrashSaver::over(second.survivor(), Crash::Never);
        let ended = self.play(&third, &process).await;
        gone.check(self, &process.journal)?;
        let ended = ended.ok_or("the third process never ends")?;
        self.same(expected, &ended?)
            .map_err(|problem| format!("after another crash {again:?}: {problem}"))
    }

    fn same(&self, expected: &Outcome, found: &Outcome) -> Result<(), String> {
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

    fn process(&self, what: &str, seed: u64) -> ProcessParts {
        ProcessParts {
            thread: format!("{self}, {what}").into(),
            durability: self.durability,
            world: World::default(),
            journal: Journal::new(),
            order: CompletionOrder::seeded(seed),
        }
    }

    async fn play(
        &self,
        saver: &CrashSaver,
        parts: &ProcessParts,
    ) -> Option<Result<Outcome, String>> {
        let process = Process {
            saver: AnyCheckpointer::new(saver.clone()),
            thread: parts.thread.clone(),
            durability: parts.durability,
            world: parts.world.clone(),
            journal: parts.journal.clone(),
            order: parts.order,
        };
        saver.run(self.workload.play(process)).await
    }

    /// What the process that ended had stored, and how far it had come.
    async fn look_back(&self, saver: &CrashSaver, process: &ProcessParts) -> Result<Gone, String> {
        let query = Query { thread: Some(process.thread.clone()), ..Query::default() };
        let stored = saver.survivor().list(query).await.map_err(|error| error.to_string())?;
        let mut complete = BTreeSet::new();
        let mut head = -2;
        for checkpoint in stored.iter().rev() {
            if checkpoint.ns.is_empty() {
                head = checkpoint.metadata.step;
            }
            for write in &checkpoint.writes {
                let tells = reserved_index(&write.channel).is_some()
                    || ["__error_source_node__", "__args__"].contains(&&*write.channel);
                if !tells && write.task != TaskId::NULL && write.task != TaskId::CLAIM {
                    complete.insert(write.task);
                }
            }
        }
        Ok(Gone { complete, head, ran: process.journal.entries() })
    }
}

impl std::fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", self.workload.name(), self.durability)
    }
}

struct ProcessParts {
    thread: Arc<str>,
    durability: Durability,
    world: World,
    journal: Journal,
    order: CompletionOrder,
}

/// A process that has ended.
struct Gone {
    /// The tasks and recorded calls whose completion was stored.
    complete: BTreeSet<TaskId>,
    /// The superstep of the newest checkpoint of the outermost graph; -2 if there is none.
    head: i64,
    ran: Vec<Ran>,
}

impl Gone {
    /// What was stored holds: nothing complete runs again, and no more is lost than the durability mode says.
    fn check(&self, row: &Row<'_>, after: &Journal) -> Result<(), String> {
        let again = after.entries();
        if let Some(ran) = again.iter().find(|ran| self.complete.contains(&ran.task)) {
            return Err(format!("`{}` ran again although its completion was stored", ran.name));
        }
        self.check_supersteps(row)?;
        if row.durability == Durability::Sync && row.workload.traits().sequential {
            self.check_calls(&again)?;
        }
        Ok(())
    }

    /// A superstep of the last run starts when the one before it is stored; storing meanwhile, when the one before that is.
    fn check_supersteps(&self, row: &Row<'_>) -> Result<(), String> {
        let lost_max = match row.durability {
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
