//! Measures what storing and reading cost: `cargo run --release -p superstep-sqlite --example measure [DIRECTORY]`.
//!
//! Without a directory a temporary one is used, which may be on another disk than your data.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use superstep_checkpoint::{
    Blob, Checkpoint, CheckpointId, Checkpointer, Error, IdClock, Metadata, Put, SharedMap, Source,
    TaskId, TaskWrites, ThreadQuery, Version,
};
use superstep_sqlite::{SqliteSaver, Synchronous};

/// A thread that gets one message of 200 characters at each step, stored as a delta.
struct Line {
    clock: IdClock,
    thread: Arc<str>,
    head: Option<CheckpointId>,
    step: i64,
}

impl Line {
    fn new(thread: &str) -> Self {
        Self { clock: IdClock::new(), thread: thread.into(), head: None, step: -1 }
    }

    fn next(&mut self) -> Result<Put, Error> {
        let id = self.clock.next(self.step, self.head);
        let version = Version::after((self.step + 1) as u64, id.as_uuid().as_u128() as u64);
        let names = ["__start__", "messages", "branch:to:agent", "branch:to:tools"];
        let message = Blob::encode(&["x".repeat(200)])?;
        let task = TaskId::from_bytes(*id.as_bytes());
        let mut metadata = Metadata::new(Source::Loop, self.step);
        metadata.delta_counters.insert("messages".into(), (1, self.step.unsigned_abs()));
        let writes = vec![("messages".into(), message), ("branch:to:agent".into(), Blob::null())];
        let put = Put {
            thread: self.thread.clone(),
            ns: "".into(),
            parent: self.head,
            head: self.head,
            writes: match self.head {
                Some(_) => vec![TaskWrites::new(task, "~__pregel_pull, agent", writes)],
                None => Vec::new(),
            },
            checkpoint: Checkpoint {
                v: Checkpoint::FORMAT,
                id,
                ts: "2026-01-02T03:04:05.123456+00:00".into(),
                channel_values: SharedMap::new_sync(),
                channel_versions: names.iter().map(|n| ((*n).into(), version.clone())).collect(),
                versions_seen: SharedMap::new_sync(),
                updated_channels: Some(vec!["messages".into()]),
            },
            metadata,
            changed: Vec::new(),
        };
        self.head = Some(id);
        self.step += 1;
        Ok(put)
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Error> {
    let temporary = std::env::temp_dir().join(format!("superstep-measure-{}", std::process::id()));
    let dir = std::env::args().nth(1).map_or_else(|| temporary.clone(), PathBuf::from);
    std::fs::create_dir_all(&dir).map_err(|error| Error::backend("making a directory", error))?;
    for mode in [Synchronous::Full, Synchronous::Normal] {
        println!("synchronous = {mode:?}");
        alone(&dir, mode).await?;
        together(&dir, mode).await?;
    }
    drop(std::fs::remove_dir_all(temporary));
    Ok(())
}

async fn open(dir: &Path, name: &str, mode: Synchronous) -> Result<(SqliteSaver, PathBuf), Error> {
    let file = dir.join(format!("{name}-{mode:?}.db"));
    for left in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(format!("{}{left}", file.display())));
    }
    Ok((SqliteSaver::options().synchronous(mode).open(&file).await?, file))
}

fn micros(time: Duration, count: u32) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(count)
}

async fn alone(dir: &Path, mode: Synchronous) -> Result<(), Error> {
    let (checkpointer, file) = open(dir, "alone", mode).await?;
    let mut line = Line::new("t");
    let mut times = Vec::new();
    for _ in 0..10 {
        let start = Instant::now();
        for _ in 0..100 {
            checkpointer.put(line.next()?).await?;
        }
        times.push(micros(start.elapsed(), 100));
    }
    println!("  one superstep: first 100 {:.0} us, last 100 {:.0} us", times[0], times[9]);
    let bytes = std::fs::metadata(&file).map(|data| data.len()).unwrap_or_default();
    println!("  file after 1,000 supersteps: {:.2} MB", bytes as f64 / 1e6);
    let start = Instant::now();
    for _ in 0..100 {
        checkpointer.get("t", "", None).await?;
    }
    println!("  head: {:.0} us", micros(start.elapsed(), 100));
    if let Some(head) = line.head {
        let start = Instant::now();
        let found = checkpointer.delta_history("t", "", head, &["messages".into()]).await?;
        let writes = found.values().map(|history| history.writes.len()).sum::<usize>();
        println!("  history of {writes} writes: {:.1} ms", micros(start.elapsed(), 1) / 1e3);
    }
    Ok(())
}

async fn together(dir: &Path, mode: Synchronous) -> Result<(), Error> {
    for threads in [1, 16, 128] {
        let (checkpointer, _) = open(dir, &format!("together-{threads}"), mode).await?;
        let start = Instant::now();
        let rounds = 2048 / threads;
        let tasks: Vec<_> = (0..threads)
            .map(|nth| {
                let checkpointer = checkpointer.clone();
                tokio::spawn(async move {
                    let mut line = Line::new(&format!("t{nth}"));
                    for _ in 0..rounds {
                        checkpointer.put(line.next()?).await?;
                    }
                    Ok::<(), Error>(())
                })
            })
            .collect();
        for task in tasks {
            task.await.map_err(|error| Error::backend("a task", error))??;
        }
        let rate = 2048.0 / start.elapsed().as_secs_f64();
        println!("  {threads} threads at once: {rate:.0} supersteps a second");
        let start = Instant::now();
        let page = checkpointer.threads(ThreadQuery::new(20)).await?;
        let shown = page.threads.len();
        println!("  a page of {shown} threads: {:.0} us", micros(start.elapsed(), 1));
    }
    Ok(())
}
