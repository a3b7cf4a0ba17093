//! Files to try things on.

#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use superstep_checkpoint::{
    Blob, Checkpoint, CheckpointId, Checkpointer, IdClock, Metadata, Put, SharedMap, Source,
    TaskId, TaskWrites, Version,
};
use superstep_sqlite::SqliteSaver;

/// A directory that goes away with this value.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("superstep-sqlite-{}-{nth}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("threads.db")
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Checkpoints of one thread, each on top of the last.
pub(crate) struct Line {
    clock: IdClock,
    pub(crate) thread: Arc<str>,
    pub(crate) head: Option<CheckpointId>,
    pub(crate) step: i64,
}

impl Line {
    pub(crate) fn new(thread: &str) -> Self {
        Self { clock: IdClock::new(), thread: thread.into(), head: None, step: -1 }
    }

    pub(crate) fn next(&mut self) -> Put {
        let id = self.clock.next(self.step, self.head);
        let number = Blob::encode(&self.step).expect("a blob");
        let version = Version::after((self.step + 1) as u64, id.as_uuid().as_u128() as u64);
        let source = if self.step < 0 { Source::Input } else { Source::Loop };
        let put = Put {
            thread: self.thread.clone(),
            ns: "".into(),
            parent: self.head,
            head: self.head,
            writes: Vec::new(),
            checkpoint: Checkpoint {
                v: Checkpoint::FORMAT,
                id,
                ts: "2026-01-02T03:04:05+00:00".into(),
                channel_values: std::iter::once(("n".into(), number)).collect(),
                channel_versions: std::iter::once(("n".into(), version)).collect(),
                versions_seen: SharedMap::new_sync(),
                updated_channels: None,
            },
            metadata: Metadata::new(source, self.step),
            changed: vec!["n".into()],
        };
        self.step += 1;
        put
    }

    pub(crate) async fn put(&mut self, checkpointer: &SqliteSaver) -> CheckpointId {
        let put = self.next();
        let id = put.checkpoint.id;
        checkpointer.put(put).await.expect("stored");
        self.head = Some(id);
        id
    }
}

pub(crate) fn writes(values: &[(&str, i64)]) -> Vec<TaskWrites> {
    let blob = |value: &i64| Blob::encode(value).expect("a blob");
    let writes = values.iter().map(|(name, value)| ((*name).into(), blob(value))).collect();
    vec![TaskWrites::new(TaskId::from_bytes([1; 16]), "p", writes)]
}

/// An error with its whole chain of causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
