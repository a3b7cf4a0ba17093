//! Every workload, in every durability mode, ended before and after everything it stores.

use std::sync::Arc;

use superstep::Durability;
use superstep::checkpoint::AnyCheckpointer;
use superstep::testing::{CompletionOrder, Crash, CrashSaver, Journal};

use crate::check::{Gone, same};
use crate::workload::{Outcome, Play, Process, World};

/// What a table found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// How many processes were ended.
    pub(crate) crashes: usize,
    /// How often the one that took over was ended, too.
    pub(crate) pairs: usize,
    pub(crate) problems: Vec<String>,
}

const WORKLOADS_MIN: usize = 107;

impl Found {
    /// Says what was found, and fails if that is a problem, or less than there should be.
    pub(crate) fn report(&self, checkpointers: &str, workloads: usize, crashes_min: usize) {
        let Self { crashes, pairs, .. } = self;
        println!(
            "{checkpointers}: {workloads} workloads, {crashes} crashes, {pairs} of them in pairs"
        );
        for problem in &self.problems {
            println!("- {problem}");
        }
        assert!(self.problems.is_empty(), "{} problems", self.problems.len());
        assert!(workloads >= WORKLOADS_MIN, "{workloads} workloads");
        assert!(self.crashes >= crashes_min, "{} crashes", self.crashes);
    }
}

/// Runs the table on a checkpointer, each process on a thread of its own. Of the moments to end at, every `nth` is taken, others for each
/// workload.
pub(crate) async fn run(
    workloads: &[Box<dyn Play>],
    modes: &[Durability],
    checkpointer: &AnyCheckpointer,
    nth: usize,
) -> Found {
    let mut found = Found::default();
    for (number, workload) in workloads.iter().enumerate() {
        for durability in modes.iter().copied() {
            let row = Row { workload: &**workload, durability };
            row.run(checkpointer, number % nth, nth, &mut found).await;
        }
    }
    found
}

/// Runs the table with two moments to end at: one of a process, and one of the process that takes the thread up from it. So
/// many pairs are drawn for each workload in each mode.
pub(crate) async fn run_pairs(
    workloads: &[Box<dyn Play>],
    modes: &[Durability],
    checkpointer: &AnyCheckpointer,
    pairs: usize,
    seed: u64,
) -> Found {
    let mut found = Found::default();
    for (number, workload) in workloads.iter().enumerate() {
        for durability in modes.iter().copied() {
            let row = Row { workload: &**workload, durability };
            let draw = Draw(seed ^ (number as u64) << 32 ^ durability as u64);
            row.run_pairs(checkpointer, draw, pairs, &mut found).await;
        }
    }
    found
}

/// Numbers that look random, the same for the same seed.
struct Draw(u64);

impl Draw {
    /// One of the numbers from 1 to `max`.
    fn up_to(&mut self, max: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        1 + ((mixed ^ (mixed >> 31)) % max.max(1) as u64) as usize
    }

    fn crash(&mut self, operations: usize) -> Crash {
        let at = self.up_to(operations);
        if self.up_to(2) == 1 { Crash::Before(at) } else { Crash::After(at) }
    }
}

struct Row<'a> {
    workload: &'a dyn Play,
    durability: Durability,
}

impl Row<'_> {
    async fn run(
        &self,
        checkpointer: &AnyCheckpointer,
        first: usize,
        nth: usize,
        found: &mut Found,
    ) {
        let Some((expected, operations)) = self.undisturbed(checkpointer, found).await else {
            return;
        };
        for (seed, crash) in Crash::points(operations).enumerate().skip(first).step_by(nth) {
            let again = match seed % 2 {
                0 => Crash::Before(1 + seed % 3),
                _ => Crash::Never,
            };
            let what = format!("{crash:?}");
            self.crash(checkpointer, &what, [crash, again], seed as u64, &expected, found).await;
        }
    }

    async fn run_pairs(
        &self,
        checkpointer: &AnyCheckpointer,
        mut draw: Draw,
        pairs: usize,
        found: &mut Found,
    ) {
        let Some((expected, operations)) = self.undisturbed(checkpointer, found).await else {
            return;
        };
        for pair in 0..pairs {
            // Of a process that ends late there is little left to do.
            let first = draw.crash(operations);
            let done = match first {
                Crash::Before(at) | Crash::After(at) => at,
                Crash::Never => 0,
            };
            let second = draw.crash(operations.saturating_sub(done).max(1) + 2);
            let (what, seed) = (format!("pair {pair}"), draw.0);
            self.crash(checkpointer, &what, [first, second], seed, &expected, found).await;
        }
    }

    /// What the workload comes to, and in how many operations.
    async fn undisturbed(
        &self,
        checkpointer: &AnyCheckpointer,
        found: &mut Found,
    ) -> Option<(Outcome, usize)> {
        let undisturbed = CrashSaver::over(checkpointer.clone(), Crash::Never);
        match self.play(&undisturbed, &self.process("undisturbed", 0)).await {
            Some(Ok(expected)) => Some((expected, undisturbed.operations())),
            failed => {
                found.problems.push(format!("{self}, undisturbed: {failed:?}"));
                None
            }
        }
    }

    async fn crash(
        &self,
        checkpointer: &AnyCheckpointer,
        what: &str,
        crashes: [Crash; 2],
        seed: u64,
        expected: &Outcome,
        found: &mut Found,
    ) {
        let process = self.process(what, seed);
        match self.crash_twice(checkpointer, process, crashes, expected).await {
            Ok(ended) => {
                found.crashes += ended;
                found.pairs += usize::from(ended == 2);
            }
            Err(problem) => {
                found.problems.push(format!("{self}, {what} {crashes:?}: {problem}"));
            }
        }
    }

    /// Ends a process at a point, then another one somewhere on its way, and lets a third one finish. Returns how many were
    /// ended.
    async fn crash_twice(
        &self,
        checkpointer: &AnyCheckpointer,
        mut process: ProcessParts,
        crashes: [Crash; 2],
        expected: &Outcome,
    ) -> Result<usize, String> {
        let mut gone: Option<Gone> = None;
        for (ended, crash) in crashes.into_iter().chain([Crash::Never]).enumerate() {
            let checkpointer = CrashSaver::over(checkpointer.clone(), crash);
            let end = self.play(&checkpointer, &process).await;
            if let Some(gone) = gone {
                self.check(&gone, &process.journal)?;
            }
            if let Some(end) = end {
                // Another order may need fewer operations; then there is nothing to recover from, and nothing to excuse.
                same(expected, &end?)?;
                return Ok(ended);
            }
            gone = Some(self.look_back(&checkpointer, &process).await?);
            process.journal = Journal::new();
        }
        Err("the third process never ends".to_owned())
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
        checkpointer: &CrashSaver,
        parts: &ProcessParts,
    ) -> Option<Result<Outcome, String>> {
        let process = Process {
            checkpointer: AnyCheckpointer::new(checkpointer.clone()),
            thread: parts.thread.clone(),
            durability: parts.durability,
            world: parts.world.clone(),
            journal: parts.journal.clone(),
            order: parts.order,
            unstored: None,
        };
        checkpointer.run(self.workload.play(process)).await
    }

    /// What the process that ended had stored, and how far it had come.
    async fn look_back(
        &self,
        checkpointer: &CrashSaver,
        process: &ProcessParts,
    ) -> Result<Gone, String> {
        Gone::look(&checkpointer.survivor(), &process.thread, process.journal.entries()).await
    }

    fn check(&self, gone: &Gone, after: &Journal) -> Result<(), String> {
        gone.check(self.workload.traits(), self.durability, &after.entries())
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
