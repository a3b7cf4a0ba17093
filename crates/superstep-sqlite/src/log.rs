//! Checkpointing SQLite's WAL in the background.
//!
//! By default a commit copies a long WAL into the database itself, and waits twice for the disk.
//! Here another OS thread does that on its own connection while commits continue. Under a steady
//! load the WAL would never be reset, because only a completely copied WAL is. So when it is very
//! long, the writing thread copies the small rest.

use std::cell::Cell;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rusqlite::Connection;

/// The number of new pages after which the WAL is copied, SQLite's default.
const COPY_EVERY: i32 = 1000;
/// From how many pages on the thread that writes sees to it that the log starts over.
const PAGES_MAX: i32 = 8000;

thread_local! {
    /// The number of pages in the WAL after the last commit on this thread.
    static PAGES: Cell<i32> = const { Cell::new(0) };
}

/// The writing thread's view of the WAL.
pub(crate) struct Log {
    copier: SyncSender<()>,
    /// The number of pages when the copier was last asked.
    asked: i32,
}

impl Log {
    /// The WAL, and the channel to the copier.
    pub(crate) fn new() -> (Self, Receiver<()>) {
        let (copier, requests) = sync_channel(1);
        (Self { copier, asked: 0 }, requests)
    }

    /// Disables automatic checkpoints on this connection.
    pub(crate) fn watch(db: &Connection) {
        db.wal_hook(Some(|_, pages| {
            PAGES.set(pages);
            Ok(())
        }));
    }

    /// After a commit: requests a copy if the WAL is long.
    pub(crate) fn committed(&mut self, db: &Connection) {
        let pages = PAGES.get();
        if pages < self.asked {
            self.asked = 0;
        }
        if pages.saturating_sub(self.asked) < COPY_EVERY {
            return;
        }
        self.asked = pages;
        if pages > PAGES_MAX {
            copy(db);
        } else {
            // If it has been asked and has not begun yet, it copies all of it then.
            let _ = self.copier.try_send(());
        }
    }
}

/// Copies the WAL on request, until all senders are gone.
pub(crate) fn copy_on_request(db: &Connection, requests: &Receiver<()>) {
    while requests.recv().is_ok() {
        copy(db);
    }
}

/// Copies what no reader needs from the WAL, without waiting. On a full disk, or while another
/// process copies, it is left for the next time: data in the WAL is stored.
fn copy(db: &Connection) {
    let _ = db.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A database whose WAL only we checkpoint.
    struct Logged {
        db: Connection,
        file: PathBuf,
    }

    impl Logged {
        fn new(name: &str) -> Self {
            let name = format!("superstep-log-{}-{name}.db", std::process::id());
            let file = std::env::temp_dir().join(name);
            let db = Connection::open(&file).expect("a file");
            let set_up = "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE t (b)";
            db.execute_batch(set_up).expect("a table");
            Log::watch(&db);
            Self { db, file }
        }

        /// Commits a few hundred pages.
        fn commit(&self) {
            self.db.execute("INSERT INTO t VALUES (zeroblob(1000000))", ()).expect("a commit");
        }

        /// The number of bytes in the file, without the WAL.
        fn copied(&self) -> u64 {
            self.file.metadata().expect("a file").len()
        }
    }

    impl Drop for Logged {
        fn drop(&mut self) {
            for suffix in ["", "-wal", "-shm"] {
                let mut name = self.file.clone().into_os_string();
                name.push(suffix);
                drop(std::fs::remove_file(name));
            }
        }
    }

    #[test]
    fn a_commit_does_not_copy_the_log() {
        let logged = Logged::new("beside");
        let (mut log, requests) = Log::new();
        let before = logged.copied();
        while requests.try_recv().is_err() {
            logged.commit();
            log.committed(&logged.db);
            assert!(PAGES.get() < 2 * COPY_EVERY, "the copier is asked when it is time");
        }
        assert_eq!(logged.copied(), before);
        let copier = Connection::open(&logged.file).expect("the file");
        let (ask, asked) = sync_channel(1);
        ask.send(()).expect("a copier");
        drop(ask);
        copy_on_request(&copier, &asked);
        assert!(logged.copied() > 4_000_000, "{}", logged.copied());
    }

    /// A copier that is always a little behind leaves something in the log, which then continues
    /// growing.
    #[test]
    fn a_log_that_has_become_very_long_begins_anew() {
        let logged = Logged::new("anew");
        let (mut log, _requests) = Log::new();
        let mut longest = 0;
        for _ in 0..60 {
            logged.commit();
            log.committed(&logged.db);
            longest = longest.max(PAGES.get());
        }
        assert!(longest > PAGES_MAX, "{longest}");
        assert!(longest < PAGES_MAX + 2 * COPY_EVERY, "{longest}");
        assert!(PAGES.get() < PAGES_MAX, "it has begun anew");
    }
}
