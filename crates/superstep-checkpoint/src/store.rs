//! Memory across threads.

mod memory;
mod path;
mod query;
#[cfg(test)]
mod tests;
mod vector;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::{Error, Value};

pub use memory::MemoryStore;
pub use query::{Comparison, Condition, NamespaceQuery, Search};
pub use vector::{Distance, Indexing, VectorIndex, Vectors};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// The namespace of an item: labels from the outermost to the innermost, such as a kind of memory
/// and a user.
pub type Namespace = Vec<String>;

/// A stored item.
#[derive(Clone, Debug, PartialEq)]
#[doc(alias = "SearchItem")]
pub struct Item {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// What is kept.
    pub value: Value,
    /// When it was first put.
    pub created_at: SystemTime,
    /// When it was last put.
    pub updated_at: SystemTime,
    /// The similarity to the query, greater for nearer items. `None` without a query.
    pub score: Option<f64>,
}

impl Item {
    /// Checks that a namespace is valid; stores call it first.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no label, a label is empty or contains a dot or NUL, or the
    /// first one is `langgraph`, which LangGraph keeps for itself.
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

/// An item to be kept.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PutItem {
    /// The namespace.
    pub namespace: Namespace,
    /// Its name there.
    pub key: String,
    /// What is kept.
    pub value: Value,
    /// The time to live after the item was put or, if the store is configured so, read. `None`: the
    /// store's default.
    pub ttl: Option<Duration>,
    /// Which of its texts are indexed.
    pub index: Indexing,
}

impl PutItem {
    /// An item with the store's default time to live.
    pub fn new(namespace: &[String], key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self {
            namespace: namespace.to_vec(),
            key: key.into(),
            value: value.into(),
            ttl: None,
            index: Indexing::Default,
        }
    }

    /// Sets which of its texts are indexed.
    #[must_use]
    pub fn index(mut self, index: Indexing) -> Self {
        self.index = index;
        self
    }

    /// Kept for this long.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }
}

/// The default time to live of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "TTLConfig")]
pub struct Expiry {
    /// The default time to live. `None`: until they are deleted.
    pub default_ttl: Option<Duration>,
    /// Whether reading an item restarts its time to live, by default.
    pub refresh_on_read: bool,
}

impl Default for Expiry {
    fn default() -> Self {
        Self { default_ttl: None, refresh_on_read: true }
    }
}

/// One operation of a [batch](Store::batch).
#[derive(Clone, Debug, PartialEq)]
pub enum StoreOp {
    /// The item under a key.
    Get {
        /// Its namespace.
        namespace: Namespace,
        /// Its name there.
        key: String,
        /// Whether to restart its time to live. `None`: the store's default.
        refresh: Option<bool>,
    },
    /// Stores an item. It replaces an earlier one but keeps its creation time.
    Put(PutItem),
    /// Deletes the item of a key. An unknown key is not an error.
    Delete {
        /// Its namespace.
        namespace: Namespace,
        /// Its name there.
        key: String,
    },
    /// The items that match.
    Search(Search),
    /// The namespaces that match.
    Namespaces(NamespaceQuery),
}

impl StoreOp {
    /// Checks that the operation is valid; stores call it for all operations of a batch before they
    /// execute any.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a namespace, prefix or suffix is refused.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::Get { namespace, .. } | Self::Delete { namespace, .. } => {
                Item::check_namespace(namespace)
            }
            Self::Put(put) => Item::check_namespace(&put.namespace),
            Self::Search(search) => search.check(),
            Self::Namespaces(query) => query.check(),
        }
    }
}

/// The reply to a [`StoreOp`].
#[derive(Clone, Debug, PartialEq)]
pub enum StoreAnswer {
    /// To [`StoreOp::Get`].
    Item(Option<Item>),
    /// To [`StoreOp::Put`] and [`StoreOp::Delete`].
    Done,
    /// To [`StoreOp::Search`].
    Items(Vec<Item>),
    /// To [`StoreOp::Namespaces`].
    Namespaces(Vec<Namespace>),
}

