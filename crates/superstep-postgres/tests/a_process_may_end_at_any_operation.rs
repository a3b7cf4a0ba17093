//! The tables of crashes and faults of `superstep`, on PostgreSQL: a process ends before or after
//! something it stores, and another one takes the thread up from what is in the database; or
//! storage fails, and the thread continues when it is well.

mod common;

#[path = "../../superstep/tests/crash_at_every_operation/check.rs"]
mod check;
#[path = "../../superstep/tests/fault_at_every_operation/table.rs"]
mod faults;
#[path = "../../superstep/tests/crash_at_every_operation/table.rs"]
mod table;
#[path = "../../superstep/tests/crash_at_every_operation/workload.rs"]
mod workload;
#[path = "../../superstep/tests/crash_at_every_operation/workloads/mod.rs"]
mod workloads;

use superstep::Durability;
use superstep::testing::virtual_time;
use superstep_checkpoint::{AnyCheckpointer, CheckpointerLayer, Error, Operation, StorageId};
use tokio::runtime::Handle;

/// Runs a checkpointer where time is real: a network does not know of the clock of a test.
struct Elsewhere {
    inner: AnyCheckpointer,
    runtime: Handle,
}

impl CheckpointerLayer for Elsewhere {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    async fn around<T: Send>(
        &self,
        _: Operation,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        let mut work = std::pin::pin!(work);
        std::future::poll_fn(|cx| {
            let _real = self.runtime.enter();
            work.as_mut().poll(cx)
        })
        .await
    }

    /// Each of them stands for another process.
    fn storage(&self) -> Option<StorageId> {
        None
    }

    fn in_order(&self) -> bool {
        false
    }
}

/// All points take minutes; set this to 1 to see them.
const NTH: usize = 5;

/// The same, for faults.
const NTH_FAULT: usize = 40;

const MODES: [Durability; 3] = [Durability::Sync, Durability::Async, Durability::Exit];

#[test]
fn in_postgresql() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().expect("a runtime");
    // Each table has a database of its own: they name their threads alike.
    let databases = [(); 2].map(|()| runtime.block_on(common::Database::new()));
    // It is processes that end here, and not machines; so nothing need reach the disk.
    let [checkpointer, for_faults] = databases.each_ref().map(|database| {
        let inner = AnyCheckpointer::new(runtime.block_on(database.unsynced_checkpointer()));
        AnyCheckpointer::new(Elsewhere { inner, runtime: runtime.handle().clone() })
    });
    // The server takes most of the time, and can do two things at once.
    let mut one = workloads::all();
    let count = one.len();
    let all = workloads::all();
    let other = one.split_off(one.len() / 2);
    let run = |workloads: Vec<Box<dyn workload::Play>>, checkpointer: AnyCheckpointer| {
        virtual_time(async move { table::run(&workloads, &MODES, &checkpointer, NTH).await })
    };
    let found = std::thread::scope(|scope| {
        let beside = scope.spawn(|| run(other, checkpointer.clone()));
        let mut found = run(one, checkpointer.clone());
        let beside = beside.join().expect("a table");
        found.crashes += beside.crashes;
        found.problems.extend(beside.problems);
        found
    });
    found.report("in PostgreSQL", count, 5500 / NTH);
    // A run that stores at its end stores several things of several graphs in one transaction.
    let found = virtual_time(table::run_pairs(&all, &[Durability::Exit], &checkpointer, 1, 15));
    found.report("in PostgreSQL, in pairs", count, 100);
    let found = virtual_time(faults::run(&all, &MODES, &for_faults, NTH_FAULT, None));
    found.report("in PostgreSQL", count, 100);
}
