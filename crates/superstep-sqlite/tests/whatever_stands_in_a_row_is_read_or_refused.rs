//! A file comes from anywhere. Whatever stands in a row of it, looking at the thread, continuing
//! with it, answering it and changing it gives a result or an error: no panic, no hang, no absurd
//! allocation. Rows of a real thread are damaged by a seed, one value at a time.
//!
//! `SUPERSTEP_TEST_CASES` sets how many damages are tried, `SUPERSTEP_TEST_SEED` where they begin.

mod world;

use std::path::Path;

use futures_util::TryStreamExt;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, params_from_iter};
use superstep::prelude::*;
use superstep::{CompiledGraph, Memory, Thread};
use superstep_sqlite::SqliteSaver;
use world::{Dir, chain};

#[derive(State, Clone, Default, Debug)]
struct Log {
    #[channel(reduce = Append)]
    lines: Vec<String>,
    total: i64,
    note: Option<String>,
}

fn line(text: &str) -> LogUpdate {
    Log::update().lines([text.to_owned()])
}

/// Every kind of row: lists stored as writes, a finished sibling, a recorded call, open questions, a graph with a memory.
fn graph(checkpointer: SqliteSaver) -> CompiledGraph<Log> {
    let inside = StateGraph::<Log>::new()
        .add_node("ask", async |task: Task| {
            let text: String = task.interrupt("inside?").await;
            line(&text)
        })
        .add_edge(START, "ask")
        .compile()
        .expect("a graph");
    StateGraph::new()
        .add_node("first", || line("first").total(1))
        .add_node("done", || line("done"))
        .add_node("calls", async |task: Task| {
            let n: i64 = task.call("count", async || Ok::<_, NodeError>(7)).await?;
            let text: String = task.interrupt("outside?").await;
            Ok::<_, NodeError>(line(&text).total(n))
        })
        .add_node("inside", inside.with_memory(Memory::PerThread))
        .add_edge(START, "first")
        .add_edge("first", "done")
        .add_edge("first", "calls")
        .add_edge("first", "inside")
        .compile()
        .expect("a graph")
        .with_checkpointer(checkpointer)
}

/// Numbers by a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll() % limit.max(1) as u64).expect("below a limit")
    }
}

const COLUMNS: [(&str, &[&str]); 2] = [
    (
        "checkpoints",
        &[
            "checkpoint_ns",
            "checkpoint_id",
            "parent_checkpoint_id",
            "type",
            "checkpoint",
            "metadata",
        ],
    ),
    ("writes", &["checkpoint_id", "task_id", "idx", "channel", "type", "value"]),
];

/// Damages one value, and says how.
fn damage(file: &Path, dice: &mut Dice) -> String {
    let raw = Connection::open(file).expect("a file");
    let (table, columns) = COLUMNS[dice.below(COLUMNS.len())];
    let column = columns[dice.below(columns.len())];
    let count = format!("SELECT count(*) FROM {table}");
    let rows: i64 = raw.query_row(&count, [], |row| row.get(0)).expect("a number");
    let row = dice.below(usize::try_from(rows).expect("a number of rows"));
    let find = format!("SELECT rowid, {column} FROM {table} ORDER BY rowid LIMIT 1 OFFSET {row}");
    let (id, old): (i64, Sql) =
        raw.query_row(&find, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("a row");
    let new = damaged(old, dice);
    let shown = format!("{table}.{column} of row {row}: {new:?}");
    let change = format!("UPDATE OR REPLACE {table} SET {column} = ?1 WHERE rowid = ?2");
    match raw.execute(&change, params_from_iter([new, Sql::Integer(id)])) {
        Ok(_) => shown,
        // A key cannot be null.
        Err(_) => format!("nothing, since not possible: {shown}"),
    }
}

fn damaged(old: Sql, dice: &mut Dice) -> Sql {
    let bytes = match &old {
        Sql::Blob(bytes) => bytes.clone(),
        Sql::Text(text) => text.clone().into_bytes(),
        Sql::Integer(_) | Sql::Real(_) | Sql::Null => Vec::new(),
    };
    let back = |bytes: Vec<u8>| match &old {
        Sql::Text(_) => Sql::Text(String::from_utf8_lossy(&bytes).into_owned()),
        _ => Sql::Blob(bytes),
    };
    match dice.below(9) {
        0 => Sql::Null,
        1 => Sql::Integer([i64::MIN, -1, 0, i64::MAX][dice.below(4)]),
        2 => Sql::Text(["", "no id", "msgpack", "null", "{}", "[1"][dice.below(6)].to_owned()),
        3 => Sql::Blob((0..dice.below(40)).map(|_| dice.roll().to_le_bytes()[0]).collect()),
        // Lists in lists, and a list that says it has four thousand million items.
        4 => Sql::Blob(vec![0x91; 20_000]),
        5 => Sql::Blob(vec![0xdd, 0xff, 0xff, 0xff, 0xff]),
        6 => back(bytes[..dice.below(bytes.len())].to_vec()),
        7 if !bytes.is_empty() => {
            let mut bytes = bytes;
            let at = dice.below(bytes.len());
            bytes[at] = dice.roll().to_le_bytes()[0];
            back(bytes)
        }
        _ if !bytes.is_empty() => {
            let mut bytes = bytes;
            let at = dice.below(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
            back(bytes)
        }
        _ => Sql::Real(f64::NAN),
    }
}

/// Everything that reads a thread. A job that panics says so in its error.
async fn use_it(thread: &Thread<Log>, what: usize) -> Result<(), RunError> {
    match what {
        0 => drop(thread.get_state().subgraphs(true).await?),
        1 => drop(thread.get_state_history().try_collect::<Vec<_>>().await?),
        2 => drop(thread.invoke(()).await?),
        3 => drop(thread.update_state(line("outside")).as_node("calls").await?),
        4 => drop(thread.invoke(line("again")).await?),
        _ => {
            let asked = thread.get_state().await?.interrupts.first().map(|asked| asked.id.clone());
            let Some(id) = asked else { return Ok(()) };
            drop(thread.resume_all([(id, "yes")]).await?);
        }
    }
    Ok(())
}

#[tokio::test]
async fn whatever_stands_in_a_row_is_read_or_refused() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number("SUPERSTEP_TEST_CASES").unwrap_or(300);
    let mut dice = Dice(number("SUPERSTEP_TEST_SEED").unwrap_or(15));
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let thread = graph(checkpointer.clone()).thread("t");
    thread.invoke(line("in")).await.expect("questions");
    drop(thread);
    checkpointer.close().await.expect("closed");
    let whole = std::fs::read(dir.file()).expect("a file");
    let (mut read, mut refused) = (0, 0);
    for case in 0..cases {
        let file = dir.file().with_file_name(format!("{case}.db"));
        std::fs::write(&file, &whole).expect("a copy");
        let what = dice.below(6);
        let damage = damage(&file, &mut dice);
        let checkpointer = SqliteSaver::open(&file).await.expect("a file");
        match use_it(&graph(checkpointer.clone()).thread("t"), what).await {
            Ok(()) => read += 1,
            Err(error) => {
                refused += 1;
                let text = chain(&error);
                assert!(!text.contains("panic"), "case {case}, {what} after {damage}: {text}");
            }
        }
        checkpointer.close().await.expect("closed");
        std::fs::remove_file(&file).expect("removed");
    }
    println!("{cases} damages: {read} read, {refused} refused");
    assert!(cases < 100 || read > 0 && refused > 0, "{read} read, {refused} refused");
}
