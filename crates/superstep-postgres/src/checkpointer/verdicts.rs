//! Caches verdicts about the heads of threads until the threads change.
//!
//! A trigger clears a verdict when its thread changes, and does nothing if there is none. So a
//! verdict may be cached only while no transaction that has seen it empty is about to commit. The
//! triggers take a shared lock of the thread; caching a verdict takes it exclusively, and is
//! skipped if the lock is held.

use std::sync::Arc;

use superstep_checkpoint::{Error, ThreadInfo, wire};

use super::read::column;
use super::threads::{HEADS, in_order, info};
use crate::db::{Db, Statement};
use crate::failure::Failure;

/// The number of verdicts cached in one transaction, while writers wait.
const AT_ONCE: usize = 50;

/// Takes the lock of a thread. Many threads share one of a thousand, since a server has room for some thousands of locks only, and
/// one transaction may delete any number of threads.
macro_rules! lock_of {
    ("shared", $thread:literal) => {
        lock_of!("pg_advisory_xact_lock_shared" => $thread)
    };
    ("alone, if possible", $thread:literal) => {
        lock_of!("pg_try_advisory_xact_lock" => $thread)
    };
    ($function:literal => $thread:literal) => {
        concat!($function, "(1937076325, (hashtextextended(", $thread, ", 3) & 1023)::int4)")
    };
}
pub(super) use lock_of;

/// Locks the threads that no transaction is changing, and returns them.
const LOCK: &str =
    concat!("SELECT t FROM unnest($1::text[]) AS t WHERE ", lock_of!("alone, if possible", "t"));

const KEEP: &str = "UPDATE superstep_threads t SET verdict = k.verdict
    FROM unnest($1::text[], $2::text[]) AS k(thread_id, verdict) WHERE t.thread_id = k.thread_id";

const CLEAR_TAGS: &str = "DELETE FROM superstep_tags WHERE thread_id = ANY($1)";

const ADD_TAGS: &str = "INSERT INTO superstep_tags (thread_id, name, value, moment)
    SELECT t.thread_id, k.name, k.value, t.moment
    FROM unnest($1::text[], $2::text[], $3::text[]) AS k(thread_id, name, value) JOIN superstep_threads t USING (thread_id)";

/// Reads the heads of threads without a verdict, and caches the verdicts. A thread that another
/// transaction is changing is left for the next time; so are all of them if the list is read-only,
/// which is correct but slower.
pub(super) async fn settle(db: &Db, threads: &[Arc<str>]) {
    for some in threads.chunks(AT_ONCE) {
        let some: Vec<&str> = some.iter().map(|thread| &**thread).collect();
        if let Err(failure) = try_settle(db, &some).await {
            let error = failure.told(|| "keep the status of threads".to_owned());
            tracing::debug!(%error, "threads have to be looked at again");
            return;
        }
    }
}

async fn try_settle(db: &Db, threads: &[&str]) -> Result<(), Failure> {
    let lock = Statement::new(LOCK).texts(&threads);
    let (open, answers) = db.open(&[&lock, &Statement::new(HEADS).texts(&threads)]).await?;
    let mut answers = answers.into_iter();
    let locked = answers.next().unwrap_or_default();
    let locked =
        locked.iter().map(|row| column::<&str>(row, "t")).collect::<Result<Vec<_>, _>>()?;
    let heads = in_order(&answers.next().unwrap_or_default(), threads.len())?;
    let mut infos: Vec<ThreadInfo> = Vec::new();
    for (thread, head) in threads.iter().zip(heads) {
        let Some(head) = head.filter(|_| locked.contains(thread)) else { continue };
        match head {
            // Damage is reported in the list, and looked for again each time.
            Err(Error::Codec(_)) => {}
            Err(error) => return Err(error.into()),
            Ok(head) => {
                let id = head.checkpoint.id;
                infos.push(info((*thread).into(), id, None, Ok(head)));
            }
        }
    }
    let names: Vec<&str> = infos.iter().map(|info| &*info.thread).collect();
    let verdicts: Vec<&str> = infos.iter().map(|info| info.verdict().as_str()).collect();
    let (mut tagged, mut keys, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for info in &infos {
        for (key, value) in info.metadata.iter().flat_map(wire::tags) {
            tagged.push(&*info.thread);
            keys.push(key);
            values.push(value);
        }
    }
    let keep = Statement::new(KEEP).texts(&names).texts(&verdicts);
    let clear = Statement::new(CLEAR_TAGS).texts(&names);
    let add = Statement::new(ADD_TAGS).texts(&tagged).texts(&keys).texts(&values);
    open.commit(&[&keep, &clear, &add]).await
}
