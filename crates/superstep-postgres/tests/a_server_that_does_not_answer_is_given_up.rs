//! A connection may be accepted and never answered: a proxy that hangs, a firewall that forgets. No
//! call waits for it forever. It continues with another connection, finds out what happened to what
//! it sent, and if there is no other, fails and says so.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::Duration;

use common::{Database, Line};
use superstep::prelude::*;
use superstep::{CompiledGraph, Outcome};
use superstep_checkpoint::{Blob, Checkpointer, Error};
use superstep_postgres::{Options, PostgresSaver};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// Long enough for a server that answers; what waits for one that does not waits this long.
const DEADLINE: Duration = Duration::from_millis(500);

const PASS: u8 = 0;
/// Nothing that is sent reaches the server.
const HOLD_REQUESTS: u8 = 1;
/// What is sent reaches the server, and no answer comes back.
const HOLD_ANSWERS: u8 = 2;

/// Stands in front of the server. A connection that was held once stays silent; others may pass again.
struct Proxy {
    url: String,
    mode: Arc<AtomicU8>,
    held: Arc<Notify>,
}

impl Proxy {
    async fn new(database: &Database) -> Self {
        let url = database.url();
        let (before, rest) = url.split_once('@').unwrap_or_else(|| {
            let (scheme, rest) = url.split_once("//").expect("a URL");
            (&url[..scheme.len() + 2], rest)
        });
        let (server, after) = rest.split_once('/').expect("a database");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let at = if before.ends_with('/') { "" } else { "@" };
        let url = format!("{before}{at}127.0.0.1:{port}/{after}");
        let proxy = Self { url, mode: Arc::default(), held: Arc::default() };
        let (mode, held, server) = (proxy.mode.clone(), proxy.held.clone(), server.to_owned());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = TcpStream::connect(&server).await.expect("the server");
                let ((from_near, to_near), (from_far, to_far)) =
                    (near.into_split(), far.into_split());
                let pass = |hold| Pass { hold, mode: mode.clone(), held: held.clone() };
                tokio::spawn(pass(HOLD_REQUESTS).run(from_near, to_far));
                tokio::spawn(pass(HOLD_ANSWERS).run(from_far, to_near));
            }
        });
        proxy
    }

    fn options(&self) -> Options {
        Options::new(&self.url).connect_max(DEADLINE).answer_max(DEADLINE)
    }

    fn set(&self, mode: u8) {
        self.mode.store(mode, Ordering::SeqCst);
    }

    /// Does something while the first connection that is used falls silent, and all others answer.
    async fn while_one_is_held<T>(&self, mode: u8, work: impl Future<Output = T>) -> T {
        self.set(mode);
        let mend = async {
            self.held.notified().await;
            self.set(PASS);
        };
        let (done, ()) = tokio::join!(work, mend);
        done
    }
}

/// One direction of a connection.
struct Pass {
    /// The mode in which nothing passes.
    hold: u8,
    mode: Arc<AtomicU8>,
    held: Arc<Notify>,
}

