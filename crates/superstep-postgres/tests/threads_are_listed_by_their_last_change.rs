//! The list of threads is in the order of their heads, whoever stored or deleted them, and however much time lies between. It is
//! kept by triggers that do not look at every checkpoint; here it is compared with the checkpoints themselves. A database that
//! is not ours to change has the same list, only slower.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use common::Database;
use superstep_checkpoint::{Checkpointer, ThreadQuery};
use superstep_postgres::PostgresSaver;
use tokio_postgres::Client;

const SEEDS: u64 = 3;

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
async fn store(client: &Client, thread: u64, ns: &str, id: &str) {
    let sql = "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, checkpoint, metadata)
        VALUES ($1, $2, $3, '{\"v\": 4}', '{\"source\": \"loop\", \"step\": 1}')
        ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE SET metadata = EXCLUDED.metadata";
    client.execute(sql, &[&format!("thread {thread}"), &ns, &id]).await.unwrap();
}

async fn heads(client: &Client) -> Vec<(String, String)> {
    let sql = "SELECT thread_id, max(checkpoint_id) AS head FROM checkpoints
        WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY head DESC, thread_id";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// All pages, one after the other.
async fn listed(saver: &PostgresSaver) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut query = ThreadQuery::new(3);
    loop {
        let page = saver.threads(query).await.unwrap();
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
        let database = Database::new().await;
        let (saver, client) = (database.saver().await, database.client().await);
        let (mut dice, mut now) = (Dice(seed), 139_000_000_000_000_000);
        for nth in 0..150 {
            now += [1, 5_000, 4_000_000, 20_000_000, 300_000_000][dice.below(5) as usize];
            let thread = dice.below(8);
            let name = format!("thread {thread}");
            match dice.below(10) {
                // As a writer whose clock is behind.
                0 => store(&client, thread, "", &id(now - dice.below(400_000_000), nth)).await,
                1 => store(&client, thread, "child:1", &id(now, nth)).await,
                2 => {
                    let newest =
                        "DELETE FROM checkpoints WHERE thread_id = $1 AND checkpoint_id = (
                        SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = $1)";
                    client.execute(newest, &[&name]).await.unwrap();
                }
                3 if dice.below(4) == 0 => saver.delete_thread(&name).await.unwrap(),
                4 if dice.below(4) == 0 => {
                    let to = format!("thread {}", 8 + dice.below(3));
                    // Nothing is copied over a thread that is there.
                    let _ = saver.copy_thread(&name, &to).await;
                }
                _ => store(&client, thread, "", &id(now, nth)).await,
            }
            if nth % 10 == 9 {
                assert_eq!(listed(&saver).await, heads(&client).await, "seed {seed}, after {nth}");
            }
        }
    }
}

/// The list is not touched by supersteps that follow each other closely, which is what makes them cheap.
#[tokio::test]
async fn at_little_cost_for_most_supersteps() {
    let database = Database::new().await;
    let (_saver, client) = (database.saver().await, database.client().await);
    let version = async || -> String {
        let sql = "SELECT xmin::text FROM superstep_threads WHERE thread_id = 'thread 1'";
        client.query_one(sql, &[]).await.unwrap().get(0)
    };
    let moment = 139_000_000_000_000_000 >> 24 << 24;
    store(&client, 1, "", &id(moment, 1)).await;
    let before = version().await;
    for nth in 2..42 {
        store(&client, 1, "", &id(moment + nth * 100_000, nth)).await;
    }
    assert_eq!(version().await, before, "nothing was written");
    store(&client, 1, "", &id(moment + (1 << 24), 102)).await;
    assert_ne!(version().await, before);
}

/// Threads that were there before the list, a writer who finds the tables on another path, and whoever may not add anything.
#[tokio::test]
async fn in_a_database_of_somebody_else() {
    let database = Database::new().await;
    let client = database.client().await;
    drop(database.saver().await);
    let as_it_was = "DROP TABLE superstep_threads, superstep_schema;
        DROP FUNCTION superstep_head_added, superstep_heads_removed CASCADE";
    client.batch_execute(as_it_was).await.unwrap();
    for nth in 1..6 {
        store(&client, nth % 3, "", &id(139_000_000_000_000_000 + nth * 30_000_000, nth)).await;
    }
    let walked = PostgresSaver::connect_existing(database.url()).await.unwrap();
    assert_eq!(listed(&walked).await, heads(&client).await);

    let name = format!("guest_{}", uuid::Uuid::new_v4().simple());
    let guest = format!(
        "CREATE ROLE {name} LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {name}"
    );
    client.batch_execute(&guest).await.unwrap();
    let url = database.url().replacen("postgres@", &format!("{name}@"), 1);
    let as_guest = PostgresSaver::connect(url).await.unwrap();
    assert_eq!(listed(&as_guest).await, heads(&client).await);

    let kept = database.saver().await;
    assert_eq!(listed(&kept).await, heads(&client).await);
    // A table of that name that only the guest sees is not the list.
    let write = format!(
        "SET ROLE {name}; CREATE TEMP TABLE superstep_threads (thread_id text, moment text)"
    );
    client.batch_execute(&write).await.unwrap();
    store(&client, 6, "", &id(139_000_000_000_000_000 + 800_000_000, 8)).await;
    store(&client, 6, "", &id(139_000_000_000_000_000 + 850_000_000, 8)).await;
    let newest = "DELETE FROM checkpoints WHERE thread_id = 'thread 6' AND checkpoint_id > $1";
    client.execute(newest, &[&id(139_000_000_000_000_000 + 800_000_000, 9)]).await.unwrap();
    client.batch_execute("RESET ROLE; DROP TABLE pg_temp.superstep_threads").await.unwrap();
    assert_eq!(listed(&kept).await, heads(&client).await);
    assert_eq!(heads(&client).await[0].0, "thread 6");
    drop(as_guest);
    client.batch_execute(&format!("DROP OWNED BY {name}; DROP ROLE {name}")).await.unwrap();

    client.batch_execute("CREATE SCHEMA other; SET search_path TO other, public").await.unwrap();
    store(&client, 7, "", &id(139_000_000_000_000_000 + 900_000_000, 9)).await;
    client.batch_execute("SET search_path TO other").await.unwrap();
    let sql = "INSERT INTO public.checkpoints (thread_id, checkpoint_id, checkpoint) VALUES ($1, $2, '{\"v\": 4}')";
    let newest = id(139_000_000_000_000_000 + 990_000_000, 10);
    client.execute(sql, &[&"thread 8", &newest]).await.unwrap();
    client.batch_execute("SET search_path TO public").await.unwrap();
    assert_eq!(listed(&kept).await, heads(&client).await);
    assert_eq!(heads(&client).await[0].1, newest);
}
