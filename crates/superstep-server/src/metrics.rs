//! Figures about the server, for operators.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::{Value as Json, json};

use crate::store::RunStatus;

/// Upper bounds of what is counted together, in microseconds, and as Prometheus shows them.
const BOUNDS: [(u64, &str); 8] = [
    (1_000, "0.001"),
    (5_000, "0.005"),
    (25_000, "0.025"),
    (100_000, "0.1"),
    (500_000, "0.5"),
    (2_500_000, "2.5"),
    (10_000_000, "10"),
    (60_000_000, "60"),
];

/// How often something was done, and how long it took.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Timing {
    pub(crate) fn add(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.count.fetch_add(1, Relaxed);
        self.micros.fetch_add(micros, Relaxed);
        if let Some(at) = BOUNDS.iter().position(|(bound, _)| micros <= *bound) {
            self.buckets[at].fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    fn write(&self, text: &mut String, name: &str, labels: &str) -> fmt::Result {
        let comma = if labels.is_empty() { "" } else { "," };
        let mut below = 0;
        for (bucket, (_, bound)) in self.buckets.iter().zip(BOUNDS) {
            below += bucket.load(Relaxed);
            writeln!(text, "{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {below}")?;
        }
        let count = self.count();
        writeln!(text, "{name}_bucket{{{labels}{comma}le=\"+Inf\"}} {count}")?;
        writeln!(text, "{name}_sum{{{labels}}} {}", self.micros.load(Relaxed) as f64 / 1e6)?;
        writeln!(text, "{name}_count{{{labels}}} {count}")
    }
}

/// The requests to one operation.
#[derive(Debug)]
pub(crate) struct Requests {
    labels: String,
    by_class: [AtomicU64; 5],
    timing: Timing,
}

/// What is counted while the server runs.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    ended: [AtomicU64; RunStatus::ALL.len()],
    deleted: AtomicU64,
    requests: Mutex<Vec<Arc<Requests>>>,
}

/// What is looked up when figures are asked for.
pub(crate) struct Now<'a> {
    pub(crate) pending: u64,
    pub(crate) running: u64,
    pub(crate) streams: usize,
    pub(crate) webhooks_waiting: u64,
    pub(crate) webhooks_given_up: u64,
    pub(crate) store: &'a Timing,
}

impl Metrics {
    pub(crate) fn ended(&self, status: RunStatus) {
        let at = RunStatus::ALL.iter().position(|known| *known == status);
        if let Some(count) = at.and_then(|at| self.ended.get(at)) {
            count.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn deleted(&self) {
        self.deleted.fetch_add(1, Relaxed);
    }

    /// Counters of an operation.
    pub(crate) fn operation(&self, method: &str, path: &str) -> Arc<Requests> {
        let labels = format!("method=\"{method}\",path=\"{path}\"");
        let mut all = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = all.iter().find(|known| known.labels == labels) {
            return known.clone();
        }
        let new =
            Arc::new(Requests { labels, by_class: Default::default(), timing: Timing::default() });
        all.push(new.clone());
        new
    }

    fn by_end(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let over = RunStatus::ALL.iter().zip(&self.ended).filter(|(status, _)| status.is_over());
        let over = over.map(|(status, count)| (status.as_str(), count.load(Relaxed)));
        over.chain([("deleted", self.deleted.load(Relaxed))])
    }

    pub(crate) fn json(&self, now: &Now<'_>) -> Json {
        let ended: serde_json::Map<_, _> =
            self.by_end().map(|(end, count)| (end.to_owned(), count.into())).collect();
        json!({
            "queue": { "n_pending": now.pending, "n_running": now.running },
            "runs_ended": ended,
            "streams_open": now.streams,
            "store_calls": now.store.count(),
        })
    }

    /// The figures in the text format of Prometheus.
    pub(crate) fn text(&self, now: &Now<'_>) -> String {
        let mut text = String::new();
        self.write(&mut text, now).expect("a string can be written to");
        text
    }

    fn write(&self, text: &mut String, now: &Now<'_>) -> fmt::Result {
        let mut gauge = |name: &str, help: &str, value: u64| {
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}")
        };
        gauge("superstep_runs_pending", "Runs that wait for a worker.", now.pending)?;
        gauge("superstep_runs_running", "Runs that a worker drives.", now.running)?;
        gauge("superstep_streams_open", "Answers that wait for a run.", now.streams as u64)?;
        gauge("superstep_webhooks_waiting", "Webhooks that are to be sent.", now.webhooks_waiting)?;
        gauge(
            "superstep_webhooks_given_up",
            "Webhooks that were not received in the end.",
            now.webhooks_given_up,
        )?;
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}")
        };
        let name = "superstep_runs_ended_total";
        head(text, name, "counter", "Runs that have ended, by how.")?;
        for (end, count) in self.by_end() {
            writeln!(text, "{name}{{end=\"{end}\"}} {count}")?;
        }
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let name = "superstep_requests_total";
        head(text, name, "counter", "Requests, by operation and class of status.")?;
        for one in &requests {
            for (class, count) in (1..).zip(&one.by_class) {
                let count = count.load(Relaxed);
                if count > 0 {
                    writeln!(text, "{name}{{{},status=\"{class}xx\"}} {count}", one.labels)?;
                }
            }
        }
        let name = "superstep_request_seconds";
        head(text, name, "histogram", "From a request to the head of its answer.")?;
        for one in requests.iter().filter(|one| one.timing.count() > 0) {
            one.timing.write(text, name, &one.labels)?;
        }
        let name = "superstep_store_call_seconds";
        head(text, name, "histogram", "Calls of the server's store, commit included.")?;
        now.store.write(text, name, "")
    }
}

/// Counts a request.
pub(crate) async fn measure(
    State(requests): State<Arc<Requests>>,
    request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let response = next.run(request).await;
    requests.timing.add(begun.elapsed());
    let class = usize::from(response.status().as_u16() / 100).saturating_sub(1);
    if let Some(count) = requests.by_class.get(class) {
        count.fetch_add(1, Relaxed);
    }
    response
}
