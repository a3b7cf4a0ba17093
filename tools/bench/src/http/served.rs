//! The processes that are measured: ours, the reference, and the floor.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State as Shared;
use axum::routing::{get, post};
use superstep::prelude::*;
use superstep_server::{Database, Server};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use super::client::Connection;
use crate::failure::Failure;

/// What serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Who {
    /// This engine's server.
    Ours,
    /// The stock server of the reference.
    Theirs,
    /// One commit for each request, and nothing else.
    Floor,
}

#[derive(State, Clone, Default)]
struct Count {
    #[channel(reduce = Sum)]
    count: i64,
    frames: i64,
}

async fn add() -> CountUpdate {
    Count::update().count(1)
}

async fn tell(state: std::sync::Arc<Count>, task: Task) -> CountUpdate {
    for n in 0..state.frames {
        task.emit(n);
        tokio::task::yield_now().await;
    }
    Count::update().count(1)
}

/// Answers only when it is cancelled.
async fn hold() -> CountUpdate {
    std::future::pending().await
}

/// Serves on this port until it is killed.
pub(crate) async fn serve(who: Who, port: u16, db: &Path, workers: usize) -> Result<(), Failure> {
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let listener = TcpListener::bind(address).await?;
    match who {
        Who::Floor => Ok(axum::serve(listener, floor(db)?).await?),
        Who::Theirs => Err("the reference serves itself".into()),
        Who::Ours => {
            let one = StateGraph::<Count>::new().add_node("add", add).add_edge(START, "add");
            let told = StateGraph::<Count>::new().add_node("tell", tell).add_edge(START, "tell");
            let held = StateGraph::<Count>::new().add_node("hold", hold).add_edge(START, "hold");
            let server = Server::new()
                .graph("one", one.compile()?)
                .graph("frames", told.compile()?)
                .graph("hold", held.compile()?)
                .database(Database::Sqlite(db.to_owned()))
                .workers(workers);
            let running = server.start().await?;
            let never = std::future::pending();
            Ok(running.serve(listener, never, Duration::from_secs(1)).await?)
        }
    }
}

type Commits = mpsc::UnboundedSender<oneshot::Sender<()>>;

/// A handler that waits for one commit, in a transaction with whatever else waits.
fn floor(db: &Path) -> Result<Router, Failure> {
    let connection = rusqlite::Connection::open(db)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch("CREATE TABLE rows (id INTEGER PRIMARY KEY, body TEXT)")?;
    let (commits, mut queue) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    std::thread::spawn(move || -> rusqlite::Result<()> {
        while let Some(first) = queue.blocking_recv() {
            let mut waiting = vec![first];
            while let Ok(next) = queue.try_recv() {
                waiting.push(next);
            }
            connection.execute_batch("BEGIN IMMEDIATE")?;
            for _ in &waiting {
                let row = "INSERT INTO rows (body) VALUES ('{\"count\":1}')";
                connection.prepare_cached(row)?.execute([])?;
            }
            connection.execute_batch("COMMIT")?;
            for one in waiting {
                // Whoever asked may have left.
                let _ = one.send(());
            }
        }
        Ok(())
    });
    let commit = async |Shared(commits): Shared<Commits>| {
        let (done, is_done) = oneshot::channel();
        let sent = commits.send(done).is_ok() && is_done.await.is_ok();
        if sent { "{\"count\":1}" } else { "{\"__error__\":\"no commit\"}" }
    };
    Ok(Router::new()
        .route("/ok", get(async || "{}"))
        .route("/runs/wait", post(commit))
        .with_state(commits))
}

/// A process that serves. It is killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) address: SocketAddr,
    /// From its start to its first good answer.
    pub(crate) ready: Duration,
}

impl Process {
    pub(crate) async fn start(who: Who, dir: &Path, workers: usize) -> Result<Self, Failure> {
        let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let port = address.port().to_string();
        let mut command = match who {
            Who::Theirs => reference(&port, workers, dir)?,
            Who::Ours | Who::Floor => {
                let mut command = Command::new(std::env::current_exe()?);
                let db = dir.join(format!("{port}.db"));
                let who = if who == Who::Ours { "ours" } else { "floor" };
                command.args(["serve", who, "--port", &port, "--db"]).arg(db);
                command.args(["--workers", &workers.to_string()]);
                command
            }
        };
        let log = std::fs::File::create(dir.join(format!("{port}.log")))?;
        command.stdout(log.try_clone()?).stderr(log).stdin(Stdio::null());
        let began = Instant::now();
        let child = command.spawn()?;
        let mut process = Self { child, address, ready: Duration::ZERO };
        loop {
            if let Ok(mut connection) = Connection::open(address).await
                && connection.good("GET", "/ok", "").await.is_ok()
            {
                process.ready = began.elapsed();
                return Ok(process);
            }
            if let Some(ended) = process.child.try_wait()? {
                return Err(format!("the server ended with {ended}; see {}", dir.display()).into());
            }
            if began.elapsed() > Duration::from_secs(120) {
                return Err(format!("the server does not answer; see {}", dir.display()).into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// What the process holds in memory, in MiB, where the system says so.
    pub(crate) fn memory(&self) -> Option<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The stock server, in the virtual environment that `SUPERSTEP_BENCH_LANGGRAPH` names.
fn reference(port: &str, workers: usize, dir: &Path) -> Result<Command, Failure> {
    let venv = std::env::var_os("SUPERSTEP_BENCH_LANGGRAPH").map(PathBuf::from);
    let venv = venv.ok_or("SUPERSTEP_BENCH_LANGGRAPH names no environment with langgraph-cli")?;
    let mut command = Command::new(venv.join("bin/langgraph"));
    // It writes its state beside its graph.
    let place = dir.join(port);
    std::fs::create_dir_all(&place)?;
    for file in ["graph.py", "langgraph.json"] {
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/served").join(file);
        std::fs::copy(own, place.join(file))?;
    }
    command.current_dir(place);
    command.args(["dev", "--no-browser", "--no-reload", "--port", port]);
    command.args(["--n-jobs-per-worker", &workers.to_string()]);
    command.env("LANGGRAPH_CLI_NO_ANALYTICS", "1").env("LANGSMITH_TRACING", "false");
    Ok(command)
}
