//! Shows that storage may fail at any moment: before or after something takes effect, or because
//! another writer was first, in every durability mode. The run ends with an error that names the
//! thread, and the thread continues to the same state, without running anything again whose
//! completion was stored.
//!
//! It could break wherever something is on its way to storage while something else fails, and wherever a run ends without
//! giving back what it has taken.

#[path = "../crash_at_every_operation/check.rs"]
mod check;
mod table;
#[path = "../crash_at_every_operation/workload.rs"]
mod workload;
#[path = "../crash_at_every_operation/workloads/mod.rs"]
mod workloads;

use std::path::Path;
use std::time::Duration;

use superstep::Durability;
use superstep::checkpoint::{AnyCheckpointer, MemorySaver};
use superstep::testing::virtual_time;
use superstep_sqlite::{SqliteSaver, Synchronous};

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

/// What the table had when it was last counted; it only grows.
const FAULTS_MIN: usize = 6000;

/// Every how many faults one is tried where each takes a while.
const NTH: usize = 3;

#[test]
fn in_memory() {
    let workloads = workloads::all();
    let checkpointer = AnyCheckpointer::new(MemorySaver::new());
    // Nothing here waits for anything but the clock, which is virtual: a week is over when nothing else happens.
    let limit = Some(Duration::from_secs(7 * 86_400));
    let found = virtual_time(table::run(&workloads, &MODES, &checkpointer, 1, limit));
    found.report("in memory", workloads.len(), FAULTS_MIN);
}

#[test]
fn in_a_file_of_sqlite() {
    let workloads = workloads::all();
    let found = virtual_time(async {
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fault_at_every_operation.db");
        // What an earlier test left would be threads that have begun.
        for file in ["", "-wal", "-shm"].map(|end| format!("{}{end}", file.display())) {
            let _ = std::fs::remove_file(file);
        }
        let options = SqliteSaver::options().synchronous(Synchronous::Normal);
        let checkpointer = options.open(&file).await.expect("a file");
        table::run(&workloads, &MODES, &AnyCheckpointer::new(checkpointer), NTH, None).await
    });
    found.report("in a file of SQLite", workloads.len(), FAULTS_MIN / NTH);
}
