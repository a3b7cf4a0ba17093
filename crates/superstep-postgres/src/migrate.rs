//! Creating the tables, and migrating older ones.
//!
//! The tables, and the table that counts the steps that led to them, are those of LangGraph, so
//! that either finds the database as it expects it. Several processes may start at once. One of
//! them holds a lock and takes the steps, and the others wait. The lock belongs to a transaction on
//! a connection of its own, since an index that is built concurrently cannot be in one. A waiting
//! process asks again in a new transaction each time: building such an index waits for all
//! transactions that began before.

use std::time::Duration;

use superstep_checkpoint::Error;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::db::Db;
use crate::failure::Failure;

/// The time between two attempts to take the lock.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// How often the migration restarts because a program without the lock took a step at the same
/// time.
const TRIES: usize = 20;

/// Chosen once, at random. Every program that makes these tables must use it.
const LOCK: i64 = 0x7375_7065_7273_7465;

/// A list of steps, and the table that says how many of them have been taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    /// The table with the number of each step that was taken.
    pub(crate) table: &'a str,
    /// Makes that table.
    pub(crate) first: &'a str,
    /// The steps, by number.
    pub(crate) steps: &'a [&'a str],
}

/// Checks that all steps have been taken, and takes none.
pub(crate) async fn verify(db: &Db, plan: Plan<'_>) -> Result<(), Error> {
    let client = db.connect().await.map_err(unreached)?;
    if db.in_time(is_current(&client, plan)).await? {
        return Ok(());
    }
    let why = match db.in_time(reached(&client, plan)).await? {
        None => "has no tables for threads",
        Some(_) => "has tables of an older version",
    };
    Err(Error::invalid(format_args!(
        "the database {why}; let `PostgresSaver::connect` or `superstep migrate` see to that"
    )))
}

/// Whether all steps have been taken.
///
/// # Errors
/// There are more steps than are known here.
pub(crate) async fn is_done(db: &Db, plan: Plan<'_>) -> Result<bool, Error> {
    let client = db.connect().await.map_err(unreached)?;
    db.in_time(is_current(&client, plan)).await
}

/// Takes the steps that have not been taken yet.
pub(crate) async fn migrate(db: &Db, plan: Plan<'_>) -> Result<(), Error> {
    let worker = db.connect().await.map_err(unreached)?;
    if db.in_time(is_current(&worker, plan)).await? {
        return Ok(());
    }
    let holder = db.connect().await.map_err(unreached)?;
    loop {
        let sql = format!("BEGIN; SELECT pg_try_advisory_xact_lock({LOCK})");
        let answers = db.in_time(holder.simple_query(&sql)).await?;
        // Asked like this, and not with parameters, the server forgets the statement at once. Else the transaction would
        // keep what it saw, and building an index would wait for it.
        if answers
            .iter()
            .any(|answer| matches!(answer, SimpleQueryMessage::Row(row) if row.get(0) == Some("t")))
        {
            break;
        }
        db.in_time(holder.batch_execute("ROLLBACK")).await?;
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let done = take_steps(&worker, plan).await;
    // The lock also ends with the connection, so a failure here loses nothing.
    let _ = db.in_time(holder.batch_execute("ROLLBACK")).await;
    done
}

fn unreached(failure: Failure) -> Error {
    failure.told(|| "make its tables (connect)".to_owned())
}

fn told(error: tokio_postgres::Error, what: &str) -> Error {
    Failure::from(error).told(|| format!("make its tables ({what})"))
}

/// Whether all steps have been taken.
async fn is_current(client: &Client, plan: Plan<'_>) -> Result<bool, Error> {
    let reached = reached(client, plan).await?;
    let last = i32::try_from(plan.steps.len()).map_err(Error::invalid)?.saturating_sub(1);
    if let Some(newer) = reached.filter(|reached| *reached > last) {
        let table = plan.table;
        return Err(Error::invalid(format_args!(
            "the database is newer than this program: `{table}` has step {newer}, and the last one known here is \
             {last}; use a newer version of superstep"
        )));
    }
    Ok(reached == Some(last))
}

/// The last step that was taken.
async fn reached(client: &Client, plan: Plan<'_>) -> Result<Option<i32>, Error> {
    let exists = format!("SELECT to_regclass('{}') IS NOT NULL", plan.table);
    let row = client.query_typed_one(&exists, &[]).await.map_err(|error| told(error, "look"))?;
    if !row.try_get::<_, bool>(0).map_err(|error| told(error, "look"))? {
        return Ok(None);
    }
    let last = format!("SELECT max(v) FROM {}", plan.table);
    let row = client.query_typed_one(&last, &[]).await.map_err(|error| told(error, "look"))?;
    row.try_get(0).map_err(|error| told(error, "look"))
}

async fn take_steps(client: &Client, plan: Plan<'_>) -> Result<(), Error> {
    for _ in 1..TRIES {
        match try_steps(client, plan).await {
            Err(error) if is_race(&error) => tokio::time::sleep(LOOK_EVERY).await,
            Err(error) => return Err(told(error, "migrate")),
            Ok(()) => return Ok(()),
        }
    }
    try_steps(client, plan).await.map_err(|error| told(error, "migrate"))
}

/// `IF NOT EXISTS` checks first and creates then, so it fails if another process creates the table
/// in between.
fn is_race(error: &tokio_postgres::Error) -> bool {
    let races = [
        &SqlState::UNIQUE_VIOLATION,
        &SqlState::DUPLICATE_TABLE,
        &SqlState::DUPLICATE_OBJECT,
        &SqlState::DUPLICATE_COLUMN,
        &SqlState::T_R_DEADLOCK_DETECTED,
    ];
    error.code().is_some_and(|code| races.contains(&code))
}

async fn try_steps(client: &Client, plan: Plan<'_>) -> Result<(), tokio_postgres::Error> {
    client.batch_execute(plan.first).await?;
    let sql = format!("SELECT coalesce(max(v), -1) FROM {}", plan.table);
    let reached: i32 = client.query_typed_one(&sql, &[]).await?.try_get(0)?;
    for (number, step) in (0..).zip(plan.steps).filter(|(number, _)| *number > reached) {
        if let Some(index) = concurrent_index(step) {
            drop_invalid(client, index).await?;
        }
        client.batch_execute(step).await?;
        let sql =
            format!("INSERT INTO {} (v) VALUES ({number}) ON CONFLICT DO NOTHING", plan.table);
        client.batch_execute(&sql).await?;
    }
    Ok(())
}

/// The index a step builds concurrently, if it does.
fn concurrent_index(step: &str) -> Option<&str> {
    step.split_once("CONCURRENTLY IF NOT EXISTS ")?.1.split_whitespace().next()
}

/// Building an index concurrently leaves an unusable one behind if it is interrupted, which `IF NOT EXISTS` takes for the
/// index that is wanted.
async fn drop_invalid(client: &Client, index: &str) -> Result<(), tokio_postgres::Error> {
    let sql = format!(
        "SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass('{index}') AND NOT indisvalid)"
    );
    if client.query_typed_one(&sql, &[]).await?.try_get(0)? {
        client.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {index}")).await?;
    }
    Ok(())
}
