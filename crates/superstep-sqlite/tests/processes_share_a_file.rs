//! Several processes have one file open: they set it up at the same time, extend the same thread without a fork, and one
//! that is killed loses nothing it was told was stored.
//!
//! The other processes are this test binary again, told by a variable what to be.

mod world;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use superstep_checkpoint::{CheckpointId, Checkpointer, Error, Query};
use superstep_sqlite::SqliteSaver;
use world::{Dir, Line};

const ROLE: &str = "SUPERSTEP_TEST_ROLE";
const FILE: &str = "SUPERSTEP_TEST_FILE";
/// Until killed, by a process that does not wait for the disk.
const RELAXED: &str = "relaxed, until killed";
const ROUNDS: usize = 25;

fn start(role: &str, file: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "as_another_process", "--nocapture"])
        .env(ROLE, role)
        .env(FILE, file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// Not a test by itself: what the other processes do.
#[tokio::test]
async fn as_another_process() {
    let (Ok(role), Ok(file)) = (std::env::var(ROLE), std::env::var(FILE)) else { return };
    let mut checkpointer = SqliteSaver::open(file).await.expect("a file");
    if role == RELAXED {
        checkpointer = checkpointer.relaxed().expect("a way not to wait for the disk");
    }
    let mut line = Line::new("shared");
    let mut stored = 0;
    while role == "until killed" || role == RELAXED || stored < ROUNDS {
        let head = checkpointer.get("shared", "", None).await.expect("read");
        line.head = head.map(|head| head.checkpoint.id);
        let put = line.next();
        let id = put.checkpoint.id;
        match checkpointer.put(put).await {
            Ok(()) => {
                stored += 1;
                println!("\nstored {id}");
            }
            Err(Error::Conflict { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// The thread as it should be: one line, no fork.
async fn line_of(checkpointer: &SqliteSaver) -> Vec<CheckpointId> {
    let query = Query { thread: Some("shared".into()), ..Query::default() };
    let stored = checkpointer.list(query).await.expect("a list");
    for pair in stored.windows(2) {
        assert_eq!(pair[0].parent, Some(pair[1].checkpoint.id), "a fork");
    }
    assert_eq!(stored.last().and_then(|first| first.parent), None);
    stored.iter().map(|stored| stored.checkpoint.id).collect()
}

#[tokio::test]
async fn processes_extend_one_thread_without_a_fork() {
    let dir = Dir::new();
    let children: Vec<_> = (0..4).map(|_| start("some", &dir.file())).collect();
    for child in children {
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    assert_eq!(line_of(&checkpointer).await.len(), 4 * ROUNDS);
}

#[tokio::test]
async fn a_process_that_is_killed_loses_nothing_it_was_told_was_stored() {
    let dir = Dir::new();
    for role in ["until killed", "until killed", RELAXED, RELAXED, "until killed"] {
        let mut child = start(role, &dir.file());
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let told = output
            .lines()
            .filter_map(|line| line.ok()?.strip_prefix("stored ")?.parse::<CheckpointId>().ok());
        let told: Vec<_> = told.take(20).collect();
        child.kill().expect("killed");
        child.wait().expect("an end");
        let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
        let stored = line_of(&checkpointer).await;
        for id in told {
            assert!(stored.contains(&id), "{id} is lost");
        }
    }
}
