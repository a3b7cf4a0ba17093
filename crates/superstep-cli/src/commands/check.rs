//! `check`: reads a whole database and reports damage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep_checkpoint::{CheckpointId, Error, Inventory, Stored, StoredKey};

use crate::db::Db;
use crate::out::{Fail, Out, tame};

struct Problem {
    thread: Arc<str>,
    ns: Arc<str>,
    id: String,
    what: String,
}

impl Problem {
    fn new(key: &StoredKey, what: impl Into<String>) -> Self {
        let StoredKey { thread, ns, id, .. } = key.clone();
        Self { thread, ns, id, what: what.into() }
    }

    fn to_json(&self) -> Json {
        json!({ "thread": &*self.thread, "ns": &*self.ns, "checkpoint": self.id, "problem": self.what })
    }
}

/// Checks that everything stored can be read and is consistent.
pub(super) async fn check(db: &Db, out: Out) -> Result<bool, Fail> {
    let all = db.checkpointer.inventory().await?;
    let mut problems = dangling(&all);
    for key in &all.checkpoints {
        match read(db, key).await {
            Ok(found) => problems.extend(found.into_iter().map(|what| Problem::new(key, what))),
            Err(Error::Codec(what)) => problems.push(Problem::new(key, what)),
            Err(other) => return Err(other.into()),
        }
    }
    let threads: BTreeSet<&str> = all.checkpoints.iter().map(|key| &*key.thread).collect();
    let json = json!({
        "threads": threads.len(),
        "checkpoints": all.checkpoints.len(),
        "problems": problems.iter().map(Problem::to_json).collect::<Vec<_>>(),
    });
    out.either(&json, || {
        let mut text = String::new();
        for Problem { thread, ns, id, what } in &problems {
            let place =
                if ns.is_empty() { String::new() } else { format!(" (namespace `{}`)", tame(ns)) };
            text.push_str(&format!(
                "{} thread `{}`{place}, checkpoint {}: {}\n",
                out.bad("damage"),
                tame(thread),
                tame(id),
                tame(what)
            ));
        }
        let summary = format!(
            "{} threads, {} checkpoints, {} problems",
            threads.len(),
            all.checkpoints.len(),
            problems.len()
        );
        text + &if problems.is_empty() { out.good(summary) } else { out.bold(summary) }
    })?;
    Ok(problems.is_empty())
}

/// Names that lead nowhere.
fn dangling(all: &Inventory) -> Vec<Problem> {
    let mut known: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for key in &all.checkpoints {
        known.entry((&key.thread, &key.ns)).or_default().insert(&key.id);
    }
    let mut problems = Vec::new();
    for key in &all.checkpoints {
        let here = &known[&(&*key.thread, &*key.ns)];
        if let Some(parent) = key.parent.as_deref().filter(|parent| !here.contains(parent)) {
            problems.push(Problem::new(key, format!("it continues {parent}, which is not stored")));
        }
    }
    let stray = "writes are stored for it, but the checkpoint itself is missing";
    problems.extend(all.stray_writes.iter().map(|key| Problem::new(key, stray)));
    problems
}

/// The damage of one checkpoint. An unreadable checkpoint is an error.
async fn read(db: &Db, key: &StoredKey) -> Result<Vec<String>, Error> {
    let id: CheckpointId = key.id.parse()?;
    let Some(stored) = db.checkpointer.get(&key.thread, &key.ns, Some(id)).await? else {
        return Ok(vec!["its id is malformed, so it cannot be found".to_owned()]);
    };
    let mut problems = Vec::new();
    for (channel, blob) in &stored.checkpoint.channel_values {
        if let Err(error) = blob.to_value() {
            problems.push(format!("channel `{channel}` cannot be read: {error}"));
        }
    }
    for write in &stored.writes {
        if let Err(error) = write.value.to_value() {
            problems.push(format!(
                "the write of task {} to `{}` cannot be read: {error}",
                write.task, write.channel
            ));
        }
    }
    if problems.is_empty()
        && let Err(error) = stored.open_questions()
    {
        problems.push(format!("its questions cannot be read: {error}"));
    }
    problems.extend(rebuild(db, &stored).await?);
    Ok(problems)
}

/// Whether delta channels can be rebuilt.
async fn rebuild(db: &Db, stored: &Stored) -> Result<Option<String>, Error> {
    let deltas = stored.metadata.delta_counters.keys();
    let deltas: Vec<Arc<str>> =
        deltas.filter(|name| stored.checkpoint.value(name).is_none()).cloned().collect();
    if deltas.is_empty() {
        return Ok(None);
    }
    let (thread, ns) = (&stored.thread, &stored.ns);
    // A walk through the whole past of each checkpoint would take the square of its length: only heads are rebuilt.
    let head = db.checkpointer.get(thread, ns, None).await?;
    if head.is_none_or(|head| head.checkpoint.id != stored.checkpoint.id) {
        return Ok(None);
    }
    match db.checkpointer.delta_history(thread, ns, stored.checkpoint.id, &deltas).await {
        Ok(_) => Ok(None),
        Err(Error::Codec(what)) => Ok(Some(what)),
        Err(other) => Err(other),
    }
}