/// Stores items across threads: long-term memory.
///
/// # What every implementation promises
///
/// 1. **Atomic.** The changes of a call take effect together or not at all, also when its future is
///    dropped.
/// 2. **Durable.** When such a call returns `Ok`, every later call sees it, from any handle.
/// 3. **Ordered.** [`search`](Self::search) returns items in the order in which they were last put,
///    the oldest first; items of the same time by namespace and key. With a [query](Search::query)
///    the nearest comes first. Namespaces are listed in the order of their labels.
/// 4. **Checked.** A namespace that [`Item::check_namespace`] refuses is refused by `put`, `get` and `delete` alike. A
///    prefix may be empty or begin with any label, but its labels are not empty and contain no dot.
/// 5. **Expiry.** An expired item is never returned, whether it was [swept](Self::sweep) or not.
///
/// Implementors write `async fn`, and need only [`batch`](Self::batch) and [`sweep`](Self::sweep);
/// callers use [`AnyStore`].
#[doc(alias = "BaseStore")]
pub trait Store: Send + Sync + 'static {
    /// Executes several operations at once, and returns their results in order.
    ///
    /// Reads see the state before the batch. Of several operations that put or delete one item the
    /// last counts.
    ///
    /// # Errors
    /// [`Error::Invalid`] if one of them is invalid; then none was executed.
    fn batch(
        &self,
        ops: Vec<StoreOp>,
    ) -> impl Future<Output = Result<Vec<StoreAnswer>, Error>> + Send;

    /// Removes expired items and returns their number.
    ///
    /// Expired items are never returned; this frees their space. Call it regularly.
    fn sweep(&self) -> impl Future<Output = Result<usize, Error>> + Send;

    /// Stores a value under a key. It replaces an earlier one but keeps its creation time.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the namespace is refused.
    fn put(
        &self,
        namespace: &[String],
        key: &str,
        value: Value,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        self.put_item(PutItem::new(namespace, key, value))
    }

    /// Stores an item; see [`put`](Self::put).
    ///
    /// # Errors
    /// As [`put`](Self::put).
    fn put_item(&self, item: PutItem) -> impl Future<Output = Result<(), Error>> + Send {
        async move { self.batch(vec![StoreOp::Put(item)]).await.map(drop) }
    }

    /// The item of a key; `None` if it does not exist.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the namespace is refused.
    fn get(
        &self,
        namespace: &[String],
        key: &str,
    ) -> impl Future<Output = Result<Option<Item>, Error>> + Send {
        let (namespace, key) = (namespace.to_vec(), key.to_owned());
        async move {
            match one(self.batch(vec![StoreOp::Get { namespace, key, refresh: None }]).await?) {
                Some(StoreAnswer::Item(item)) => Ok(item),
                other => Err(wrong_answer(other)),
            }
        }
    }

    /// Deletes the item of a key. An unknown key is not an error.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the namespace is refused.
    fn delete(
        &self,
        namespace: &[String],
        key: &str,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        let (namespace, key) = (namespace.to_vec(), key.to_owned());
        async move { self.batch(vec![StoreOp::Delete { namespace, key }]).await.map(drop) }
    }

    /// The items that match.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the prefix is refused.
    fn search(&self, search: Search) -> impl Future<Output = Result<Vec<Item>, Error>> + Send {
        async move {
            match one(self.batch(vec![StoreOp::Search(search)]).await?) {
                Some(StoreAnswer::Items(items)) => Ok(items),
                other => Err(wrong_answer(other)),
            }
        }
    }

    /// The namespaces that match and hold items.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the prefix or suffix is refused.
    fn namespaces(
        &self,
        query: NamespaceQuery,
    ) -> impl Future<Output = Result<Vec<Namespace>, Error>> + Send {
        async move {
            match one(self.batch(vec![StoreOp::Namespaces(query)]).await?) {
                Some(StoreAnswer::Namespaces(found)) => Ok(found),
                other => Err(wrong_answer(other)),
            }
        }
    }

    /// The namespaces at or below `prefix` that hold items, cut to `max_depth` labels, each once.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the prefix is refused.
    fn list_namespaces(
        &self,
        prefix: &[String],
        max_depth: Option<usize>,
    ) -> impl Future<Output = Result<Vec<Namespace>, Error>> + Send {
        self.namespaces(NamespaceQuery { max_depth, ..NamespaceQuery::below(prefix) })
    }
}

fn one(answers: Vec<StoreAnswer>) -> Option<StoreAnswer> {
    answers.into_iter().next()
}

fn wrong_answer(answer: Option<StoreAnswer>) -> Error {
    Error::codec(format_args!("the store answered {answer:?}, which is not what it was asked"))
}

/// Any store, cheap to clone.
#[derive(Clone)]
pub struct AnyStore(Arc<dyn Erased>);

impl AnyStore {
    /// Wraps a store.
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }

    /// See [`Store::batch`].
    pub async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreAnswer>, Error> {
        self.0.batch(ops).await
    }

    /// See [`Store::sweep`].
    pub async fn sweep(&self) -> Result<usize, Error> {
        self.0.sweep().await
    }

    /// See [`Store::put`].
    pub async fn put(&self, namespace: &[String], key: &str, value: Value) -> Result<(), Error> {
        Store::put(self, namespace, key, value).await
    }

    /// See [`Store::put_item`].
    pub async fn put_item(&self, item: PutItem) -> Result<(), Error> {
        Store::put_item(self, item).await
    }

    /// See [`Store::get`].
    pub async fn get(&self, namespace: &[String], key: &str) -> Result<Option<Item>, Error> {
        Store::get(self, namespace, key).await
    }

    /// See [`Store::delete`].
    pub async fn delete(&self, namespace: &[String], key: &str) -> Result<(), Error> {
        Store::delete(self, namespace, key).await
    }

    /// See [`Store::search`].
    pub async fn search(&self, search: Search) -> Result<Vec<Item>, Error> {
        Store::search(self, search).await
    }

    /// See [`Store::namespaces`].
    pub async fn namespaces(&self, query: NamespaceQuery) -> Result<Vec<Namespace>, Error> {
        Store::namespaces(self, query).await
    }

    /// See [`Store::list_namespaces`].
    pub async fn list_namespaces(
        &self,
        prefix: &[String],
        max_depth: Option<usize>,
    ) -> Result<Vec<Namespace>, Error> {
        Store::list_namespaces(self, prefix, max_depth).await
    }
}

impl Store for AnyStore {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreAnswer>, Error> {
        self.0.batch(ops).await
    }

    async fn sweep(&self) -> Result<usize, Error> {
        self.0.sweep().await
    }
}

impl fmt::Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyStore")
    }
}

/// The object-safe twin of [`Store`].
trait Erased: Send + Sync {
    fn batch(&self, ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreAnswer>>;
    fn sweep(&self) -> BoxFuture<'_, usize>;
}

impl<S: Store> Erased for S {
    fn batch(&self, ops: Vec<StoreOp>) -> BoxFuture<'_, Vec<StoreAnswer>> {
        Box::pin(Store::batch(self, ops))
    }

    fn sweep(&self) -> BoxFuture<'_, usize> {
        Box::pin(Store::sweep(self))
    }
}
