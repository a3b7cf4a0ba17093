//! A file can be opened as it is, to look at it: no table is made or brought up to date, and no file
//! is left next to it. That includes files that superstep never set up.

mod world;

use rusqlite::Connection;
use superstep_checkpoint::{Checkpointer, ThreadQuery};
use superstep_sqlite::SqliteSaver;
use world::{Dir, Line, writes};

fn names(dir: &Dir) -> Vec<String> {
    let file = dir.file();
    let all = std::fs::read_dir(file.parent().expect("a directory")).expect("a directory");
    let mut names: Vec<_> =
        all.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn what_is_not_there_is_not_made() {
    let dir = Dir::new();
    let error = SqliteSaver::open_existing(dir.file()).await.expect_err("no file");
    assert!(error.to_string().contains("there is no file"), "{error}");
    assert!(names(&dir).is_empty());
    Connection::open(dir.file()).expect("a file").execute_batch("CREATE TABLE t (x)").expect("SQL");
    let before = std::fs::read(dir.file()).expect("bytes");
    let error = SqliteSaver::open_existing(dir.file()).await.expect_err("no tables");
    assert!(error.to_string().contains("superstep migrate"), "{error}");
    assert_eq!(std::fs::read(dir.file()).expect("bytes"), before);
}

#[tokio::test]
async fn a_closed_file_stands_alone() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    Line::new("a").put(&checkpointer).await;
    checkpointer.close().await.expect("closed");
    assert_eq!(names(&dir), ["threads.db"]);
    let checkpointer = SqliteSaver::open_existing(dir.file()).await.expect("it is there now");
    assert!(checkpointer.get("a", "", None).await.expect("read").is_some());
    checkpointer.close().await.expect("closed");
    assert_eq!(names(&dir), ["threads.db"]);
}

/// As LangGraph leaves it: no list of heads, which the list of threads is otherwise read from.
#[tokio::test]
async fn threads_are_listed_without_a_table_of_ours() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let mut heads = Vec::new();
    for thread in ["a", "b", "c"] {
        let mut line = Line::new(thread);
        line.put(&checkpointer).await;
        heads.push(line.put(&checkpointer).await);
    }
    checkpointer.close().await.expect("closed");
    let db = Connection::open(dir.file()).expect("a file");
    let ours = "DROP TRIGGER superstep_head_added; DROP TRIGGER superstep_head_changed; \
                DROP TRIGGER superstep_head_removed; DROP TRIGGER superstep_write_added; \
                DROP TRIGGER superstep_write_changed; DROP TRIGGER superstep_write_removed; \
                DROP TABLE superstep_tags; DROP TABLE superstep_threads; DROP TABLE superstep_schema; \
                DROP INDEX superstep_alarms";
    db.execute_batch(ours).expect("SQL");
    drop(db);
    let checkpointer = SqliteSaver::open_existing(dir.file()).await.expect("a file");
    let first = checkpointer.threads(ThreadQuery::new(2)).await.expect("a page");
    let rest = ThreadQuery::new(2).after(first.next.expect("more"));
    let rest = checkpointer.threads(rest).await.expect("a page");
    let all: Vec<_> = first.threads.iter().chain(&rest.threads).map(|info| info.head).collect();
    heads.reverse();
    assert_eq!(all, heads);
    assert!(rest.next.is_none());
    // It can be written to, and still has no table of ours.
    checkpointer.put_writes("a", "", heads[2], writes(&[("n", 1)])).await.expect("stored");
    checkpointer.close().await.expect("closed");
    let db = Connection::open(dir.file()).expect("a file");
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'superstep%'";
    assert_eq!(db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a count"), 0);
}

#[tokio::test]
async fn everything_that_is_stored_is_named() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let mut line = Line::new("a");
    let first = line.put(&checkpointer).await;
    let second = line.put(&checkpointer).await;
    checkpointer.put_writes("a", "", first, writes(&[("n", 1)])).await.expect("stored");
    let db = Connection::open(dir.file()).expect("a file");
    let damage = "UPDATE checkpoints SET checkpoint = x'c1', metadata = x'ff'";
    db.execute_batch(damage).expect("SQL");
    let all = checkpointer.inventory().await.expect("names");
    let names: Vec<_> =
        all.checkpoints.iter().map(|key| (key.id.clone(), key.parent.clone())).collect();
    let (first, second) = (first.to_string(), second.to_string());
    assert_eq!(names, [(first.clone(), None), (second, Some(first.clone()))]);
    assert!(all.stray_writes.is_empty());
    db.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?1", [&first]).expect("SQL");
    let all = checkpointer.inventory().await.expect("names");
    assert_eq!(all.stray_writes.iter().map(|key| &key.id).collect::<Vec<_>>(), [&first]);
}
