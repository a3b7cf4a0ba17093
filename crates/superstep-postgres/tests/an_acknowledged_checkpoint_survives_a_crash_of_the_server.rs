//! The server is killed in the middle of work, again and again. What a caller was told is stored must be there afterwards,
//! and nobody may be left with connections that no longer work.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Database, Line, blob};
use superstep_checkpoint::{CheckpointId, Checkpointer, Error, Query, TaskId, TaskWrites};
use superstep_postgres::{Options, PostgresSaver};
use superstep_testdb::Cluster;

const KILLS: usize = 20;
const WRITERS: usize = 4;

/// What a writer was told, for its thread.
#[derive(Default)]
struct Told {
    stored: Vec<CheckpointId>,
    claims: usize,
    errors: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledged_checkpoint_survives_a_crash_of_the_server() {
    let cluster = Arc::new(Mutex::new(Cluster::start().unwrap()));
    let server = cluster.lock().unwrap().url();
    let database = Database::at(&server).await;
    // Shorter than a crash takes occasionally, so that both ways out are seen: continuing, and an
    // error.
    let options =
        Options::new(database.url()).pool_size(3).reconnect_max(Duration::from_millis(700));
    let checkpointer = PostgresSaver::connect(options.clone()).await.unwrap();
    // The names of its statements are gone with the server.
    let prepared = PostgresSaver::connect(options.prepared()).await.unwrap();

    let done = Arc::new(AtomicBool::new(false));
    let stored = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let checkpointer = if n % 2 == 0 { &checkpointer } else { &prepared };
            tokio::spawn(write(checkpointer.clone(), n, done.clone(), stored.clone()))
        })
        .collect();
    for _ in 0..KILLS {
        // Until every writer has got on since the last crash, however fast the machine is.
        let goal = stored.load(Ordering::Relaxed) + WRITERS * 5;
        while stored.load(Ordering::Relaxed) < goal {
            tokio::task::yield_now().await;
        }
        let cluster = cluster.clone();
        let crash = move || {
            let mut cluster = cluster.lock().unwrap();
            cluster.kill()?;
            cluster.restart()
        };
        tokio::task::spawn_blocking(crash).await.unwrap().unwrap();
    }
    done.store(true, Ordering::Relaxed);

    let (mut all, mut errors) = (0, 0);
    for (n, writer) in writers.into_iter().enumerate() {
        let told = writer.await.unwrap();
        let thread: Arc<str> = thread(n).into();
        let query = Query { thread: Some(thread.clone()), ..Query::default() };
        let there = checkpointer.list(query).await.unwrap();
        for id in &told.stored {
            let found = there.iter().any(|stored| stored.checkpoint.id == *id);
            assert!(found, "{thread}: {id} was acknowledged and is gone");
        }
        let ids: Vec<_> = there.iter().map(|stored| Some(stored.checkpoint.id)).collect();
        for (nth, stored) in there.iter().enumerate() {
            let parent = ids.get(nth + 1).copied().flatten();
            assert_eq!(stored.parent, parent, "{thread} has forked");
            assert!(stored.checkpoint.value("list").is_some(), "a checkpoint has lost a value");
        }
        assert!(told.claims > 0);
        all += told.stored.len();
        errors += told.errors;
    }
    println!(
        "{all} checkpoints acknowledged over {KILLS} crashes, {errors} calls failed and were made again"
    );
    drop((checkpointer, prepared));
    drop(database);
}

fn thread(n: usize) -> String {
    format!("thread {n}")
}

/// Stores one checkpoint after the other and claims an answer beside each, and makes a call that failed again.
async fn write(
    checkpointer: PostgresSaver,
    n: usize,
    done: Arc<AtomicBool>,
    stored: Arc<AtomicUsize>,
) -> Told {
    let mut told = Told::default();
    let mut line = Line::new(&thread(n));
    while !done.load(Ordering::Relaxed) {
        let put = line.next(&[("list", blob([told.stored.len()])), ("text", blob("x"))]);
        let id = put.checkpoint.id;
        while let Err(error) = checkpointer.put(put.clone()).await {
            lost(&error);
            told.errors += 1;
            // What became of the call that failed does not matter for a second one.
            if checkpointer
                .get(&line.thread, "", Some(id))
                .await
                .is_ok_and(|stored| stored.is_some())
            {
                break;
            }
        }
        line.head = Some(id);
        told.stored.push(id);
        stored.fetch_add(1, Ordering::Relaxed);
        claim(&checkpointer, &line, id, &mut told).await;
    }
    told
}

/// Of two claims of one answer the first wins, also when the server crashes between them.
async fn claim(checkpointer: &PostgresSaver, line: &Line, id: CheckpointId, told: &mut Told) {
    let answer = |text: &str| {
        let writes = vec![("__resume__".into(), blob([text]))];
        vec![TaskWrites::new(TaskId::NULL, "", writes).expecting("__resume__", None)]
    };
    let mut unknown = false;
    loop {
        match checkpointer.put_writes(&line.thread, "", id, answer("first")).await {
            Ok(()) => break,
            Err(Error::Overtaken { .. }) if unknown => break,
            Err(error) => {
                lost(&error);
                told.errors += 1;
                unknown = true;
            }
        }
    }
    loop {
        match checkpointer.put_writes(&line.thread, "", id, answer("second")).await {
            Err(Error::Overtaken { .. }) => break,
            Err(error) => {
                lost(&error);
                told.errors += 1;
            }
            Ok(()) => panic!("two claims of one answer succeeded"),
        }
    }
    told.claims += 1;
}

/// The only thing a crash may lead to, besides success.
fn lost(error: &Error) {
    let text = error.to_string();
    assert!(text.contains("connection to PostgreSQL was lost"), "{error:?}");
}
