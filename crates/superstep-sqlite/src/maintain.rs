//! Copying, deleting and pruning threads, and listing everything that is stored.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::{Connection, params};
use superstep_checkpoint::wire::{self, CheckpointParts, Removal};
use superstep_checkpoint::{CheckpointId, Error, Inventory, Keep, Limits, Metadata, StoredKey};

use crate::error::During;
use crate::{alarms, read};

pub(crate) fn delete_thread(db: &Connection, thread: &str) -> Result<(), Error> {
    let delete = || {
        db.prepare_cached("DELETE FROM writes WHERE thread_id = ?1")?.execute([thread])?;
        db.prepare_cached("DELETE FROM checkpoints WHERE thread_id = ?1")?.execute([thread])
    };
    delete().map(drop).during(format_args!("deleting thread `{thread}`"))
}

pub(crate) fn copy_thread(db: &Connection, from: &str, to: &str) -> Result<(), Error> {
    let what = || format!("copying thread `{from}` to `{to}`");
    let exists = "SELECT 1 FROM checkpoints WHERE thread_id = ?1 LIMIT 1";
    if db.prepare_cached(exists).and_then(|mut look| look.exists([to])).during(what())? {
        return Err(wire::target_exists(from, to));
    }
    let copy = || {
        let checkpoints = "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, \
                           parent_checkpoint_id, type, checkpoint, metadata) \
                           SELECT ?2, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, \
                           checkpoint, metadata FROM checkpoints WHERE thread_id = ?1";
        let writes = "INSERT OR REPLACE INTO writes (thread_id, checkpoint_ns, checkpoint_id, \
                      task_id, task_path, idx, channel, type, value) \
                      SELECT ?2, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, \
                      type, value FROM writes WHERE thread_id = ?1";
        db.prepare_cached(checkpoints)?.execute([from, to])?;
        db.prepare_cached(writes)?.execute([from, to])
    };
    copy().map(drop).during(what())
}

/// The threads that have checkpoints of these runs.
pub(crate) fn threads_of_runs(db: &Connection, runs: &[String]) -> Result<Vec<String>, Error> {
    let what = "looking for the checkpoints of runs";
    let mut statement =
        db.prepare_cached("SELECT thread_id, metadata FROM checkpoints").during(what)?;
    let mut rows = statement.query([]).during(what)?;
    let mut threads = BTreeSet::new();
    while let Some(row) = rows.next().during(what)? {
        let bytes = row.get_ref(1).during(what)?.as_bytes_or_null().ok().flatten();
        // What cannot be read belongs to no run that could be named.
        let metadata = bytes.and_then(|bytes| wire::metadata_from_json(bytes).ok());
        if metadata.is_some_and(|metadata| wire::is_of_runs(&metadata, runs)) {
            threads.insert(row.get(0).during(what)?);
        }
    }
    Ok(threads.into_iter().collect())
}

pub(crate) fn delete_for_runs(
    db: &Connection,
    threads: &[String],
    runs: &[String],
) -> Result<(), Error> {
    for thread in threads {
        let known = know(db, thread)?;
        let chosen = known.iter().enumerate();
        let chosen = chosen.filter(|(_, (metadata, _))| wire::is_of_runs(metadata, runs));
        let chosen: BTreeSet<usize> = chosen.map(|(at, _)| at).collect();
        let rows: Vec<_> = known.into_iter().map(|(_, row)| row).collect();
        apply(db, thread, &wire::remove_runs(thread, &rows, &chosen)?)?;
        alarms::rearm(db, thread)?;
    }
    Ok(())
}

pub(crate) fn all_threads(db: &Connection) -> Result<Vec<String>, Error> {
    let what = "listing threads";
    let mut statement =
        db.prepare_cached("SELECT DISTINCT thread_id FROM checkpoints").during(what)?;
    let threads = statement.query_map([], |row| row.get(0)).during(what)?;
    threads.collect::<rusqlite::Result<_>>().during(what)
}

pub(crate) fn prune(db: &Connection, thread: &str, keep: Keep) -> Result<usize, Error> {
    let rows: Vec<_> = know(db, thread)?.into_iter().map(|(_, row)| row).collect();
    let removal = wire::thin_out(&rows, keep);
    apply(db, thread, &removal)?;
    Ok(removal.gone.len())
}

