//! The list of threads is ordered by their heads, whichever program stored or deleted them. It is
//! kept by triggers that do not look at every checkpoint; here it is compared with the checkpoints
//! themselves.

mod world;

use rusqlite::{Connection, params};
use superstep_contract::listing::{self, Outside, id};
use superstep_sqlite::SqliteSaver;
use world::Dir;

/// As LangGraph stores and deletes.
struct Other(Connection);

impl Other {
    fn insert(&self, thread: &str, ns: &str, id: &str) {
        let sql = "INSERT OR REPLACE INTO checkpoints VALUES (?1, ?2, ?3, NULL, 'msgpack', x'81a17604', \
                   '{\"source\": \"loop\", \"step\": 1}')";
        self.0.execute(sql, params![thread, ns, id]).expect("stored");
    }
}

impl Outside for Other {
    async fn store(&self, thread: &str, ns: &str, id: &str) {
        self.insert(thread, ns, id);
    }

    async fn delete_newest(&self, thread: &str) {
        let sql = "DELETE FROM checkpoints WHERE rowid = (SELECT rowid FROM checkpoints \
                   WHERE thread_id = ?1 ORDER BY checkpoint_id DESC LIMIT 1)";
        self.0.execute(sql, [thread]).expect("deleted");
    }

    async fn heads(&self) -> Vec<(String, String)> {
        let sql = "SELECT thread_id, max(checkpoint_id) AS head FROM checkpoints \
                   WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY head DESC, thread_id";
        let mut statement = self.0.prepare(sql).expect("SQL");
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
        rows.collect::<Result<_, _>>().expect("texts")
    }
}

#[tokio::test]
async fn whatever_was_stored_and_deleted() {
    for seed in 0..8 {
        let dir = Dir::new();
        let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
        let other = Other(Connection::open(dir.file()).expect("a file"));
        listing::compare(&checkpointer, &other, seed).await;
    }
}

/// The list is not touched by supersteps that follow each other closely, which is what makes them cheap.
#[tokio::test]
async fn at_no_cost_for_most_supersteps() {
    let dir = Dir::new();
    drop(SqliteSaver::open(dir.file()).await.expect("a file"));
    let other = Other(Connection::open(dir.file()).expect("a file"));
    other.insert("thread", "", &id(0, 1));
    let before = other.0.total_changes();
    for nth in 2..102 {
        other.insert("thread", "", &id(nth * 100_000, nth));
    }
    assert_eq!(other.0.total_changes() - before, 100, "one row for each");
    other.insert("thread", "", &id(1 << 24, 102));
    assert_eq!(other.0.total_changes() - before, 102, "its row, and the one of the list");
}
