//! Shows that a process may end at any moment: before or after anything it stores, in every durability mode. Another
//! process takes the thread up, comes to the same state, and runs nothing again whose completion was stored.
//!
//! It could break wherever two things are stored one after the other that belong together, wherever something is told
//! before it is stored, and wherever what is stored is read back otherwise than it was meant.

mod check;
mod table;
mod workload;
mod workloads;

use std::path::Path;

use superstep::Durability;
use superstep::checkpoint::{AnyCheckpointer, MemorySaver};
use superstep::testing::virtual_time;
use superstep_sqlite::{SqliteSaver, Synchronous};

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// What the table had when it was last counted; it only grows. Storing meanwhile, how much is
/// stored atomically depends on how fast storage is.
const CRASHES_MIN: usize = 5500;

/// How many pairs of moments are drawn for each workload in each mode, and how many processes must have been ended in pairs.
const PAIRS: usize = 4;
const PAIRS_MIN: usize = 750;

/// Set this to draw others.
const SEED: u64 = 15;

#[test]
fn in_memory() {
    let workloads = workloads::all();
    let checkpointer = AnyCheckpointer::new(MemorySaver::new());
    let found = virtual_time(table::run(&workloads, &MODES, &checkpointer, 1));
    found.report("in memory", workloads.len(), CRASHES_MIN);
}

/// A process ends while it recovers from the end of another one.
#[test]
fn in_pairs() {
    let workloads = workloads::all();
    let checkpointer = AnyCheckpointer::new(MemorySaver::new());
    let found = virtual_time(table::run_pairs(&workloads, &MODES, &checkpointer, PAIRS, SEED));
    found.report("in memory, in pairs", workloads.len(), 2 * PAIRS_MIN);
    assert!(found.pairs >= PAIRS_MIN, "{} pairs", found.pairs);
}

#[test]
fn in_a_file_of_sqlite() {
    let workloads = workloads::all();
    let found = virtual_time(async {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crash_at_every_operation.db");
        // What an earlier test left would be threads that have begun.
        for file in ["", "-wal", "-shm"].map(|end| format!("{}{end}", file.display())) {
            let _ = std::fs::remove_file(file);
        }
        // It is processes that end here, and not machines; so nothing need reach the disk.
        let options = SqliteSaver::options().synchronous(Synchronous::Normal);
        let checkpointer = options.open(&file).await.expect("a file");
        table::run(&workloads, &MODES, &AnyCheckpointer::new(checkpointer), 1).await
    });
    found.report("in a file of SQLite", workloads.len(), CRASHES_MIN);
}