/// The information about each checkpoint of a thread that decides whether it can be deleted.
fn know(db: &Connection, thread: &str) -> Result<Vec<(Metadata, wire::Row)>, Error> {
    let what = || format!("looking over thread `{thread}`");
    let sql = "SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, metadata \
               FROM checkpoints WHERE thread_id = ?1";
    let mut statement = db.prepare_cached(sql).during(what())?;
    let mut rows = statement.query([thread]).during(what())?;
    let mut found: Vec<(Arc<str>, CheckpointId, Option<CheckpointId>, Metadata)> = Vec::new();
    while let Some(row) = rows.next().during(what())? {
        let ns: Arc<str> = row.get(0).during(what())?;
        let id: String = row.get(1).during(what())?;
        let parent: Option<String> = row.get(2).during(what())?;
        let bytes = row.get_ref(3).during(what())?.as_bytes_or_null().ok().flatten();
        let read = || -> Result<_, Error> {
            let parent = parent.map(|parent| parent.parse()).transpose()?;
            Ok((id.parse()?, parent, wire::metadata_from_json(bytes.unwrap_or_default())?))
        };
        let (id, parent, metadata) =
            read().map_err(|error| wire::damaged(thread, &ns, &id, &error))?;
        found.push((ns, id, parent, metadata));
    }
    // The values of checkpoints are only of interest where some have to be rebuilt.
    let deltas = found.iter().any(|(_, _, _, metadata)| !metadata.delta_counters.is_empty());
    let mut values = if deltas { valued(db, thread)? } else { BTreeMap::new() };
    let row = |(ns, id, parent, metadata): (Arc<str>, _, _, _)| {
        let values = values.remove(&(ns.to_string(), id)).unwrap_or_default();
        let row = wire::Row::new(&ns, id, parent, &metadata, values);
        (metadata, row)
    };
    Ok(found.into_iter().map(row).collect())
}

type Valued = BTreeMap<(String, CheckpointId), BTreeSet<Arc<str>>>;

/// The channels that have a value, for each checkpoint of a thread.
fn valued(db: &Connection, thread: &str) -> Result<Valued, Error> {
    let what = || format!("looking over thread `{thread}`");
    let sql = "SELECT checkpoint_ns, checkpoint_id, type, checkpoint FROM checkpoints \
               WHERE thread_id = ?1";
    let mut statement = db.prepare_cached(sql).during(what())?;
    let mut rows = statement.query([thread]).during(what())?;
    let mut found = Valued::new();
    while let Some(row) = rows.next().during(what())? {
        let (ns, id): (String, String) = (row.get(0).during(what())?, row.get(1).during(what())?);
        let channels = || -> Result<_, Error> {
            let (tag, bytes) = (row.get_ref(2).during(what())?, row.get_ref(3).during(what())?);
            let bytes = read::msgpack(tag, bytes)?;
            let channels =
                CheckpointParts::new(&bytes, Limits::DEFAULT)?.channels(Limits::DEFAULT)?;
            Ok((id.parse()?, channels))
        };
        let (key, channels) =
            channels().map_err(|error: Error| wire::damaged(thread, &ns, &id, &error))?;
        found.insert((ns, key), channels.into_iter().collect());
    }
    Ok(found)
}

fn apply(db: &Connection, thread: &str, removal: &Removal) -> Result<(), Error> {
    let change = || -> rusqlite::Result<()> {
        for (ns, id) in &removal.gone {
            let key = params![thread, ns, id.to_string()];
            let row = "WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3";
            db.prepare_cached(&format!("DELETE FROM writes {row}"))?.execute(key)?;
            db.prepare_cached(&format!("DELETE FROM checkpoints {row}"))?.execute(key)?;
        }
        for (ns, id) in &removal.orphaned {
            let sql = "UPDATE checkpoints SET parent_checkpoint_id = NULL \
                       WHERE thread_id = ?1 AND checkpoint_ns = ?2 AND checkpoint_id = ?3";
            db.prepare_cached(sql)?.execute(params![thread, ns, id.to_string()])?;
        }
        Ok(())
    };
    change().during(format_args!("removing checkpoints of thread `{thread}`"))
}

pub(crate) fn inventory(db: &Connection) -> Result<Inventory, Error> {
    // Text, whatever type was stored: a check may look for names of the wrong type.
    let checkpoints = "SELECT CAST(thread_id AS TEXT), CAST(checkpoint_ns AS TEXT), \
                       CAST(checkpoint_id AS TEXT), CAST(parent_checkpoint_id AS TEXT) \
                       FROM checkpoints ORDER BY 1, 2, 3";
    let stray = "SELECT DISTINCT CAST(thread_id AS TEXT), CAST(checkpoint_ns AS TEXT), \
                 CAST(checkpoint_id AS TEXT), NULL FROM writes w WHERE NOT EXISTS (\
                 SELECT 1 FROM checkpoints c WHERE c.thread_id = w.thread_id AND \
                 c.checkpoint_ns = w.checkpoint_ns AND c.checkpoint_id = w.checkpoint_id) \
                 ORDER BY 1, 2, 3";
    let keys = |sql: &str| -> rusqlite::Result<Vec<StoredKey>> {
        let mut statement = db.prepare_cached(sql)?;
        let rows = statement.query_map([], |row| {
            let (thread, ns) = (row.get(0)?, row.get(1)?);
            Ok(StoredKey { thread, ns, id: row.get(2)?, parent: row.get(3)? })
        })?;
        rows.collect()
    };
    let what = "naming everything that is stored";
    Ok(Inventory {
        checkpoints: keys(checkpoints).during(what)?,
        stray_writes: keys(stray).during(what)?,
    })
}
