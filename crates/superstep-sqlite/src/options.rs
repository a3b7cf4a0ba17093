use std::time::Duration;

/// When a commit counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// On the disk.
    #[default]
    Full,
    /// When the operating system has the data. It survives a crash of the process; a power failure
    /// may lose the last commits, but nothing else. Much faster on disks that are slow to sync.
    Normal,
}

/// The options for opening a file; see [`SqliteSaver::options`](crate::SqliteSaver::options).
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    pub(crate) synchronous: Synchronous,
    pub(crate) busy_timeout: Duration,
    pub(crate) readers: usize,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { synchronous: Synchronous::Full, busy_timeout: Duration::from_secs(10), readers: 2 }
    }
}

impl SqliteOptions {
    /// When a commit counts as durable. The default is when it is on the disk.
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// How long to wait for another process that writes. The default is ten seconds.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// The number of reading connections, at least one. The default is two.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }
}
