//! Random cases: made from a seed, recorded with the reference, and run with our engine.
//!
//! ```text
//! conformance --fuzz PYTHON [--profile plain|wild] [--count N] [--seed S] [--from I] [--db memory|sqlite|postgres|all]
//!             [--handoff] [--minimise] [--show]
//! ```
//!
//! A case of the plain profile must agree with the reference exactly. One of the wild profile may differ, if a rule says how.

mod compare;
mod generate;
mod minimise;
mod options;
mod reference;
mod report;
mod rng;
mod rules;
mod trial;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fuzz::options::Options;
use crate::fuzz::report::Report;
use crate::fuzz::trial::Worker;

/// Runs random cases, and says whether none differs without a rule.
pub(crate) fn fuzz(python: &str, arguments: &[String]) -> Result<bool, String> {
    let options = Options::parse(arguments)?;
    if options.show {
        return show(&options);
    }
    let next = AtomicUsize::new(options.from);
    let report = Mutex::new(Report::default());
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(4);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                if let Err(problem) = work(python, &options, &next, &report) {
                    *lock(&failed) = Some(problem);
                }
            });
        }
    });
    if let Some(problem) = lock(&failed).take() {
        return Err(problem);
    }
    let report = report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    print!("{}", report.summary(&options));
    Ok(report.is_clean())
}

fn work(
    python: &str,
    options: &Options,
    next: &AtomicUsize,
    report: &Mutex<Report>,
) -> Result<(), String> {
    let mut worker = Worker::start(python, options)?;
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= options.from + options.count {
            return Ok(());
        }
        let case = generate::case(options.profile, options.seed, index);
        let outcome = worker.trial(&case, index)?;
        lock(report).add(&case, index, outcome);
    }
}

fn show(options: &Options) -> Result<bool, String> {
    for index in options.from..options.from + options.count {
        let case = generate::case(options.profile, options.seed, index);
        println!("{}", serde_json::to_string(&case).map_err(|error| error.to_string())?);
    }
    Ok(true)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
