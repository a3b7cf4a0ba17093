//! Sixty-four processes race to answer one question, round after round. One of them goes on, the others are told, and no
//! node of theirs has run.
//!
//! Fifty rounds, or as many as `SUPERSTEP_TEST_ROUNDS` says (a thousand for the full count). The processes live over all
//! rounds; each is this program again.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use common::Database;
use superstep::prelude::*;
use superstep_postgres::{Options, PostgresSaver};

const URL: &str = "SUPERSTEP_TEST_RACE_URL";
const PROCESSES: usize = 64;

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

async fn saver(url: &str) -> PostgresSaver {
    PostgresSaver::connect(Options::new(url).pool_size(1)).await.expect("the server")
}

/// What each process does: for every name on its input, it answers the question of that thread.
async fn answer_each(url: &str) {
    let ran = Arc::new(AtomicUsize::new(0));
    let graph = asking(ran.clone()).compile().expect("a graph").with_checkpointer(saver(url).await);
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
    fn start(url: &str) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut process = Command::new(program)
            .args(["--exact", "of_many_processes_that_answer_one_goes_on", "--nocapture"])
            .env(URL, url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = BufReader::new(process.stdout.take().expect("its output"));
        Self { process, output }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.process.stdin.as_mut().expect("its input"), "{line}").expect("told");
    }

    fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).expect("a line"), 0, "a process has ended");
            // The harness prints on the same line.
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

#[tokio::test(flavor = "multi_thread")]
async fn of_many_processes_that_answer_one_goes_on() {
    if let Ok(url) = std::env::var(URL) {
        return answer_each(&url).await;
    }
    let rounds = std::env::var("SUPERSTEP_TEST_ROUNDS").ok().and_then(|text| text.parse().ok());
    let rounds: usize = rounds.unwrap_or(50);
    let database = Database::new().await;
    let url = database.url();
    let graph = asking(Arc::default()).compile().expect("a graph");
    let graph = graph.with_checkpointer(saver(&url).await);
    // One after the other, since each needs more than one connection while it starts.
    let start = |_| {
        let mut racer = Racer::start(&url);
        assert_eq!(racer.hear(), "ready");
        racer
    };
    let mut racers: Vec<Racer> = (0..PROCESSES).map(start).collect();
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
