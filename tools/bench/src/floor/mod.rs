//! What the machine needs at least for what a workload does.
//!
//! A workload is run once on a database, and what it left there is read back. The floor writes the same rows again, one
//! transaction for each superstep, with nothing around them. In memory, it copies their bytes; without a checkpointer, it polls
//! one future that does nothing for each unit.

pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::hint::black_box;
use std::pin::Pin;
use std::time::Instant;

use crate::failure::Failure;
use crate::protocol::{Checkpointer, Measured, Request};
use crate::setting::{Places, Setting, nanos};
use crate::workloads;

/// What a database held before what is measured began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) checkpoints: i64,
    pub(crate) writes: i64,
}

/// What a workload has stored, and how many units of it that was.
#[derive(Debug)]
pub(crate) struct Recording {
    rows: Rows,
    units: u64,
}

#[derive(Debug)]
enum Rows {
    None,
    Sqlite(Vec<sqlite::Commit>),
    Postgres(Vec<postgres::Commit>),
}

impl Recording {
    /// Runs a workload once and reads what it has left.
    pub(crate) async fn of(places: &Places, request: &Request) -> Result<Self, Failure> {
        // What would be copied in memory is what goes to a file.
        let checkpointer = if request.checkpointer == Checkpointer::Memory {
            Checkpointer::Sqlite
        } else {
            request.checkpointer
        };
        let once = Request { rounds: 1, checkpointer, ..request.clone() };
        let mut setting = Setting::open(places, &once, true).await?;
        let units = workloads::run(&mut setting, &once).await?.units;
        let rows = match checkpointer {
            Checkpointer::Sqlite => Rows::Sqlite(sqlite::read(setting.file(), setting.mark())?),
            Checkpointer::Postgres => {
                Rows::Postgres(postgres::read(places.postgres()?, setting.mark()).await?)
            }
            Checkpointer::None | Checkpointer::Memory => Rows::None,
        };
        Ok(Self { rows, units })
    }

    /// Does the least that has the same effect, `rounds` times.
    pub(crate) async fn replay(
        &self,
        places: &Places,
        request: &Request,
    ) -> Result<Measured, Failure> {
        let mut measured = Measured { units: self.units, ..Measured::default() };
        for _ in 0..request.rounds {
            measured.nanos.push(match &self.rows {
                Rows::None => polls(self.units),
                Rows::Sqlite(commits) if request.checkpointer == Checkpointer::Memory => {
                    copies(commits)
                }
                Rows::Sqlite(commits) => {
                    sqlite::write(&places.dir.join("floor.db"), request.durability, commits)?
                }
                Rows::Postgres(commits) => postgres::write(places.postgres()?, commits).await?,
            });
        }
        measured.also = self.counts();
        Ok(measured)
    }

    fn counts(&self) -> Vec<(String, f64)> {
        let (commits, rows, bytes) = match &self.rows {
            Rows::None => return Vec::new(),
            Rows::Sqlite(commits) => sqlite::counts(commits),
            Rows::Postgres(commits) => postgres::counts(commits),
        };
        let named = [("commits", commits), ("rows", rows), ("bytes", bytes)];
        named.map(|(name, count)| (name.to_owned(), count as f64)).to_vec()
    }
}

/// Futures that do nothing, boxed and polled as nodes are.
fn polls(units: u64) -> u64 {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let began = Instant::now();
    for _ in 0..units {
        let mut future: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(std::future::ready(()));
        let _ = black_box(black_box(&mut future).as_mut().poll(&mut context));
    }
    nanos(began.elapsed())
}

/// The bytes of each superstep, copied.
fn copies(commits: &[sqlite::Commit]) -> u64 {
    let bytes: Vec<Vec<u8>> = commits.iter().map(sqlite::Commit::bytes).collect();
    let began = Instant::now();
    for commit in &bytes {
        black_box(black_box(commit).clone());
    }
    nanos(began.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Durability;
    use crate::setting::tests::scratch;

    fn request(workload: &str, checkpointer: Checkpointer, durability: Durability) -> Request {
        let workload = workload.to_owned();
        Request { workload, size: 6, checkpointer, durability, rounds: 1, floor: true }
    }

    fn commits(measured: &Measured) -> f64 {
        let found = measured.also.iter().find(|(name, _)| name == "commits");
        found.expect("a floor of a database says how many commits it has").1
    }

    /// A floor that writes less than we do would make us look worse than we are, one that writes more, better.
    #[tokio::test]
    async fn on_sqlite_writes_the_rows_that_the_workload_wrote() {
        let places = Places { dir: scratch("floor"), postgres: None };
        for workload in ["loop", "fan", "turn", "interrupt"] {
            let request = request(workload, Checkpointer::Sqlite, Durability::Sync);
            let recording = Recording::of(&places, &request).await.expect("a recording");
            let written = recording.replay(&places, &request).await.expect("a floor");
            let floor = sqlite::read(&places.dir.join("floor.db"), Mark::default()).expect("rows");
            let Rows::Sqlite(ours) = &recording.rows else {
                panic!("`{workload}` was recorded on SQLite");
            };
            assert_eq!(sqlite::counts(&floor), sqlite::counts(ours), "`{workload}`");
            assert!(commits(&written) >= 2.0, "`{workload}` stores its input and its supersteps");
        }
    }

    #[tokio::test]
    async fn one_transaction_is_one_superstep() {
        let places = Places { dir: scratch("transactions"), postgres: None };
        for (durability, expected) in [(Durability::Sync, 8.0), (Durability::Exit, 1.0)] {
            let request = request("loop", Checkpointer::Sqlite, durability);
            let recording = Recording::of(&places, &request).await.expect("a recording");
            let written = recording.replay(&places, &request).await.expect("a floor");
            let what = "the input, what it starts, and six supersteps";
            assert_eq!(commits(&written), expected, "{durability:?}: {what}");
        }
    }

    #[test]
    fn on_postgresql_writes_the_rows_that_the_workload_wrote() {
        let server = crate::server::Server::of(Some(&superstep_testdb::server_url()));
        let server = server.expect("a server");
        let places = Places { dir: scratch("server"), postgres: server.url("ours") };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let request = request("loop", Checkpointer::Postgres, Durability::Sync);
            let recording = Recording::of(&places, &request).await.expect("a recording");
            let written = recording.replay(&places, &request).await.expect("a floor");
            let url = places.postgres().expect("a database");
            let floor = postgres::read(url, Mark::default()).await.expect("rows");
            let Rows::Postgres(ours) = &recording.rows else {
                panic!("this was recorded on PostgreSQL");
            };
            assert_eq!(postgres::counts(&floor), postgres::counts(ours));
            assert_eq!(commits(&written), 8.0, "the input, what it starts, and six supersteps");
        });
    }
}
