use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{Expiry, Item, Namespace, PutItem, Search, Store, StoreAnswer, StoreOp};
use crate::Error;

/// Keeps items in memory. Clones share what they keep.
#[derive(Clone, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<Kept>>,
    expiry: Expiry,
}

#[derive(Default)]
struct Kept {
    items: BTreeMap<Namespace, BTreeMap<String, Entry>>,
    /// The time of the last put.
    last: Option<SystemTime>,
}

struct Entry {
    item: Item,
    /// How long it is kept after it was put or read, and until when.
    life: Option<(Duration, Instant)>,
}

impl Entry {
    fn lives(&self, now: Instant) -> bool {
        self.life.is_none_or(|(_, until)| now < until)
    }

    fn refresh(&mut self, now: Instant) {
        if let Some((ttl, until)) = &mut self.life {
            *until = now + *ttl;
        }
    }
}

impl Kept {
    /// The time, a little later than any given out before: it is what items are ordered by, and a clock may stand
    /// still or go back.
    fn now(&mut self) -> SystemTime {
        let now = SystemTime::now();
        let next = self.last.and_then(|last| last.checked_add(Duration::from_micros(1)));
        let now = next.map_or(now, |next| now.max(next));
        self.last = Some(now);
        now
    }

    /// The namespaces at or below a prefix. They stand together, since labels are compared from the first on.
    fn below<'a>(
        &'a self,
        prefix: &'a [String],
    ) -> impl Iterator<Item = (&'a Namespace, &'a BTreeMap<String, Entry>)> {
        self.items.range(prefix.to_vec()..).take_while(move |(ns, _)| ns.starts_with(prefix))
    }

    fn entry(&mut self, namespace: &[String], key: &str) -> Option<&mut Entry> {
        self.items.get_mut(namespace)?.get_mut(key)
    }

    fn search(&mut self, search: &Search, refresh: bool, now: Instant) -> Vec<Item> {
        let entries = self.below(&search.prefix).flat_map(|(_, entries)| entries.values());
        let items = entries.filter(|entry| entry.lives(now)).map(|entry| &entry.item);
        let mut found: Vec<&Item> = items.filter(|item| search.matches(item)).collect();
        found.sort_by_key(|item| (item.updated_at, &item.namespace, &item.key));
        let page = found.into_iter().skip(search.offset).take(search.limit);
        let page: Vec<Item> = page.cloned().collect();
        if refresh {
            for item in &page {
                if let Some(entry) = self.entry(&item.namespace, &item.key) {
                    entry.refresh(now);
                }
            }
        }
        page
    }

    fn put(&mut self, put: PutItem, ttl: Option<Duration>, at: Instant) {
        let now = self.now();
        let PutItem { namespace, key, value, .. } = put;
        let entries = self.items.entry(namespace.clone()).or_default();
        let before = entries.get(&key).filter(|entry| entry.lives(at));
        let created_at = before.map_or(now, |entry| entry.item.created_at);
        let item = Item { namespace, key: key.clone(), value, created_at, updated_at: now };
        entries.insert(key, Entry { item, life: ttl.map(|ttl| (ttl, at + ttl)) });
    }

    fn delete(&mut self, namespace: &[String], key: &str) {
        if let Some(entries) = self.items.get_mut(namespace) {
            entries.remove(key);
            if entries.is_empty() {
                self.items.remove(namespace);
            }
        }
    }
}

impl MemoryStore {
    /// A store that keeps nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same store, with another rule for how long items are kept.
    #[must_use]
    pub fn with_expiry(mut self, expiry: Expiry) -> Self {
        self.expiry = expiry;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces = self.lock().items.len();
        f.debug_struct("MemoryStore").field("namespaces", &namespaces).finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreAnswer>, Error> {
        ops.iter().try_for_each(StoreOp::check)?;
        let mut kept = self.lock();
        let now = Instant::now();
        let refreshes = |asked: Option<bool>| asked.unwrap_or(self.expiry.refresh_on_read);
        let mut answers = Vec::with_capacity(ops.len());
        for op in &ops {
            answers.push(match op {
                StoreOp::Get { namespace, key, refresh } => {
                    let entry = kept.entry(namespace, key).filter(|entry| entry.lives(now));
                    StoreAnswer::Item(entry.map(|entry| {
                        if refreshes(*refresh) {
                            entry.refresh(now);
                        }
                        entry.item.clone()
                    }))
                }
                StoreOp::Search(search) => {
                    StoreAnswer::Items(kept.search(search, refreshes(search.refresh), now))
                }
                StoreOp::Namespaces(query) => {
                    let holds = |entries: &BTreeMap<String, Entry>| {
                        entries.values().any(|entry| entry.lives(now))
                    };
                    let matching = kept
                        .items
                        .iter()
                        .filter(|(ns, entries)| query.matches(ns) && holds(entries));
                    StoreAnswer::Namespaces(query.select(matching.map(|(ns, _)| ns.clone())))
                }
                StoreOp::Put(_) | StoreOp::Delete { .. } => StoreAnswer::Done,
            });
        }
        for op in ops {
            match op {
                StoreOp::Put(put) => {
                    let ttl = put.ttl.or(self.expiry.default_ttl);
                    kept.put(put, ttl, now);
                }
                StoreOp::Delete { namespace, key } => kept.delete(&namespace, &key),
                StoreOp::Get { .. } | StoreOp::Search(_) | StoreOp::Namespaces(_) => {}
            }
        }
        Ok(answers)
    }

    async fn sweep(&self) -> Result<usize, Error> {
        let mut kept = self.lock();
        let now = Instant::now();
        let mut gone = 0;
        kept.items.retain(|_, entries| {
            let before = entries.len();
            entries.retain(|_, entry| entry.lives(now));
            gone += before - entries.len();
            !entries.is_empty()
        });
        Ok(gone)
    }
}
