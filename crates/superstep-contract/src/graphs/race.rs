//! Processes race to answer one question, round after round. One of them continues, the others are
//! told, and no node of theirs has run.
//!
//! Each process is the test program again, told to run the same test only, and lives over all rounds. So the test first asks
//! whether it is one of them:
//!
//! ```no_run
//! # use superstep_checkpoint::MemorySaver;
//! # async fn open(place: &str) -> MemorySaver { MemorySaver::new() }
//! # async fn test() {
//! use superstep_contract::graphs::race;
//!
//! if let Some(place) = race::place() {
//!     return race::take_part(open(&place).await).await;
//! }
//! race::run("name_of_this_test", "where the storage is", open("there").await, race::rounds(50)).await;
//! # }
//! ```

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use superstep::prelude::*;
use superstep_checkpoint::Checkpointer;

const PLACE: &str = "SUPERSTEP_TEST_RACE_PLACE";
const ROUNDS: &str = "SUPERSTEP_TEST_ROUNDS";
const PROCESSES: usize = 64;

/// In a process that takes part: where the storage is.
pub fn place() -> Option<String> {
    std::env::var(PLACE).ok()
}

/// As many rounds as `SUPERSTEP_TEST_ROUNDS` says, or `default`.
pub fn rounds(default: usize) -> usize {
    std::env::var(ROUNDS).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[derive(State, Clone, Default)]
struct Notes {
    #[channel(reduce = Append)]
    lines: Vec<String>,
}

fn asking(ran: Arc<AtomicUsize>) -> StateGraph<Notes> {
    let node = move |task: Task| {
        let ran = ran.clone();
        async move {
            ran.fetch_add(1, Ordering::SeqCst);
            let answer: String = task.interrupt("go on?").await;
            Notes::update().lines([answer])
        }
    };
    StateGraph::new().add_node("ask", node).add_edge(START, "ask")
}

/// What each process does: for every name on its input, it answers the question of that thread.
///
/// # Panics
/// Its input is not text.
pub async fn take_part(checkpointer: impl Checkpointer) {
    let ran = Arc::new(AtomicUsize::new(0));
    let graph = asking(ran.clone()).compile().expect("a graph").with_checkpointer(checkpointer);
    println!("RACE ready");
    for name in std::io::stdin().lines() {
        let before = ran.load(Ordering::SeqCst);
        let name = name.expect("a name");
        let outcome = graph.thread(&*name).resume(std::process::id().to_string()).await;
        let runs = ran.load(Ordering::SeqCst) - before;
        match outcome {
            Ok(_) => println!("RACE won {runs}"),
            Err(RunError::Conflict { .. } | RunError::Resume { .. }) => {
                println!("RACE lost {runs}");
            }
            Err(other) => println!("RACE failed {runs} {other:?}"),
        }
    }
}

struct Racer {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Racer {
    fn start(test: &str, place: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut process = Command::new(program)
            .args(["--exact", test, "--nocapture"])
            .env(PLACE, place)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        let mut racer = Self { process, output };
        // One after the other, since opening storage may need more of it than using it.
        assert_eq!(racer.hear(), "ready");
        racer
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().expect("its input"), "{line}").expect("told");
    }

    fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("a line"), 0, "a process has ended");
            // The harness of tests prints on the same line.
            if let Some(at) = line.find("RACE ") {
                return line[at + 5..].trim().to_owned();
            }
        }
    }
}

impl Drop for Racer {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

/// Lets processes race on the storage at `place`, in which `checkpointer` asks a question for each round.
///
/// # Panics
/// A round has not exactly one winner, or a loser's node ran, or a process fails.
pub async fn run(test: &str, place: &str, checkpointer: impl Checkpointer, rounds: usize) {
    let graph = asking(Arc::default()).compile().expect("a graph").with_checkpointer(checkpointer);
    let mut racers: Vec<Racer> = (0..PROCESSES).map(|_| Racer::start(test, place)).collect();
    for round in 0..rounds {
        let name = format!("round {round}");
        let thread = graph.thread(&*name);
        thread.invoke(Notes::update()).await.expect("a run").interrupted().expect("a question");
        racers.iter_mut().for_each(|racer| racer.tell(&name));
        let heard: Vec<String> = racers.iter_mut().map(Racer::hear).collect();
        let won = heard.iter().filter(|heard| **heard == "won 1").count();
        let lost = heard.iter().filter(|heard| **heard == "lost 0").count();
        assert_eq!((won, lost), (1, PROCESSES - 1), "round {round}: {heard:?}");
    }
    println!("{rounds} rounds of {PROCESSES} processes");
}
