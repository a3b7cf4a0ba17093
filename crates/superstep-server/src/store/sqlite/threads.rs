use rusqlite::{Connection, params};

use super::{Result, row, text};
use crate::store::{Run, Thread};

pub(super) fn find(connection: &Connection, id: &str) -> Result<Option<Thread>> {
    row(connection, "SELECT body FROM server_threads WHERE thread_id = ?", id)
}

pub(super) fn put(connection: &Connection, thread: &Thread) -> Result<()> {
    let sql = "INSERT INTO server_threads
        (thread_id, status, created_at, updated_at, state_updated_at, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (thread_id) DO UPDATE SET status = ?2, updated_at = ?4, state_updated_at = ?5, body = ?6";
    connection.prepare_cached(sql)?.execute(params![
        thread.thread_id,
        thread.status.as_str(),
        thread.created_at.0,
        thread.updated_at.0,
        thread.state_updated_at.0,
        text(thread)?,
    ])?;
    Ok(())
}

pub(super) fn create(
    connection: &Connection,
    new: Thread,
) -> Result<std::result::Result<Thread, Box<Thread>>> {
    if let Some(known) = find(connection, &new.thread_id)? {
        return Ok(Err(Box::new(known)));
    }
    put(connection, &new)?;
    Ok(Ok(new))
}

pub(super) fn update(
    connection: &Connection,
    id: &str,
    change: Box<dyn FnOnce(&mut Thread) + Send>,
) -> Result<Option<Thread>> {
    let Some(mut thread) = find(connection, id)? else { return Ok(None) };
    change(&mut thread);
    put(connection, &thread)?;
    Ok(Some(thread))
}

pub(super) fn delete(connection: &Connection, id: &str) -> Result<Option<Vec<Run>>> {
    let open = super::runs::open_of(connection, id)?;
    let of_thread = "run_id IN (SELECT run_id FROM server_runs WHERE thread_id = ?)";
    connection.execute(&format!("DELETE FROM server_events WHERE {of_thread}"), [id])?;
    connection.execute("DELETE FROM server_runs WHERE thread_id = ?", [id])?;
    super::sessions::delete(connection, id)?;
    super::crons::delete_of_thread(connection, id)?;
    super::answers::delete_of_thread(connection, id)?;
    let deleted = connection.execute("DELETE FROM server_threads WHERE thread_id = ?", [id])?;
    Ok((deleted > 0).then_some(open))
}