impl Pass {
    async fn run(self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let mut buffer = vec![0; 65_536];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            if self.mode.load(Ordering::SeqCst) == self.hold {
                self.held.notify_one();
                // The sockets stay open, and nothing comes out of them any more.
                std::future::pending::<()>().await;
            }
            if to.write_all(&buffer[..count]).await.is_err() {
                return;
            }
        }
    }
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[track_caller]
fn says(error: &(dyn std::error::Error + 'static), parts: &[&str]) {
    let text = chain(error);
    for part in parts {
        assert!(text.contains(part), "{text:?} should say {part:?}");
    }
}

fn value(n: i64) -> Blob {
    Blob::encode(&n).expect("a blob")
}

#[tokio::test]
async fn when_connecting() {
    let database = Database::new().await;
    drop(database.checkpointer().await);
    for mode in [HOLD_REQUESTS, HOLD_ANSWERS] {
        let proxy = Proxy::new(&database).await;
        proxy.set(mode);
        let options = proxy.options().reconnect_max(Duration::ZERO);
        let error = PostgresSaver::connect(options.clone()).await.expect_err("silence");
        says(&error, &["PostgreSQL", "did not answer within"]);
        let error = PostgresSaver::connect_existing(options).await.expect_err("silence");
        says(&error, &["PostgreSQL", "did not answer within"]);
    }
}

#[tokio::test]
async fn when_reading() {
    let database = Database::new().await;
    for mode in [HOLD_REQUESTS, HOLD_ANSWERS] {
        let proxy = Proxy::new(&database).await;
        let checkpointer = PostgresSaver::connect(proxy.options()).await.expect("a checkpointer");
        let thread = format!("t{mode}");
        let put = Line::new(&thread).next(&[("n", value(1))]);
        checkpointer.put(put.clone()).await.expect("stored");
        let read = proxy.while_one_is_held(mode, checkpointer.get(&thread, "", None)).await;
        assert_eq!(read.expect("read").expect("a head").checkpoint.id, put.checkpoint.id);

        let impatient = proxy.options().reconnect_max(Duration::ZERO);
        let checkpointer = PostgresSaver::connect(impatient).await.expect("a checkpointer");
        checkpointer.get(&thread, "", None).await.expect("read");
        proxy.set(mode);
        let error = checkpointer.get(&thread, "", None).await.expect_err("silence");
        says(&error, &[&format!("`{thread}`"), "did not answer within"]);
        proxy.set(PASS);
        checkpointer.get(&thread, "", None).await.expect("read, once there is an answer");
    }
}

/// Whether the server got it or not, it is stored once.
#[tokio::test]
async fn when_storing() {
    let database = Database::new().await;
    for mode in [HOLD_REQUESTS, HOLD_ANSWERS] {
        let proxy = Proxy::new(&database).await;
        let checkpointer = PostgresSaver::connect(proxy.options()).await.expect("a checkpointer");
        let mut line = Line::new(&format!("t{mode}"));
        for n in 0..3 {
            let put = line.next(&[("n", value(n))]);
            let id = put.checkpoint.id;
            if n == 1 {
                proxy
                    .while_one_is_held(mode, checkpointer.put(put))
                    .await
                    .expect("found out and stored");
            } else {
                checkpointer.put(put).await.expect("stored");
            }
            line.head = Some(id);
            let head =
                checkpointer.get(&line.thread, "", None).await.expect("read").expect("a head");
            assert_eq!(head.checkpoint.id, id);
        }
    }
}

/// If nobody ever answers, the error says what is not known; what the server got is there later.
#[tokio::test]
async fn when_storing_and_nobody_ever_answers() {
    let database = Database::new().await;
    let direct = database.checkpointer().await;
    for (mode, stored) in [(HOLD_REQUESTS, false), (HOLD_ANSWERS, true)] {
        let proxy = Proxy::new(&database).await;
        let options = proxy.options().reconnect_max(Duration::ZERO);
        let checkpointer = PostgresSaver::connect(options).await.expect("a checkpointer");
        let thread = format!("t{mode}");
        checkpointer.get(&thread, "", None).await.expect("a connection to be used again");
        let put = Line::new(&thread).next(&[("n", value(1))]);
        proxy.set(mode);
        let error = checkpointer.put(put.clone()).await.expect_err("silence");
        says(&error, &[&format!("`{thread}`"), "not known", "did not answer within"]);
        let found = direct.get(&thread, "", None).await.expect("read");
        assert_eq!(found.is_some(), stored);
        proxy.set(PASS);
        // Asked for again it is stored once, or found.
        let again = checkpointer.put(put.clone()).await;
        assert!(again.is_ok() || matches!(again, Err(Error::Conflict { .. })), "{again:?}");
        let found = direct.get(&thread, "", None).await.expect("read").expect("a head");
        assert_eq!(found.checkpoint.id, put.checkpoint.id);
    }
}

#[derive(State, Clone, Default, Debug)]
struct Log {
    #[channel(reduce = Append)]
    lines: Vec<String>,
}

#[derive(Clone, Default)]
struct Ran(Arc<AtomicU32>);

fn graph(checkpointer: PostgresSaver, ran: &Ran) -> CompiledGraph<Log> {
    let step = |name: &'static str| {
        move |Ctx(ran): Ctx<Ran>| async move {
            ran.0.fetch_add(1, Ordering::SeqCst);
            Log::update().lines([name.to_owned()])
        }
    };
    StateGraph::<Log>::new()
        .add_node("a", step("a"))
        .add_node("ask", |task: Task| async move {
            let answer = task.interrupt::<String>("go on?").await;
            Log::update().lines([answer])
        })
        .add_node("b", step("b"))
        .add_edge(START, "a")
        .add_edge("a", "ask")
        .add_edge("ask", "b")
        .compile()
        .expect("a graph")
        .with_checkpointer(checkpointer)
        .with_context(ran.clone())
}

