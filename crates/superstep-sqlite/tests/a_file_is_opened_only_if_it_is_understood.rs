//! Tables that are not ours, or newer, are refused before anything is changed; old ones are brought up to date.

mod world;

use rusqlite::Connection;
use superstep_checkpoint::{Checkpointer, ThreadQuery};
use superstep_sqlite::SqliteSaver;
use world::{Dir, Line, chain, writes};

async fn refusal(dir: &Dir) -> String {
    chain(&SqliteSaver::open(dir.file()).await.expect_err("refused"))
}

#[tokio::test]
async fn other_tables_of_the_same_name_are_refused() {
    let dir = Dir::new();
    let raw = Connection::open(dir.file()).expect("a file");
    raw.execute_batch("CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT)")
        .expect("a table");
    let text = refusal(&dir).await;
    assert!(text.contains("`checkpoints`") && text.contains("`checkpoint_id`"), "{text}");
    let tables = "SELECT count(*) FROM sqlite_schema WHERE type = 'table'";
    let count: i64 = raw.query_row(tables, [], |row| row.get(0)).expect("a count");
    assert_eq!(count, 1, "nothing was added");
}

#[tokio::test]
async fn a_column_that_must_be_given_is_refused() {
    let dir = Dir::new();
    drop(SqliteSaver::open(dir.file()).await.expect("a file"));
    let raw = Connection::open(dir.file()).expect("a file");
    raw.execute_batch(
        "DROP TABLE writes; CREATE TABLE writes (thread_id, checkpoint_ns, checkpoint_id, task_id, \
         task_path, idx, channel, type, value, tenant TEXT NOT NULL)",
    )
    .expect("a table");
    let text = refusal(&dir).await;
    assert!(text.contains("`tenant`") && text.contains("update"), "{text}");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let dir = Dir::new();
    drop(SqliteSaver::open(dir.file()).await.expect("a file"));
    let raw = Connection::open(dir.file()).expect("a file");
    raw.execute_batch("INSERT INTO superstep_schema VALUES (4)").expect("a row");
    let text = refusal(&dir).await;
    assert!(text.contains("schema 4") && text.contains("update superstep"), "{text}");
}

#[tokio::test]
async fn what_is_no_database_is_refused() {
    let dir = Dir::new();
    std::fs::write(dir.file(), "once upon a time, there was no database in here\n".repeat(50))
        .expect("a file");
    let text = refusal(&dir).await;
    assert!(text.contains("threads.db") && text.contains("no SQLite database"), "{text}");
    let nowhere = SqliteSaver::open(dir.file().join("below")).await.expect_err("refused");
    assert!(chain(&nowhere).contains("below"), "{nowhere}");
}

/// The list of threads of the first version was changed by every superstep.
#[tokio::test]
async fn a_file_of_our_first_version_is_brought_up_to_date() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let mut line = Line::new("t");
    line.put(&checkpointer).await;
    checkpointer.close().await.expect("closed");
    let raw = Connection::open(dir.file()).expect("a file");
    raw.execute_batch(
        "DROP TRIGGER superstep_head_added; DROP TRIGGER superstep_head_changed; \
         DROP TRIGGER superstep_head_removed; DROP TRIGGER superstep_write_added; \
         DROP TRIGGER superstep_write_changed; DROP TRIGGER superstep_write_removed; \
         DROP TABLE superstep_tags; DROP TABLE superstep_threads; DELETE FROM superstep_schema; \
         INSERT INTO superstep_schema VALUES (1); \
         CREATE TABLE superstep_threads (thread_id TEXT PRIMARY KEY, head TEXT NOT NULL) WITHOUT ROWID; \
         INSERT INTO superstep_threads SELECT thread_id, checkpoint_id FROM checkpoints; \
         CREATE TRIGGER superstep_head_added AFTER INSERT ON checkpoints BEGIN \
             UPDATE superstep_threads SET head = NEW.checkpoint_id; END; \
         CREATE TRIGGER superstep_head_removed AFTER DELETE ON checkpoints BEGIN \
             DELETE FROM superstep_threads; END",
    )
    .expect("the tables of the first version");
    drop(raw);
    for as_it_is in [true, false] {
        let file = dir.file();
        let checkpointer = match as_it_is {
            true => SqliteSaver::open_existing(file).await.expect("a file"),
            false => SqliteSaver::open(file).await.expect("a file"),
        };
        let head = line.put(&checkpointer).await;
        let page = checkpointer.threads(ThreadQuery::new(5)).await.expect("a page");
        let listed: Vec<_> = page.threads.iter().map(|info| info.head).collect();
        assert_eq!(listed, [head], "as it is: {as_it_is}");
        checkpointer.close().await.expect("closed");
    }
    let raw = Connection::open(dir.file()).expect("a file");
    let version = "SELECT v FROM superstep_schema";
    assert_eq!(raw.query_row(version, [], |row| row.get::<_, i64>(0)).expect("a version"), 3);
}

/// Files of the reference before 3.1.2 have no `task_path`, and none has our list of heads.
#[tokio::test]
async fn an_old_file_is_brought_up_to_date() {
    let dir = Dir::new();
    let raw = Connection::open(dir.file()).expect("a file");
    raw.execute_batch(
        "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', \
         checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, \
         metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)); \
         CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', \
         checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL, \
         channel TEXT NOT NULL, type TEXT, value BLOB, \
         PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)); \
         INSERT INTO checkpoints VALUES ('old', '', '1f1e1343-b0b3-6f28-8001-f615d72d0c55', NULL, \
         'msgpack', x'81a17604', '{\"source\": \"loop\", \"step\": 1}')",
    )
    .expect("tables");
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let mut line = Line::new("new");
    let id = line.put(&checkpointer).await;
    checkpointer.put_writes("new", "", id, writes(&[("a", 1)])).await.expect("stored");
    let head = checkpointer.get("new", "", None).await.expect("read").expect("a head");
    assert_eq!(head.writes[0].path, "p");
    let page = checkpointer.threads(ThreadQuery::new(9)).await.expect("a page");
    assert_eq!(page.threads.len(), 2, "those from before are listed");
}
