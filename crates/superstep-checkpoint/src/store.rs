use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::{Error, Value};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// Where an item lives: labels from the outermost to the innermost, such as a kind of memory and a user.
pub type Namespace = Vec<String>;

/// What a store keeps under a key.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Where it lives.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// What is kept.
    pub value: Value,
    /// When it was first put.
    pub created_at: SystemTime,
    /// When it was last put.
    pub updated_at: SystemTime,
}

impl Item {
    /// Refuses what cannot be the namespace of an item; stores call it before they look for one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no label, a label is empty or contains a dot or NUL, or the first one is
    /// `langgraph`, which the other engine keeps for itself.
    pub fn check_namespace(namespace: &[String]) -> Result<(), Error> {
        match namespace.first() {
            None => Err(Error::invalid("a namespace needs at least one label")),
            Some(root) if root == "langgraph" => Err(Error::invalid(
                "a namespace cannot begin with `langgraph`; choose another label",
            )),
            Some(_) => check_labels(namespace),
        }
    }
}

fn check_labels(labels: &[String]) -> Result<(), Error> {
    for label in labels {
        if label.is_empty() {
            return Err(Error::invalid("a label of a namespace cannot be empty"));
        }
        if label.contains(['.', '\0']) {
            let message = format_args!("label {label:?} of a namespace contains a dot or NUL");
            return Err(Error::invalid(message));
        }
    }
    Ok(())
}

/// Which items to find.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// Only items of this namespace and those below it. Empty: of all.
    pub prefix: Namespace,
    /// Only items whose value is a map that has these values.
    pub filter: BTreeMap<String, Value>,
    /// At most this many; ten unless said otherwise.
    pub limit: usize,
    /// Leaves out so many of the first.
    pub offset: usize,
}

impl Default for Search {
    fn default() -> Self {
        Self { prefix: Namespace::new(), filter: BTreeMap::new(), limit: 10, offset: 0 }
    }
}

