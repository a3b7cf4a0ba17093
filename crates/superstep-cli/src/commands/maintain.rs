//! Commands that change what is stored: `prune`, `copy`, `fork`, `delete`. Without `--yes` each prints what it would do.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::json;
use superstep_checkpoint::wire::{self, Row};
use superstep_checkpoint::{
    Checkpoint, CheckpointId, IdClock, Keep, Metadata, Prune, Put, Query, Source,
};

use super::thread::{checkpoints, resolve};
use crate::args::PruneArgs;
use crate::db::{Db, unknown_thread};
use crate::out::{Fail, Out, tame};
use crate::time;

/// Counts the checkpoints of each of these threads, in all namespaces. Refuses unknown threads.
async fn sizes(db: &Db, threads: &[String]) -> Result<BTreeMap<String, usize>, Fail> {
    let all = db.checkpointer.inventory().await?;
    let mut sizes: BTreeMap<String, usize> = BTreeMap::new();
    for key in all.checkpoints {
        *sizes.entry(key.thread.to_string()).or_default() += 1;
    }
    if let Some(unknown) = threads.iter().find(|thread| !sizes.contains_key(*thread)) {
        return Err(unknown_thread(unknown));
    }
    if !threads.is_empty() {
        sizes.retain(|thread, _| threads.contains(thread));
    }
    Ok(sizes)
}

/// Prints what was done, or would be done with `--yes`.
fn told(out: Out, yes: bool, mut json: serde_json::Value, text: String) -> Result<(), Fail> {
    json["done"] = yes.into();
    out.either(&json, || match yes {
        true => text,
        false => format!("{text}\n{}", out.ask("nothing was changed; add --yes to do it")),
    })
}

pub(super) async fn delete(db: &Db, threads: &[String], yes: bool, out: Out) -> Result<(), Fail> {
    let sizes = sizes(db, threads).await?;
    if yes {
        for thread in sizes.keys() {
            db.checkpointer.delete_thread(thread).await?;
        }
    }
    let word = if yes { "deleted" } else { "would delete" };
    let lines: Vec<_> = sizes
        .iter()
        .map(|(thread, size)| format!("{word} thread `{}` with {size} checkpoints", tame(thread)))
        .collect();
    told(out, yes, json!({ "delete": sizes }), lines.join("\n"))
}

pub(super) async fn copy(db: &Db, from: &str, to: &str, yes: bool, out: Out) -> Result<(), Fail> {
    let sizes = sizes(db, &[from.to_owned()]).await?;
    let size = sizes.values().sum::<usize>();
    if db.checkpointer.get(to, "", None).await?.is_some() {
        return Err(wire::target_exists(from, to).into());
    }
    if yes {
        db.checkpointer.copy_thread(from, to).await?;
    }
    let word = if yes { "copied" } else { "would copy" };
    let text = format!("{word} thread `{}` with {size} checkpoints to `{}`", tame(from), tame(to));
    told(out, yes, json!({ "from": from, "to": to, "checkpoints": size }), text)
}

/// Stores a copy of a checkpoint next to it, which is then the head of the thread.
pub(super) async fn fork(db: &Db, thread: &str, at: &str, yes: bool, out: Out) -> Result<(), Fail> {
    let all = checkpoints(db, thread, "").await?;
    let stored = resolve(&all, at)?;
    let head = all.first().map(|head| head.checkpoint.id);
    let (from, step) = (stored.checkpoint.id, stored.metadata.step + 1);
    let id = IdClock::new().next(step, head);
    if yes {
        let ts = time::iso(SystemTime::now());
        let put = Put {
            thread: stored.thread.clone(),
            ns: stored.ns.clone(),
            // Like the original: values that are rebuilt from writes are rebuilt from those beside its parent.
            parent: stored.parent,
            head,
            writes: Vec::new(),
            checkpoint: Checkpoint { id, ts, ..stored.checkpoint.clone() },
            metadata: Metadata { source: Source::Fork, step, ..stored.metadata.clone() },
            changed: stored.checkpoint.channel_values.keys().cloned().collect(),
        };
        db.checkpointer.put(put).await?;
    }
    let word = if yes { "began" } else { "would begin" };
    let text = format!("{word} a branch of thread `{}` at checkpoint {from}", tame(thread));
    let mut json = json!({ "thread": thread, "from": from.to_string() });
    if yes {
        json["head"] = id.to_string().into();
    }
    told(out, yes, json, text)
}

pub(super) async fn prune(db: &Db, args: &PruneArgs, out: Out) -> Result<(), Fail> {
    if args.threads.is_empty() && !args.all {
        return Err(Fail::usage("prune needs the threads, or --all"));
    }
    let keep = match (args.keep, args.older_than) {
        (Some(newest), None) => Keep::Newest(newest),
        (None, Some(age)) => {
            let now = SystemTime::now();
            Keep::Since(CheckpointId::at(now.checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH)))
        }
        _ => Keep::Latest,
    };
    let sizes = sizes(db, &args.threads).await?;
    let mut gone = BTreeMap::new();
    for thread in sizes.keys() {
        let count = match args.yes {
            true => {
                db.checkpointer.prune(Prune { threads: Some(vec![thread.clone()]), keep }).await?
            }
            false => would_go(db, thread, keep).await?,
        };
        gone.insert(thread.clone(), count);
    }
    let word = if args.yes { "removed" } else { "would remove" };
    let lines: Vec<_> = gone
        .iter()
        .map(|(thread, count)| {
            format!("{word} {count} of {} checkpoints of thread `{}`", sizes[thread], tame(thread))
        })
        .collect();
    told(out, args.yes, json!({ "removed": gone }), lines.join("\n"))
}

/// Counts the checkpoints that would be deleted, with the function that checkpointers use.
async fn would_go(db: &Db, thread: &str, keep: Keep) -> Result<usize, Fail> {
    let query = Query { thread: Some(thread.into()), ..Query::default() };
    let rows: Vec<Row> = db
        .checkpointer
        .list(query)
        .await?
        .into_iter()
        .map(|stored| {
            let values = stored.checkpoint.channel_values.keys().cloned().collect();
            Row::new(&stored.ns, stored.checkpoint.id, stored.parent, &stored.metadata, values)
        })
        .collect();
    Ok(wire::thin_out(&rows, keep).gone.len())
}