/// A run whose commit is not answered finds out and continues: no node runs twice, and no answer is
/// lost.
#[tokio::test]
async fn when_a_run_stores() {
    let database = Database::new().await;
    for mode in [HOLD_REQUESTS, HOLD_ANSWERS] {
        let proxy = Proxy::new(&database).await;
        let checkpointer = PostgresSaver::connect(proxy.options()).await.expect("a checkpointer");
        checkpointer.get("any", "", None).await.expect("a connection to be used again");
        let ran = Ran::default();
        let thread = graph(checkpointer, &ran).thread(format!("t{mode}"));
        let input = Log::update().lines(["in".to_owned()]);
        let run = proxy.while_one_is_held(mode, thread.invoke(input).into_future()).await;
        assert!(matches!(run, Ok(Outcome::Interrupted(_))), "{run:?}");
        let run = proxy.while_one_is_held(mode, thread.resume("yes").into_future()).await;
        let Ok(Outcome::Done(log)) = run else { panic!("it should be done: {run:?}") };
        assert_eq!(log.lines, ["in", "a", "yes", "b"]);
        assert_eq!(ran.0.load(Ordering::SeqCst), 2);
    }
}

/// A run that never gets an answer ends with an error that names its thread, and continues later.
#[tokio::test]
async fn when_a_run_stores_and_nobody_ever_answers() {
    let database = Database::new().await;
    for mode in [HOLD_REQUESTS, HOLD_ANSWERS] {
        let proxy = Proxy::new(&database).await;
        let options = proxy.options().reconnect_max(Duration::ZERO);
        let checkpointer = PostgresSaver::connect(options).await.expect("a checkpointer");
        checkpointer.get("any", "", None).await.expect("a connection to be used again");
        let ran = Ran::default();
        let thread = graph(checkpointer, &ran).thread(format!("t{mode}"));
        let input = || Log::update().lines(["in".to_owned()]);
        proxy.set(mode);
        let error = thread.invoke(input()).await.expect_err("silence");
        says(&error, &[&format!("`t{mode}`"), "did not answer within"]);
        proxy.set(PASS);
        let begun = thread.get_state().await.expect("a look").metadata.is_some();
        let run = if begun { thread.invoke(()).await } else { thread.invoke(input()).await };
        assert!(matches!(run, Ok(Outcome::Interrupted(_))), "{run:?}");
        let run = thread.resume("yes").await;
        let Ok(Outcome::Done(log)) = run else { panic!("it should be done: {run:?}") };
        assert_eq!(log.lines, ["in", "a", "yes", "b"]);
    }
}

/// In a test whose clock jumps whenever everything waits, a server that answers is not given up.
#[tokio::test(start_paused = true)]
async fn but_not_by_a_clock_that_jumps() {
    let database = Database::new().await;
    let checkpointer = database.checkpointer().await;
    let put = Line::new("t").next(&[("n", value(1))]);
    checkpointer.put(put.clone()).await.expect("stored");
    let head = checkpointer.get("t", "", None).await.expect("read").expect("a head");
    assert_eq!(head.checkpoint.id, put.checkpoint.id);
}