impl Search {
    /// Finds items at or below this namespace.
    pub fn below<L: Into<String>>(prefix: impl IntoIterator<Item = L>) -> Self {
        Self { prefix: prefix.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Only items whose value has this under `key`.
    pub fn filter(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.filter.insert(key.into(), value.into());
        self
    }

    /// At most this many.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Leaves out so many of the first.
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Whether an item is looked for, leaving limit and offset aside.
    pub fn matches(&self, item: &Item) -> bool {
        item.namespace.starts_with(&self.prefix)
            && self.filter.iter().all(|(key, wanted)| item.value.get(key) == Some(wanted))
    }
}

/// Keeps items across threads.
///
/// # What every implementation promises
///
/// 1. **Atomic.** A method that stores or forgets an item does so wholly or not at all, also when its future is
///    dropped.
/// 2. **Durable.** When such a method returns `Ok`, every later call sees it, from any handle.
/// 3. **Ordered.** [`search`](Self::search) gives items in the order in which they were last put, the one put longest
///    ago first; items of the same time by namespace and key. [`list_namespaces`](Self::list_namespaces) gives
///    namespaces in the order of their labels.
/// 4. **Checked.** A namespace that [`Item::check_namespace`] refuses is refused by `put`, `get` and `delete` alike. A
///    prefix may be empty or begin with any label, but its labels are not empty and contain no dot.
///
/// Implementors write `async fn`; everyone else passes stores around as [`AnyStore`].
pub trait Store: Send + Sync + 'static {
    /// Keeps a value under a key; what was there before is replaced, but the time it was first put is kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the namespace is refused.
    fn put(
        &self,
        namespace: &[String],
        key: &str,
        value: Value,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The item under a key; nothing if it is not there.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the namespace is refused.
    fn get(
        &self,
        namespace: &[String],
        key: &str,
    ) -> impl Future<Output = Result<Option<Item>, Error>> + Send;

    /// Forgets the item under a key. An unknown key is no error.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the namespace is refused.
    fn delete(
        &self,
        namespace: &[String],
        key: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// The items that match.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the prefix is refused.
    fn search(&self, search: Search) -> impl Future<Output = Result<Vec<Item>, Error>> + Send;

    /// The namespaces at or below `prefix` that hold items, cut to `max_depth` labels, each once.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the prefix is refused.
    fn list_namespaces(
        &self,
        prefix: &[String],
        max_depth: Option<usize>,
    ) -> impl Future<Output = Result<Vec<Namespace>, Error>> + Send;
}

/// Keeps items in memory. Clones share what they keep.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Kept>>);

#[derive(Default)]
struct Kept {
    items: BTreeMap<Namespace, BTreeMap<String, Item>>,
    /// The time of the last put.
    last: Option<SystemTime>,
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
    ) -> impl Iterator<Item = (&'a Namespace, &'a BTreeMap<String, Item>)> {
        self.items.range(prefix.to_vec()..).take_while(move |(ns, _)| ns.starts_with(prefix))
    }
}

impl MemoryStore {
    /// A store that keeps nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let namespaces = self.lock().items.len();
        f.debug_struct("MemoryStore").field("namespaces", &namespaces).finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    async fn put(&self, namespace: &[String], key: &str, value: Value) -> Result<(), Error> {
        Item::check_namespace(namespace)?;
        let mut kept = self.lock();
        let now = kept.now();
        let items = kept.items.entry(namespace.to_vec()).or_default();
        let created_at = items.get(key).map_or(now, |item| item.created_at);
        let (namespace, key) = (namespace.to_vec(), key.to_owned());
        let item = Item { namespace, key: key.clone(), value, created_at, updated_at: now };
        items.insert(key, item);
        Ok(())
    }

    async fn get(&self, namespace: &[String], key: &str) -> Result<Option<Item>, Error> {
        Item::check_namespace(namespace)?;
        Ok(self.lock().items.get(namespace).and_then(|items| items.get(key)).cloned())
    }

    async fn delete(&self, namespace: &[String], key: &str) -> Result<(), Error> {
        Item::check_namespace(namespace)?;
        let mut kept = self.lock();
        if let Some(items) = kept.items.get_mut(namespace) {
            items.remove(key);
            if items.is_empty() {
                kept.items.remove(namespace);
            }
        }
        Ok(())
    }

    async fn search(&self, search: Search) -> Result<Vec<Item>, Error> {
        check_labels(&search.prefix)?;
        let kept = self.lock();
        let items = kept.below(&search.prefix).flat_map(|(_, items)| items.values());
        let mut found: Vec<&Item> = items.filter(|item| search.matches(item)).collect();
        found.sort_by_key(|item| (item.updated_at, &item.namespace, &item.key));
        Ok(found.into_iter().skip(search.offset).take(search.limit).cloned().collect())
    }

    async fn list_namespaces(
        &self,
        prefix: &[String],
        max_depth: Option<usize>,
    ) -> Result<Vec<Namespace>, Error> {
        check_labels(prefix)?;
        let depth = max_depth.unwrap_or(usize::MAX);
        let kept = self.lock();
        let cut: BTreeSet<Namespace> =
            kept.below(prefix).map(|(ns, _)| ns.iter().take(depth).cloned().collect()).collect();
        Ok(cut.into_iter().collect())
    }
}

/// Any store, cheap to clone.
#[derive(Clone)]
pub struct AnyStore(Arc<dyn Erased>);

impl AnyStore {
    /// Wraps a store.
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }

    /// See [`Store::put`].
    pub async fn put(&self, namespace: &[String], key: &str, value: Value) -> Result<(), Error> {
        self.0.put(namespace, key, value).await
    }

    /// See [`Store::get`].
    pub async fn get(&self, namespace: &[String], key: &str) -> Result<Option<Item>, Error> {
        self.0.get(namespace, key).await
    }

    /// See [`Store::delete`].
    pub async fn delete(&self, namespace: &[String], key: &str) -> Result<(), Error> {
        self.0.delete(namespace, key).await
    }

    /// See [`Store::search`].
    pub async fn search(&self, search: Search) -> Result<Vec<Item>, Error> {
        self.0.search(search).await
    }

    /// See [`Store::list_namespaces`].
    pub async fn list_namespaces(
        &self,
        prefix: &[String],
        max_depth: Option<usize>,
    ) -> Result<Vec<Namespace>, Error> {
        self.0.list_namespaces(prefix, max_depth).await
    }
}

impl fmt::Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyStore")
    }
}

/// The object-safe twin of [`Store`].
trait Erased: Send + Sync {
    fn put<'a>(&'a self, ns: &'a [String], key: &'a str, value: Value) -> BoxFuture<'a, ()>;
    fn get<'a>(&'a self, ns: &'a [String], key: &'a str) -> BoxFuture<'a, Option<Item>>;
    fn delete<'a>(&'a self, ns: &'a [String], key: &'a str) -> BoxFuture<'a, ()>;
    fn search(&self, search: Search) -> BoxFuture<'_, Vec<Item>>;
    fn list_namespaces<'a>(
        &'a self,
        prefix: &'a [String],
        max_depth: Option<usize>,
    ) -> BoxFuture<'a, Vec<Namespace>>;
}

impl<S: Store> Erased for S {
    fn put<'a>(&'a self, ns: &'a [String], key: &'a str, value: Value) -> BoxFuture<'a, ()> {
        Box::pin(Store::put(self, ns, key, value))
    }

    fn get<'a>(&'a self, ns: &'a [String], key: &'a str) -> BoxFuture<'a, Option<Item>> {
        Box::pin(Store::get(self, ns, key))
    }

    fn delete<'a>(&'a self, ns: &'a [String], key: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(Store::delete(self, ns, key))
    }

    fn search(&self, search: Search) -> BoxFuture<'_, Vec<Item>> {
        Box::pin(Store::search(self, search))
    }

    fn list_namespaces<'a>(
        &'a self,
        prefix: &'a [String],
        max_depth: Option<usize>,
    ) -> BoxFuture<'a, Vec<Namespace>> {
        Box::pin(Store::list_namespaces(self, prefix, max_depth))
    }
}

#[cfg(test)]
mod tests;
