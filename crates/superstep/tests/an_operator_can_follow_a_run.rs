//! A run, its supersteps, tasks and commits are spans with the fields one looks for, each inside the other. Without a
//! subscriber nothing is recorded; the bench shows that this costs next to nothing.
//!
//! A program of its own with one test: who listens is known to the whole process.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use superstep::Durability;
use superstep::checkpoint::MemorySaver;
use superstep::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

#[derive(State, Clone, Default)]
struct Count {
    n: u64,
}

/// A span that was opened: its name, that of the span it was opened in, and its fields.
#[derive(Clone, Debug, Default)]
struct Seen {
    name: &'static str,
    inside: Option<&'static str>,
    fields: BTreeMap<&'static str, String>,
}

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

#[derive(Clone, Default)]
struct Watcher {
    spans: Arc<Mutex<Vec<Seen>>>,
    entered: Arc<Mutex<Vec<usize>>>,
}

impl Watcher {
    fn index(id: &Id) -> usize {
        usize::try_from(id.into_u64()).expect("few spans") - 1
    }

    fn all(&self, name: &str) -> Vec<Seen> {
        let spans = self.spans.lock().expect("no panic");
        spans.iter().filter(|seen| seen.name == name).cloned().collect()
    }
}

impl Subscriber for Watcher {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "superstep"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut spans = self.spans.lock().expect("no panic");
        let inside = self.entered.lock().expect("no panic").last().map(|at| spans[*at].name);
        let mut seen = Seen { name: span.metadata().name(), inside, fields: BTreeMap::new() };
        span.record(&mut seen);
        spans.push(seen);
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        values.record(&mut self.spans.lock().expect("no panic")[Self::index(span)]);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, span: &Id) {
        self.entered.lock().expect("no panic").push(Self::index(span));
    }

    fn exit(&self, _: &Id) {
        self.entered.lock().expect("no panic").pop();
    }
}

async fn two_nodes(durability: Durability) -> Watcher {
    let watcher = Watcher::default();
    let _watching = tracing::subscriber::set_default(watcher.clone());
    let graph = StateGraph::<Count>::new()
        .add_node("first", |count: Arc<Count>, task: Task| async move {
            let n = count.n;
            let looked_up =
                task.call("look it up", move || async move { Ok::<_, NodeError>(n + 1) });
            Ok::<_, NodeError>(Count::update().n(looked_up.await?))
        })
        .add_node("second", |count: Arc<Count>| Count::update().n(count.n + 1))
        .add_edge(START, "first")
        .add_edge("first", "second")
        .compile()
        .expect("the graph is sound")
        .with_checkpointer(MemorySaver::new());
    let run = graph.thread("t-1").invoke(Count::update().n(1)).durability(durability);
    run.await.expect("the run succeeds");
    watcher
}

#[tokio::test]
async fn through_its_spans() {
    each_is_inside_the_other(&two_nodes(Durability::Sync).await);
    let lagging = two_nodes(Durability::Async).await;
    assert_eq!(lagging.all("commit").len(), 3);
    assert_eq!(lagging.all("superstep").len(), 3);
}

fn each_is_inside_the_other(watcher: &Watcher) {
    let [run] = &watcher.all("run")[..] else { panic!("one run") };
    assert_eq!(run.fields["thread"], "t-1");
    assert_eq!(run.fields["durability"], "Sync");
    assert_eq!(run.inside, None);

    let steps: Vec<_> = watcher.all("superstep");
    let numbers: Vec<_> = steps.iter().map(|step| step.fields["step"].as_str()).collect();
    assert_eq!(numbers, ["0", "1", "2"]);
    assert!(steps.iter().all(|step| step.inside == Some("run") && step.fields["tasks"] == "1"));

    let tasks = watcher.all("task");
    let nodes: Vec<_> = tasks.iter().map(|task| task.fields["node"].as_str()).collect();
    assert_eq!(nodes, ["__start__", "first", "look it up", "second"]);
    let inside: Vec<_> = tasks.iter().map(|task| task.inside.expect("inside something")).collect();
    assert_eq!(inside, ["superstep", "superstep", "task", "superstep"]);
    assert!(tasks.iter().all(|task| task.fields["task"].len() == 36));

    let commits = watcher.all("commit");
    let steps: Vec<_> = commits.iter().map(|commit| commit.fields["step"].as_str()).collect();
    assert_eq!(steps, ["0", "1", "2"], "the input, step -1, goes with the first");
    assert!(commits.iter().all(|commit| commit.fields["thread"] == "t-1"));
}
