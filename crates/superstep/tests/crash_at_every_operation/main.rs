//! Shows that a process may end at any moment: before or after anything it stores, in every durability mode. Another
//! process takes the thread up, comes to the same state, and runs nothing again whose completion was stored.
//!
//! It could break wherever two things are stored one after the other that belong together, wherever something is told
//! before it is stored, and wherever what is stored is read back otherwise than it was meant.

mod table;
mod workload;
mod workloads;

use superstep::checkpoint::{AnyCheckpointer, MemorySaver};
use superstep::testing::virtual_time;

use crate::table::{Found, MODES};

/// What the table had when it was last counted; it only grows.
const WORKLOADS_MIN: usize = 104;
const CRASHES_MIN: usize = 4900;

fn report(savers: &str, workloads: usize, found: &Found) {
    println!("{savers}: {workloads} workloads, {} crashes", found.crashes);
    for problem in &found.problems {
        println!("- {problem}");
    }
    assert!(found.problems.is_empty(), "{} problems", found.problems.len());
    assert!(workloads >= WORKLOADS_MIN, "{workloads} workloads");
    assert!(found.crashes >= CRASHES_MIN, "{} crashes", found.crashes);
}

#[test]
fn in_memory() {
    let workloads = workloads::all();
    let saver = || async { AnyCheckpointer::new(MemorySaver::new()) };
    let found = virtual_time(table::run(&workloads, &MODES, saver));
    report("in memory", workloads.len(), &found);
}
