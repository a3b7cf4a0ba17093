//! Every workload, in every durability mode, with storage failing at everything it stores.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use superstep::Durability;
use superstep::checkpoint::AnyCheckpointer;
use superstep::testing::{CompletionOrder, Fault, FaultSaver, Journal};

use crate::check::{Gone, same};
use crate::workload::{Outcome, Play, Process, World};

/// A workload that is woken this often and has not ended never will.
const POLLS_MAX: usize = 100_000;

/// What a table found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// How many operations were made to fail.
    pub(crate) faults: usize,
    /// How many of them were a conflict.
    pub(crate) conflicts: usize,
    pub(crate) problems: Vec<String>,
}

impl Found {
    /// Says what was found, and fails if that is a problem, or less than there should be.
    pub(crate) fn report(&self, checkpointers: &str, workloads: usize, faults_min: usize) {
        let Self { faults, conflicts, .. } = self;
        println!(
            "{checkpointers}: {workloads} workloads, {faults} faults, {conflicts} of them conflicts"
        );
        for problem in &self.problems {
            println!("- {problem}");
        }
        assert!(self.problems.is_empty(), "{} problems", self.problems.len());
        assert!(self.faults >= faults_min, "{faults} faults");
    }
}

/// Runs the table on a checkpointer, each workload on a thread of its own. Of the faults, every `nth` is tried, others for each workload.
/// Nothing may take longer than the limit, if there is one.
pub(crate) async fn run(
    workloads: &[Box<dyn Play>],
    modes: &[Durability],
    checkpointer: &AnyCheckpointer,
    nth: usize,
    limit: Option<Duration>,
) -> Found {
    let mut found = Found::default();
    for (number, workload) in workloads.iter().enumerate() {
        for durability in modes.iter().copied() {
            let row = Row { workload: &**workload, durability, checkpointer, limit };
            row.run(number % nth, nth, &mut found).await;
        }
    }
    found
}

struct Row<'a> {
    workload: &'a dyn Play,
    durability: Durability,
    checkpointer: &'a AnyCheckpointer,
    limit: Option<Duration>,
}

/// What whoever ran the thread was told of the fault, and what was there then.
type Told = Arc<Mutex<Vec<(String, Gone)>>>;

impl Row<'_> {
    async fn run(&self, first: usize, nth: usize, found: &mut Found) {
        let undisturbed = FaultSaver::over(self.checkpointer.clone(), Fault::Never);
        let (told, journal) = (Told::default(), Journal::new());
        let expected = match self.play("undisturbed", &undisturbed, 0, &told, &journal).await {
            Ok(expected) => expected,
            Err(problem) => {
                found.problems.push(format!("{self}, undisturbed: {problem}"));
                return;
            }
        };
        let faults = Fault::points(undisturbed.operations()).enumerate();
        for (seed, fault) in faults.skip(first).step_by(nth) {
            match self.fault(fault, seed as u64, &expected).await {
                Ok(failed) => {
                    found.faults += usize::from(failed);
                    let conflicts = failed && matches!(fault, Fault::Conflict(_));
                    found.conflicts += usize::from(conflicts);
                }
                Err(problem) => found.problems.push(format!("{self}, {fault:?}: {problem}")),
            }
        }
    }

    /// Plays the workload with one fault. Returns whether it came to it: another order may need fewer operations.
    async fn fault(&self, fault: Fault, seed: u64, expected: &Outcome) -> Result<bool, String> {
        let checkpointer = FaultSaver::over(self.checkpointer.clone(), fault);
        let (told, journal) = (Told::default(), Journal::new());
        let ended = self.play(&format!("{fault:?}"), &checkpointer, seed, &told, &journal).await?;
        let told = std::mem::take(&mut *told.lock().unwrap_or_else(PoisonError::into_inner));
        match &told[..] {
            [] if !checkpointer.has_failed() => {}
            [] => return Err("nobody was told of the fault".to_owned()),
            [(text, gone)] => {
                let thread = self.thread(&format!("{fault:?}"));
                if !text.contains(&format!("`{thread}`")) {
                    return Err(format!("the error does not name the thread: {text}"));
                }
                let again = &journal.entries()[gone.ran.len()..];
                gone.check(self.workload.traits(), self.durability, again)?;
            }
            several => return Err(format!("one fault failed {} runs", several.len())),
        }
        same(expected, &ended)?;
        Ok(checkpointer.has_failed())
    }

    fn thread(&self, what: &str) -> String {
        format!("{self}, {what}")
    }

    async fn play(
        &self,
        what: &str,
        checkpointer: &FaultSaver,
        seed: u64,
        told: &Told,
        journal: &Journal,
    ) -> Result<Outcome, String> {
        let thread: Arc<str> = self.thread(what).into();
        let unstored = {
            let (told, journal) = (told.clone(), journal.clone());
            let (below, thread) = (self.checkpointer.clone(), thread.clone());
            move |text: String| -> crate::workload::BoxFuture<'static, Result<(), String>> {
                let (told, ran) = (told.clone(), journal.entries());
                let (below, thread) = (below.clone(), thread.clone());
                Box::pin(async move {
                    let gone = Gone::look(&below, &thread, ran).await?;
                    told.lock().unwrap_or_else(PoisonError::into_inner).push((text, gone));
                    Ok(())
                })
            }
        };
        let process = Process {
            checkpointer: AnyCheckpointer::new(checkpointer.clone()),
            thread,
            durability: self.durability,
            world: World::default(),
            journal: journal.clone(),
            order: CompletionOrder::seeded(seed),
            unstored: Some(Arc::new(unstored)),
        };
        let mut playing = pin!(self.workload.play(process));
        let mut polls = 0;
        let counted = poll_fn(|cx| {
            polls += 1;
            assert!(polls < POLLS_MAX, "{self}, {what}: woken again and again");
            playing.as_mut().poll(cx)
        });
        match self.limit {
            None => counted.await,
            Some(limit) => match tokio::time::timeout(limit, counted).await {
                Ok(ended) => ended,
                Err(_) => Err("it waits for ever".to_owned()),
            },
        }
    }
}

impl std::fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:?})", self.workload.name(), self.durability)
    }
}
