//! The tables of crashes and faults of `superstep`, on PostgreSQL: a process ends before or after something it stores, and
//! another one takes the thread up from what is in the database; or storage fails, and the thread goes on when it is well.

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
use superstep_checkpoint::{
    AnyCheckpointer, CheckpointId, Checkpointer, Error, Put, Query, Stored, TaskWrites,
};
use tokio::runtime::Handle;

/// Runs a saver where time is real: a network does not know of the clock of a test.
struct Elsewhere {
    inner: AnyCheckpointer,
    runtime: Handle,
}

impl Elsewhere {
    async fn ask<T, F>(&self, ask: impl FnOnce(AnyCheckpointer) -> F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.runtime.spawn(ask(self.inner.clone())).await.expect("a saver does not panic")
    }
}

impl Checkpointer for Elsewhere {
    async fn put(&self, put: Put) -> Result<(), Error> {
        self.ask(|inner| async move { inner.put(put).await }).await
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        self.ask(|inner| async move { inner.put_all(puts).await }).await
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let (thread, ns) = (thread.to_owned(), ns.to_owned());
        let put = |inner: AnyCheckpointer| async move {
            inner.put_writes(&thread, &ns, checkpoint, writes).await
        };
        self.ask(put).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        let (thread, ns) = (thread.to_owned(), ns.to_owned());
        self.ask(|inner| async move { inner.get(&thread, &ns, id).await }).await
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        self.ask(|inner| async move { inner.list(query).await }).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        let thread = thread.to_owned();
        self.ask(|inner| async move { inner.delete_thread(&thread).await }).await
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
    let [saver, for_faults] = databases.each_ref().map(|database| {
        let inner = AnyCheckpointer::new(runtime.block_on(database.unsynced_saver()));
        AnyCheckpointer::new(Elsewhere { inner, runtime: runtime.handle().clone() })
    });
    // The server takes most of the time, and can do two things at once.
    let mut one = workloads::all();
    let count = one.len();
    let all = workloads::all();
    let other = one.split_off(one.len() / 2);
    let run = |workloads: Vec<Box<dyn workload::Play>>, saver: AnyCheckpointer| {
        virtual_time(async move { table::run(&workloads, &MODES, &saver, NTH).await })
    };
    let found = std::thread::scope(|scope| {
        let beside = scope.spawn(|| run(other, saver.clone()));
        let mut found = run(one, saver.clone());
        let beside = beside.join().expect("a table");
        found.crashes += beside.crashes;
        found.problems.extend(beside.problems);
        found
    });
    found.report("in PostgreSQL", count, 5500 / NTH);
    // A run that stores at its end stores several things of several graphs in one transaction.
    let found = virtual_time(table::run_pairs(&all, &[Durability::Exit], &saver, 1, 15));
    found.report("in PostgreSQL, in pairs", count, 100);
    let found = virtual_time(faults::run(&all, &MODES, &for_faults, NTH_FAULT, None));
    found.report("in PostgreSQL", count, 100);
}
