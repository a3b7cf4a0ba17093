use std::time::Duration;

/// How far what was stored has got when a call returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// On the disk.
    #[default]
    Full,
    /// With the operating system. Survives the end of the process; the last commits may be lost, and nothing else, if the
    /// machine stops. Much faster where the disk is slow to confirm.
    Normal,
}

/// How to open a file; begun with [`SqliteSaver::options`](crate::SqliteSaver::options).
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
    /// How far what was stored has got when a call returns; on the disk unless told otherwise.
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// How long to wait for another process that is writing; ten seconds unless told otherwise.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// How many calls may read at the same time; two unless told otherwise, at least one.
    #[must_use]
    pub fn readers(mut self, readers: usize) -> Self {
        self.readers = readers.max(1);
        self
    }
}
