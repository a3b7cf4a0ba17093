use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::{Blob, Error};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// The key of a cached result: a namespace, and a hash of the input.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey {
    /// Which node of which graph.
    pub ns: Vec<String>,
    /// Stands for the input.
    pub key: String,
}

/// The writes of a task, in the order it made them.
pub type CachedWrites = Vec<(Arc<str>, Blob)>;

/// Caches results of nodes, so that a node need not run again for the same input.
///
/// # What every implementation promises
///
/// 1. An entry is available at most until it expires or is cleared; it may be evicted earlier.
/// 2. An entry comes back unchanged or not at all.
/// 3. An entry replaces an earlier entry with the same key.
///
/// Implementors write `async fn`; callers use [`AnyCache`].
#[doc(alias = "BaseCache")]
pub trait Cache: Send + Sync + 'static {
    /// The entry of a key; `None` if it has expired.
    fn get(
        &self,
        key: &CacheKey,
    ) -> impl Future<Output = Result<Option<CachedWrites>, Error>> + Send;

    /// Stores writes under a key, for this long or forever.
    fn put(
        &self,
        key: CacheKey,
        writes: CachedWrites,
        ttl: Option<Duration>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Removes the entries of exactly this namespace, or all.
    fn clear(&self, ns: Option<&[String]>) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Caches results in memory. Clones share their entries.
#[derive(Clone, Default)]
#[doc(alias = "InMemoryCache")]
pub struct MemoryCache(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    entries: HashMap<CacheKey, CacheEntry>,
    /// The number of entries at which expired ones are removed.
    sweep_at: usize,
}

struct CacheEntry {
    writes: CachedWrites,
    until: Option<Instant>,
}

impl CacheEntry {
    fn is_over(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

impl Kept {
    /// Entries that are never read again would stay forever. A scan of all entries each time their
    /// number has doubled costs little per entry.
    fn sweep(&mut self, now: Instant) {
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, entry| !entry.is_over(now));
            self.sweep_at = self.entries.len() * 2 + 64;
        }
    }
}

impl MemoryCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.lock().entries.len();
        f.debug_struct("MemoryCache").field("entries", &entries).finish_non_exhaustive()
    }
}

impl Cache for MemoryCache {
    async fn get(&self, key: &CacheKey) -> Result<Option<CachedWrites>, Error> {
        let now = Instant::now();
        let mut kept = self.lock();
        if kept.entries.get(key).is_some_and(|entry| entry.is_over(now)) {
            kept.entries.remove(key);
        }
        Ok(kept.entries.get(key).map(|entry| entry.writes.clone()))
    }

    async fn put(
        &self,
        key: CacheKey,
        writes: CachedWrites,
        ttl: Option<Duration>,
    ) -> Result<(), Error> {
        let now = Instant::now();
        // A time beyond the clock's range is no limit.
        let until = ttl.and_then(|ttl| now.checked_add(ttl));
        let mut kept = self.lock();
        kept.sweep(now);
        kept.entries.insert(key, CacheEntry { writes, until });
        Ok(())
    }

    async fn clear(&self, ns: Option<&[String]>) -> Result<(), Error> {
        self.lock().entries.retain(|key, _| ns.is_some_and(|ns| key.ns != ns));
        Ok(())
    }
}

/// Any cache, cheap to clone.
#[derive(Clone)]
pub struct AnyCache(Arc<dyn Erased>);

impl AnyCache {
    /// Wraps a cache.
    pub fn new(cache: impl Cache) -> Self {
        Self(Arc::new(cache))
    }

    /// See [`Cache::get`].
    pub async fn get(&self, key: &CacheKey) -> Result<Option<CachedWrites>, Error> {
        self.0.get(key).await
    }

    /// See [`Cache::put`].
    pub async fn put(
        &self,
        key: CacheKey,
        writes: CachedWrites,
        ttl: Option<Duration>,
    ) -> Result<(), Error> {
        self.0.put(key, writes, ttl).await
    }

    /// See [`Cache::clear`].
    pub async fn clear(&self, ns: Option<&[String]>) -> Result<(), Error> {
        self.0.clear(ns).await
    }
}

impl fmt::Debug for AnyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyCache")
    }
}

/// The object-safe twin of [`Cache`].
trait Erased: Send + Sync {
    fn get<'a>(&'a self, key: &'a CacheKey) -> BoxFuture<'a, Option<CachedWrites>>;
    fn put(&self, key: CacheKey, writes: CachedWrites, ttl: Option<Duration>) -> BoxFuture<'_, ()>;
    fn clear<'a>(&'a self, ns: Option<&'a [String]>) -> BoxFuture<'a, ()>;
}

impl<C: Cache> Erased for C {
    fn get<'a>(&'a self, key: &'a CacheKey) -> BoxFuture<'a, Option<CachedWrites>> {
        Box::pin(Cache::get(self, key))
    }

    fn put(&self, key: CacheKey, writes: CachedWrites, ttl: Option<Duration>) -> BoxFuture<'_, ()> {
        Box::pin(Cache::put(self, key, writes, ttl))
    }

    fn clear<'a>(&'a self, ns: Option<&'a [String]>) -> BoxFuture<'a, ()> {
        Box::pin(Cache::clear(self, ns))
    }
}

#[cfg(test)]
mod tests;
