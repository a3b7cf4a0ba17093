//! What is asked of a server, and how fast it answers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use tokio::task::JoinSet;

use super::client::Connection;
use super::served::Process;
use crate::failure::Failure;

/// A run of the graph with one node.
const RUN: &str = r#"{"assistant_id":"one","input":{"count":1}}"#;

/// How many answers a second, and how long each took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rate {
    pub(crate) per_second: f64,
    /// In ascending order.
    took: Vec<Duration>,
}

impl Rate {
    /// The time that this share of answers did not exceed, in milliseconds.
    pub(crate) fn millis(&self, share: f64) -> f64 {
        let at = (self.took.len() as f64 * share) as usize;
        let at = at.min(self.took.len().saturating_sub(1));
        self.took.get(at).map_or(f64::NAN, |took| took.as_secs_f64() * 1e3)
    }
}

/// Asks the same again and again, as this many clients, for this long.
pub(crate) async fn ask(
    address: SocketAddr,
    clients: usize,
    time: Duration,
    path: &'static str,
    body: &'static str,
) -> Result<Rate, Failure> {
    let mut all = JoinSet::new();
    let began = Instant::now();
    for _ in 0..clients {
        all.spawn(async move {
            let mut connection = Connection::open(address).await?;
            let mut took = Vec::new();
            while began.elapsed() < time {
                let asked = Instant::now();
                connection.good("POST", path, body).await?;
                took.push(asked.elapsed());
            }
            Ok::<_, Failure>(took)
        });
    }
    let mut took = Vec::new();
    while let Some(one) = all.join_next().await {
        took.extend(one??);
    }
    let per_second = took.len() as f64 / began.elapsed().as_secs_f64();
    took.sort_unstable();
    Ok(Rate { per_second, took })
}

pub(crate) async fn runs(
    address: SocketAddr,
    clients: usize,
    time: Duration,
) -> Result<Rate, Failure> {
    ask(address, clients, time, "/runs/wait", RUN).await
}

pub(crate) async fn threads(address: SocketAddr, time: Duration) -> Result<Rate, Failure> {
    ask(address, 16, time, "/threads", "{}").await
}

async fn create(connection: &mut Connection, path: &str, body: &Json) -> Result<Json, Failure> {
    Ok(serde_json::from_slice(&connection.good("POST", path, &body.to_string()).await?)?)
}

fn text<'a>(json: &'a Json, key: &str) -> Result<&'a str, Failure> {
    Ok(json[key].as_str().ok_or_else(|| format!("no `{key}` in {json}"))?)
}

/// From the request for a stream to its first event, one client after the other.
pub(crate) async fn first_event(address: SocketAddr, count: usize) -> Result<Rate, Failure> {
    let mut took = Vec::new();
    let mut connection = Connection::open(address).await?;
    for _ in 0..count {
        let asked = Instant::now();
        connection.send("POST", "/runs/stream", RUN).await?;
        connection.chunk().await?.ok_or("a stream without an event")?;
        took.push(asked.elapsed());
        while connection.chunk().await?.is_some() {}
    }
    took.sort_unstable();
    Ok(Rate { per_second: f64::NAN, took })
}

/// A run on a thread of its own that begins in a second. The path of its stream.
async fn run_to_join(address: SocketAddr, graph: &str, input: Json) -> Result<String, Failure> {
    let mut connection = Connection::open(address).await?;
    let thread = create(&mut connection, "/threads", &json!({})).await?;
    let runs = format!("/threads/{}/runs", text(&thread, "thread_id")?);
    let wanted = json!({
        "assistant_id": graph, "input": input, "stream_mode": "custom", "after_seconds": 1,
    });
    let run = create(&mut connection, &runs, &wanted).await?;
    Ok(format!("{runs}/{}/stream", text(&run, "run_id")?))
}

/// Readers that wait for a run which tells nothing.
pub(crate) struct Readers(#[expect(dead_code, reason = "they are open")] Vec<Connection>);

pub(crate) async fn idle(address: SocketAddr, count: usize) -> Result<Readers, Failure> {
    let path = run_to_join(address, "hold", json!({ "count": 0 })).await?;
    let mut readers = Vec::new();
    for _ in 0..count {
        let mut connection = Connection::open(address).await?;
        let head = connection.send("GET", &path, "").await?;
        if head.status != 200 {
            return Err(format!("a reader was answered with {}", head.status).into());
        }
        readers.push(connection);
    }
    Ok(Readers(readers))
}

/// Readers that stop reading, while a run tells this much.
pub(crate) async fn stalled(
    process: &Process,
    count: usize,
    frames: usize,
) -> Result<Option<f64>, Failure> {
    let path = run_to_join(process.address, "frames", json!({ "frames": frames })).await?;
    let mut readers = Vec::new();
    for _ in 0..count {
        let mut connection = Connection::open(process.address).await?;
        connection.send("GET", &path, "").await?;
        readers.push(connection);
    }
    let mut last = Connection::open(process.address).await?;
    let join = path.replace("/stream", "/join");
    last.good("GET", &join, "").await?;
    Ok(process.memory())
}

/// Frames a second that readers of one run get together.
pub(crate) async fn frames(
    address: SocketAddr,
    readers: usize,
    frames: usize,
) -> Result<f64, Failure> {
    let path = run_to_join(address, "frames", json!({ "frames": frames })).await?;
    let mut all = JoinSet::new();
    for _ in 0..readers {
        let mut connection = Connection::open(address).await?;
        connection.send("GET", &path, "").await?;
        all.spawn(async move {
            let (mut seen, mut began) = (0, None);
            while let Some(chunk) = connection.chunk().await? {
                began.get_or_insert_with(Instant::now);
                seen += chunk.windows(7).filter(|part| *part == b"event: ").count();
            }
            Ok::<_, Failure>((seen, began.unwrap_or_else(Instant::now)))
        });
    }
    let (mut seen, mut first) = (0, None::<Instant>);
    while let Some(one) = all.join_next().await {
        let (frames, began) = one??;
        seen += frames;
        first = Some(first.map_or(began, |first| first.min(began)));
    }
    if seen < readers * frames {
        return Err(format!("{seen} of {} frames came", readers * frames).into());
    }
    Ok(seen as f64 / first.map_or(f64::NAN, |first| first.elapsed().as_secs_f64()))
}
