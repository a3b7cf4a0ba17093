//! The list of threads is in the order of their heads, whoever stored or deleted them, and however much time lies between. It is
//! kept by triggers that do not look at every checkpoint; here it is compared with the checkpoints themselves.

mod world;

use rusqlite::{Connection, params};
use superstep_checkpoint::{Checkpointer, ThreadQuery};
use superstep_sqlite::SqliteSaver;
use world::Dir;

const SEEDS: u64 = 8;

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// An id whose time is this many units of 100 nanoseconds.
fn id(time: u64, nth: u64) -> String {
    let (high, mid, low) = (time >> 28, time >> 12 & 0xffff, time & 0xfff);
    format!("{high:08x}-{mid:04x}-6{low:03x}-8001-{nth:012x}")
}

/// Stores as the other engine does.
fn store(db: &Connection, thread: u64, ns: &str, id: &str) {
    let sql = "INSERT OR REPLACE INTO checkpoints VALUES (?1, ?2, ?3, NULL, 'msgpack', x'81a17604', \
               '{\"source\": \"loop\", \"step\": 1}')";
    db.execute(sql, params![format!("thread {thread}"), ns, id]).expect("stored");
}

fn heads(db: &Connection) -> Vec<(String, String)> {
    let sql = "SELECT thread_id, max(checkpoint_id) AS head FROM checkpoints \
               WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY head DESC, thread_id";
    let mut statement = db.prepare(sql).expect("SQL");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("rows");
    rows.collect::<Result<_, _>>().expect("texts")
}

/// All pages, one after the other.
async fn listed(saver: &SqliteSaver) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut query = ThreadQuery::new(3);
    loop {
        let page = saver.threads(query).await.expect("a page");
        assert!(page.threads.len() <= 3);
        let infos = page.threads.into_iter();
        all.extend(infos.map(|info| (info.thread.to_string(), info.head.to_string())));
        match page.next {
            Some(next) => query = ThreadQuery::new(3).after(next),
            None => return all,
        }
    }
}

#[tokio::test]
async fn whatever_was_stored_and_deleted() {
    for seed in 0..SEEDS {
        let dir = Dir::new();
        let saver = SqliteSaver::open(dir.file()).await.expect("a file");
        let db = Connection::open(dir.file()).expect("a file");
        let (mut dice, mut now) = (Dice(seed), 139_000_000_000_000_000);
        for nth in 0..200 {
            now += [1, 5_000, 4_000_000, 20_000_000, 300_000_000][dice.below(5) as usize];
            let thread = dice.below(8);
            match dice.below(10) {
                // As a writer whose clock is behind.
                0 => store(&db, thread, "", &id(now - dice.below(400_000_000), nth)),
                1 => store(&db, thread, "child:1", &id(now, nth)),
                2 => {
                    let newest = "DELETE FROM checkpoints WHERE rowid = (SELECT rowid FROM checkpoints \
                                  WHERE thread_id = ?1 ORDER BY checkpoint_id DESC LIMIT 1)";
                    db.execute(newest, [format!("thread {thread}")]).expect("deleted");
                }
                3 => {
                    let all = "DELETE FROM checkpoints WHERE thread_id = ?1 AND ?2 = 0";
                    let rarely = dice.below(4);
                    let key = params![format!("thread {thread}"), rarely as i64];
                    db.execute(all, key).expect("deleted");
                }
                _ => store(&db, thread, "", &id(now, nth)),
            }
            if nth % 10 == 9 {
                assert_eq!(listed(&saver).await, heads(&db), "seed {seed}, after {nth}");
            }
        }
    }
}

/// The list is not touched by supersteps that follow each other closely, which is what makes them cheap.
#[tokio::test]
async fn at_no_cost_for_most_supersteps() {
    let dir = Dir::new();
    drop(SqliteSaver::open(dir.file()).await.expect("a file"));
    let db = Connection::open(dir.file()).expect("a file");
    let moment = 139_000_000_000_000_000 >> 24 << 24;
    store(&db, 1, "", &id(moment, 1));
    let before = db.total_changes();
    for nth in 2..102 {
        store(&db, 1, "", &id(moment + nth * 100_000, nth));
    }
    assert_eq!(db.total_changes() - before, 100, "one row for each");
    store(&db, 1, "", &id(moment + (1 << 24), 102));
    assert_eq!(db.total_changes() - before, 103, "its row, and the list's gone and made");
}
