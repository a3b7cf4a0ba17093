//! Listing threads, those that were changed last first.

use superstep_checkpoint::{
    CheckpointId, Error, ThreadCursor, ThreadInfo, ThreadPage, ThreadQuery, wire,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::read::{self, column};
use crate::db::{Db, Statement};

/// How the threads of a database are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// By the table of ours beside those of the other engine. A page costs a page.
    Kept,
    /// By going from one to the next, and sorting: it costs what there are of threads, though not of checkpoints. For a
    /// database that was not ours to change.
    Walked,
}

/// The names of all threads, found by going from one to the next.
macro_rules! names_of_threads {
    () => {
        "WITH RECURSIVE names(thread_id) AS (
            (SELECT thread_id FROM checkpoints ORDER BY thread_id LIMIT 1)
            UNION ALL
            SELECT (SELECT c.thread_id FROM checkpoints c WHERE c.thread_id > n.thread_id ORDER BY c.thread_id LIMIT 1)
            FROM names n WHERE n.thread_id IS NOT NULL
        )"
    };
}
pub(super) use names_of_threads;

/// The head of a thread, given its name.
macro_rules! head_of {
    ($thread:literal) => {
        concat!(
            "(SELECT c.checkpoint_id AS head FROM checkpoints c WHERE c.thread_id = ",
            $thread,
            " AND c.checkpoint_ns = '' ORDER BY c.checkpoint_id DESC LIMIT 1)"
        )
    };
}
pub(super) use head_of;

/// The list says in which second and a half a thread was changed; within that, the heads are looked up.
const KEPT: &str = concat!(
    "WITH heads AS (SELECT t.thread_id, t.moment, h.head FROM superstep_threads t CROSS JOIN LATERAL ",
    head_of!("t.thread_id"),
    " h)"
);

const WALKED: &str = concat!(
    names_of_threads!(),
    ", heads AS (SELECT n.thread_id, ''::text COLLATE \"C\" AS moment, h.head FROM names n CROSS JOIN LATERAL ",
    head_of!("n.thread_id"),
    " h)"
);

/// The page that begins after a head and a thread, or the first one.
fn statement(listing: Listing, is_first: bool) -> String {
    let heads = match listing {
        Listing::Kept => KEPT,
        Listing::Walked => WALKED,
    };
    let after = match is_first {
        true => "",
        false => "WHERE moment <= $2 AND (head < $2 OR head = $2 AND thread_id COLLATE \"C\" > $3)",
    };
    format!(
        "{heads}, page AS (
            SELECT * FROM heads {after} ORDER BY moment DESC, head DESC, thread_id COLLATE \"C\" LIMIT $1
        )
        SELECT p.thread_id, p.head, c.metadata::text AS metadata, w.*
        FROM page p
        JOIN checkpoints c ON c.thread_id = p.thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = p.head
        LEFT JOIN LATERAL (
            SELECT array_agg(w.task_id) AS tasks, array_agg(w.task_path) AS paths, array_agg(w.idx) AS slots,
                array_agg(w.channel) AS channels, array_agg(w.type) AS types, array_agg(w.blob) AS values
            FROM checkpoint_writes w
            WHERE w.thread_id = p.thread_id AND w.checkpoint_ns = '' AND w.checkpoint_id = p.head
        ) w ON true
        ORDER BY p.head DESC, p.thread_id COLLATE \"C\""
    )
}

pub(super) async fn threads(
    db: &Db,
    listing: Listing,
    query: ThreadQuery,
) -> Result<ThreadPage, Error> {
    if query.limit == 0 {
        return Ok(ThreadPage::default());
    }
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1);
    let after = query.after.as_ref().map(|after| (after.head.to_string(), &*after.thread));
    let sql = statement(listing, after.is_none());
    let statement = Statement::new(&sql).bind(&limit, Type::INT8);
    let statement = match &after {
        Some((head, thread)) => statement.text(head).text(thread),
        None => statement,
    };
    let rows = db.read(statement).await;
    let rows = rows.map_err(|failure| failure.told(|| "list threads".to_owned()))?;
    let mut page = ThreadPage::default();
    for row in rows.iter().take(query.limit) {
        let thread: &str = column(row, "thread_id")?;
        let head: CheckpointId = column::<&str>(row, "head")?.parse().map_err(|error| {
            wire::damaged(thread, "", column::<&str>(row, "head").unwrap_or_default(), &error)
        })?;
        page.threads.push(info(row, thread, head)?);
    }
    if rows.len() > query.limit {
        let last = page.threads.last();
        page.next = last.map(|last| ThreadCursor { head: last.head, thread: last.thread.clone() });
    }
    Ok(page)
}

fn info(row: &Row, thread: &str, head: CheckpointId) -> Result<ThreadInfo, Error> {
    let metadata = wire::metadata_from_json(column::<&str>(row, "metadata")?.as_bytes());
    let pending = read::writes(row).and_then(|writes| wire::open_questions(&writes));
    let damage = [metadata.as_ref().err(), pending.as_ref().err()].into_iter().flatten().next();
    Ok(ThreadInfo {
        thread: thread.into(),
        head,
        damage: damage.map(ToString::to_string),
        metadata: metadata.ok(),
        pending: pending.unwrap_or_default(),
    })
}
