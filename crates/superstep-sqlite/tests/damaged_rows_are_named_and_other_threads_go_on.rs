//! A file comes from anywhere. Whatever stands in one thread, reading it is an error that names thread and checkpoint, and
//! other threads do not notice.

mod world;

use rusqlite::Connection;
use superstep_checkpoint::{Checkpointer, Query, ThreadQuery};
use superstep_sqlite::SqliteSaver;
use world::{Dir, Line, chain, writes};

#[tokio::test]
async fn damaged_rows_are_named_and_other_threads_go_on() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let raw = Connection::open(dir.file()).expect("a file");
    let mut good = Line::new("good");
    good.put(&checkpointer).await;

    for (nth, (damage, wanted)) in [
        ("UPDATE checkpoints SET type = 'pickle'", "`pickle`"),
        ("UPDATE checkpoints SET type = NULL", "type is missing"),
        ("UPDATE checkpoints SET checkpoint = x'c1'", "c1"),
        ("UPDATE checkpoints SET checkpoint = NULL", "end before"),
        ("UPDATE checkpoints SET checkpoint = 5", "c"),
        ("UPDATE checkpoints SET checkpoint = x'81a17609'", "update superstep"),
        ("UPDATE checkpoints SET checkpoint = x'81a17604'", "`id`"),
        ("UPDATE checkpoints SET metadata = '{'", "not JSON"),
        ("UPDATE checkpoints SET metadata = '{}'", "`step`"),
        ("UPDATE checkpoints SET parent_checkpoint_id = 'no id'", "`no id`"),
        ("UPDATE writes SET task_id = 'no id'", "`no id`"),
        ("UPDATE writes SET type = NULL", "type is missing"),
    ]
    .into_iter()
    .enumerate()
    {
        let thread = format!("bad-{nth}");
        let mut line = Line::new(&thread);
        let id = line.put(&checkpointer).await;
        checkpointer.put_writes(&thread, "", id, writes(&[("a", 1)])).await.expect("stored");
        let sql = format!("{damage} WHERE thread_id = ?1");
        raw.execute(&sql, [&thread]).expect("damaged");

        let error = checkpointer.get(&thread, "", None).await.expect_err(damage);
        let text = chain(&error);
        assert!(text.contains(&format!("`{thread}`")), "{damage}: {text}");
        assert!(text.contains(&id.to_string()) && text.contains(wanted), "{damage}: {text}");
        let query = Query { thread: Some(thread.as_str().into()), ..Query::default() };
        checkpointer.list(query).await.expect_err(damage);

        good.put(&checkpointer).await;
        checkpointer.get("good", "", None).await.expect("read").expect("a head");
        let query = Query { thread: Some("good".into()), ..Query::default() };
        assert_eq!(checkpointer.list(query).await.expect("a list").len(), nth + 2);
    }
    let page = checkpointer.threads(ThreadQuery::new(99)).await.expect("a page");
    assert_eq!(page.threads.len(), 13, "every thread is listed");
    let damaged = page.threads.iter().filter(|info| info.damage.is_some()).count();
    assert_eq!(damaged, 12, "every thread whose head cannot be read says so");
    for nth in 0..12 {
        checkpointer.delete_thread(&format!("bad-{nth}")).await.expect("deleted");
    }
    assert_eq!(checkpointer.list(Query::default()).await.expect("a list").len(), 13);
}

/// A head that is no id cannot be extended, and says so.
#[tokio::test]
async fn a_head_that_is_no_id_is_named() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let raw = Connection::open(dir.file()).expect("a file");
    let mut line = Line::new("t");
    line.put(&checkpointer).await;
    raw.execute("INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES ('t', 'zzz')", [])
        .expect("inserted");
    let error = checkpointer.put(line.next()).await.expect_err("refused").to_string();
    assert!(error.contains("`t`") && error.contains("zzz"), "{error}");
}
