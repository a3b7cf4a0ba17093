//! Commands that change what is stored: `prune`, `copy`, `delete`. Each says first what it would do.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::json;
use superstep_checkpoint::wire::{self, Row};
use superstep_checkpoint::{CheckpointId, Keep, Prune, Query};

use crate::args::PruneArgs;
use crate::db::{Db, unknown_thread};
use crate::out::{Fail, Out, tame};

/// How many checkpoints each of these threads has, in all namespaces. Unknown threads are refused.
async fn sizes(db: &Db, threads: &[String]) -> Result<BTreeMap<String, usize>, Fail> {
    let all = db.saver.inventory().await?;
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

/// What is printed when something is done, or would be with `--yes`.
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
            db.saver.delete_thread(thread).await?;
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
    if db.saver.get(to, "", None).await?.is_some() {
        return Err(wire::target_exists(from, to).into());
    }
    if yes {
        db.saver.copy_thread(from, to).await?;
    }
    let word = if yes { "copied" } else { "would copy" };
    let text = format!("{word} thread `{}` with {size} checkpoints to `{}`", tame(from), tame(to));
    told(out, yes, json!({ "from": from, "to": to, "checkpoints": size }), text)
}

pub(super) async fn prune(db: &Db, args: &PruneArgs, out: Out) -> Result<(), Fail> {
    if args.threads.is_empty() && !args.all {
        return Err(Fail::usage("prune needs the threads to thin out, or --all"));
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
            true => db.saver.prune(Prune { threads: Some(vec![thread.clone()]), keep }).await?,
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

/// How many checkpoints would go. Decided by the same function that savers use.
async fn would_go(db: &Db, thread: &str, keep: Keep) -> Result<usize, Fail> {
    let query = Query { thread: Some(thread.into()), ..Query::default() };
    let rows: Vec<Row> = db
        .saver
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
