use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use super::{
    Distance, Expiry, Item, Namespace, PutItem, Search, Store, StoreAnswer, StoreOp, VectorIndex,
    Vectors,
};
use crate::Error;

/// Stores items in memory. Clones share their storage.
#[derive(Clone, Default)]
#[doc(alias = "InMemoryStore")]
pub struct MemoryStore {
    kept: Arc<Mutex<Kept>>,
    expiry: Expiry,
    index: Option<VectorIndex>,
}

#[derive(Default)]
struct Kept {
    items: BTreeMap<Namespace, BTreeMap<String, StoredItem>>,
    /// The time of the last put.
    last: Option<SystemTime>,
}

struct StoredItem {
    item: Item,
    vectors: Vectors,
    /// Its time to live, and when it expires.
    life: Option<(Duration, Instant)>,
}

impl StoredItem {
    fn lives(&self, now: Instant) -> bool {
        self.life.is_none_or(|(_, until)| now < until)
    }

    fn refresh(&mut self, now: Instant) {
        if let Some((ttl, until)) = &mut self.life {
            *until = now + *ttl;
        }
    }
}

/// The query of a semantic search.
struct Near<'a> {
    query: &'a [f32],
    distance: Distance,
}

impl Vectors {
    /// The score of the nearest of these; `None` if there are none.
    fn nearest(&self, near: &Near<'_>) -> Option<f64> {
        let scores = self.0.iter().map(|(_, vector)| near.distance.score(near.query, vector));
        scores.max_by(f64::total_cmp)
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
    ) -> impl Iterator<Item = (&'a Namespace, &'a BTreeMap<String, StoredItem>)> {
        self.items.range(prefix.to_vec()..).take_while(move |(ns, _)| ns.starts_with(prefix))
    }

    fn entry(&mut self, namespace: &[String], key: &str) -> Option<&mut StoredItem> {
        self.items.get_mut(namespace)?.get_mut(key)
    }

    fn search(&mut self, search: &Search, near: Option<Near<'_>>, now: Instant) -> Vec<Item> {
        let entries = self.below(&search.prefix).flat_map(|(_, entries)| entries.values());
        let living = entries.filter(|entry| entry.lives(now) && search.matches(&entry.item));
        let scored = living.filter_map(|entry| match &near {
            None => Some((None, &entry.item)),
            Some(near) => entry.vectors.nearest(near).map(|score| (Some(score), &entry.item)),
        });
        let mut found: Vec<(Option<f64>, &Item)> = scored.collect();
        // The greatest score first, and as they were put where there is none.
        found.sort_by(|(a, x), (b, y)| {
            let score = |score: &Option<f64>| score.unwrap_or_default();
            let time = |item: &Item| item.updated_at;
            (score(b).total_cmp(&score(a)))
                .then_with(|| (time(x), &x.namespace, &x.key).cmp(&(time(y), &y.namespace, &y.key)))
        });
        let page = found.into_iter().skip(search.offset).take(search.limit);
        page.map(|(score, item)| Item { score, ..item.clone() }).collect()
    }

    fn refresh(&mut self, items: &[Item], now: Instant) {
        for item in items {
            if let Some(entry) = self.entry(&item.namespace, &item.key) {
                entry.refresh(now);
            }
        }
    }

    fn put(&mut self, put: PutItem, vectors: Vectors, ttl: Option<Duration>, at: Instant) {
        let now = self.now();
        let PutItem { namespace, key, value, .. } = put;
        let entries = self.items.entry(namespace.clone()).or_default();
        let before = entries.get(&key).filter(|entry| entry.lives(at));
        let created_at = before.map_or(now, |entry| entry.item.created_at);
        let item =
            Item { namespace, key: key.clone(), value, created_at, updated_at: now, score: None };
        entries.insert(key, StoredItem { item, vectors, life: ttl.map(|ttl| (ttl, at + ttl)) });
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
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time to live of items.
    #[must_use]
    pub fn with_expiry(mut self, expiry: Expiry) -> Self {
        self.expiry = expiry;
        self
    }

    /// Indexes items that are put from now on for semantic search.
    #[must_use]
    pub fn with_index(mut self, index: VectorIndex) -> Self {
        self.index = Some(index);
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
        let vectors = VectorIndex::prepare(self.index.as_ref(), &ops).await?;
        let distance = self.index.as_ref().map(VectorIndex::measure).unwrap_or_default();
        let mut kept = self.lock();
        let now = Instant::now();
        let refreshes = |asked: Option<bool>| asked.unwrap_or(self.expiry.refresh_on_read);
        let mut answers = Vec::with_capacity(ops.len());
        for (op, vectors) in ops.iter().zip(&vectors) {
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
                    let near = vectors.query().map(|query| Near { query, distance });
                    let found = kept.search(search, near, now);
                    if refreshes(search.refresh) {
                        kept.refresh(&found, now);
                    }
                    StoreAnswer::Items(found)
                }
                StoreOp::Namespaces(query) => {
                    let holds = |entries: &BTreeMap<String, StoredItem>| {
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
        for (op, vectors) in ops.into_iter().zip(vectors) {
            match op {
                StoreOp::Put(put) => {
                    let ttl = put.ttl.or(self.expiry.default_ttl);
                    kept.put(put, vectors, ttl, now);
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
