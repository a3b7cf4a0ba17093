//! Results of nodes that are kept by key, and messages that nodes write.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use superstep_checkpoint::{AnyCache, CacheKey, CachedWrites, Error, TaskWrites, Value};

use crate::engine::drive::driver::Driver;
use crate::engine::kernel::head::Write;
use crate::engine::step::entry::Entry;
use crate::engine::step::futures::Futures;
use crate::engine::stored::slots;
use crate::engine::task::handle::Task;
use crate::engine::watch::emit::{self, Unshown};
use crate::engine::watch::event::{Data, MessageEvent, Mode};
use crate::error::{NodeError, RunError, panic_text};

impl Driver {
    /// The cache and the key for a task, if its result is to be cached.
    fn cache_key(&self, entry: &Entry) -> Result<Option<(AnyCache, CacheKey)>, RunError> {
        let policy = self.setting.layout.nodes[entry.node].options.cache.as_ref();
        let (Some(policy), Some(cache)) = (policy, self.setting.cache()) else { return Ok(None) };
        let input = self.input_of(entry)?;
        let key = catch_unwind(AssertUnwindSafe(|| emit::cache_key(&input, policy)));
        let key = key.map_err(|panic| {
            let text = format!("in the key of its cache: {}", panic_text(&*panic));
            let node = entry.task.inner.name.clone();
            let error = NodeError::panicked(&node, &text);
            RunError::Node { node, task: entry.task.id(), arg: entry.brief_arg(), error }
        })?;
        let key = key.map_err(|error| {
            let node = entry.task.inner.name.clone();
            let text = format!("the input cannot be the key of the cached result: {error}");
            let error = NodeError::permanent(text);
            RunError::Node { node, task: entry.task.id(), arg: entry.brief_arg(), error }
        })?;
        let ns = cache_ns(&self.setting.layout.name, &entry.task.inner.name);
        Ok(Some((cache.clone(), CacheKey { ns, key })))
    }

    /// Gives tasks whose result is cached that result.
    pub(in crate::engine) async fn use_cache(
        &mut self,
        entries: &mut [Entry],
    ) -> Result<(), RunError> {
        let mut found = Vec::new();
        for (at, entry) in entries.iter().enumerate().filter(|(_, e)| e.writes.is_none()) {
            let Some((cache, key)) = self.cache_key(entry)? else { continue };
            let strict = self.is_strict(entry);
            let Some(cached) = look_up(&cache, &key, strict).await? else { continue };
            match slots::decode_writes(&self.setting.layout, &cached) {
                Ok(writes) => found.push((at, writes)),
                Err(error) => missed(error, &key, strict)?,
            }
        }
        for (at, writes) in found {
            let entry = &mut entries[at];
            self.setting.emitter.update(&entry.task, entry.arg(), &writes, true)?;
            if self.setting.checkpointer.is_some() {
                let stored = slots::encode_output(&self.setting.layout, &writes, None)?;
                self.outbox.add(TaskWrites::new(entry.task.id(), entry.task.path(), stored));
            }
            entry.writes = Some(writes);
        }
        Ok(())
    }

    pub(in crate::engine) fn keep_in_cache(
        &self,
        entry: &Entry,
        writes: &[Write],
        futures: &mut Futures,
    ) -> Result<(), RunError> {
        let Some((cache, key)) = self.cache_key(entry)? else { return Ok(()) };
        let ttl = self.setting.layout.nodes[entry.node].options.cache.as_ref().and_then(|p| p.ttl);
        let stored =
            writes.iter().filter_map(|w| slots::encode_cached(&self.setting.layout, w).transpose());
        let stored = stored.collect::<Result<Vec<_>, _>>()?;
        let strict = self.is_strict(entry);
        futures.saves.push(Box::pin(async move { keep(&cache, key, stored, ttl, strict).await }));
        Ok(())
    }

    fn is_strict(&self, entry: &Entry) -> bool {
        let policy = &self.setting.layout.nodes[entry.node].options.cache;
        policy.as_ref().is_some_and(|policy| policy.strict)
    }

    /// Shows whole messages that a node wrote and that neither it nor its input has shown before.
    pub(in crate::engine) fn emit_messages(
        &self,
        task: &Task,
        writes: &[Write],
    ) -> Result<(), RunError> {
        let Some(sink) = self.setting.run.sink_for(Mode::Messages, &self.setting.ns) else {
            return Ok(());
        };
        let layout = &self.setting.layout;
        for write in writes {
            let Write::State(at, value) = write else { continue };
            let unshown =
                |error: Error| Unshown::channel(layout, *at, &error).in_output_of(&task.inner.name);
            let written = messages_in(value.to_value().map_err(unshown)?);
            if written.is_empty() {
                continue;
            }
            let known = messages_in(self.head.row.value(*at)?);
            for message in written {
                let id = message.get("id").and_then(Value::as_str);
                let old = id.is_some()
                    && known.iter().any(|old| old.get("id").and_then(Value::as_str) == id);
                if old || !id.is_none_or(|id| sink.show_message(id)) {
                    continue;
                }
                let metadata = task.message_metadata();
                sink.push(
                    &self.setting.ns,
                    Data::Messages(MessageEvent { chunk: message, metadata }),
                );
            }
        }
        Ok(())
    }
}

/// What is cached under a key. A cache that fails has nothing, unless its policy is strict.
pub(crate) async fn look_up(
    cache: &AnyCache,
    key: &CacheKey,
    strict: bool,
) -> Result<Option<CachedWrites>, RunError> {
    match cache.get(key).await {
        Ok(found) => Ok(found),
        Err(error) => missed(error, key, strict).map(|()| None),
    }
}

/// Keeps a result under a key. A cache that fails does not keep it, unless its policy is strict.
pub(crate) async fn keep(
    cache: &AnyCache,
    key: CacheKey,
    writes: CachedWrites,
    ttl: Option<Duration>,
    strict: bool,
) -> Result<(), RunError> {
    match cache.put(key.clone(), writes, ttl).await {
        Ok(()) => Ok(()),
        Err(error) => missed(error, &key, strict),
    }
}

/// A cache saves work and is not needed for it, so its failure is a warning unless somebody wants it to be an error.
pub(crate) fn missed(error: Error, key: &CacheKey, strict: bool) -> Result<(), RunError> {
    if strict {
        return Err(RunError::Cache(Arc::new(error)));
    }
    let error: &(dyn std::error::Error + 'static) = &error;
    tracing::warn!(error, ns = key.ns.join("/"), "the cache failed; continuing without it");
    Ok(())
}

/// The messages in a value: itself, or the items of a list.
fn messages_in(value: Value) -> Vec<Value> {
    let is_message = |value: &Value| value.get("content").is_some() && value.get("type").is_some();
    match value {
        Value::List(items) => items.into_iter().filter(is_message).collect(),
        one if is_message(&one) => vec![one],
        _ => Vec::new(),
    }
}

/// Where results of a node are cached.
pub(crate) fn cache_ns(graph: &str, node: &str) -> Vec<String> {
    vec!["__pregel_ns_writes".to_owned(), graph.to_owned(), node.to_owned()]
}
