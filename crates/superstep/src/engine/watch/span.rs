//! What an operator can follow: one span for a run, a superstep, a task and a commit.
//!
//! Without a subscriber, each costs one read of a static. Fields that cost something are filled in only if the span is
//! enabled.

use std::future::poll_fn;
use std::pin::Pin;

use superstep_checkpoint::Put;
use tracing::{Span, debug_span, field, info_span};

use crate::engine::drive::run::Run;
use crate::engine::step::superstep::Superstep;
use crate::engine::task::handle::Task;

/// Drives a future in a span, where it is: to move the future of a superstep costs more than to make it.
pub(in crate::engine) async fn within<F: Future>(
    span: &Span,
    mut future: Pin<&mut F>,
) -> F::Output {
    poll_fn(|cx| span.in_scope(|| future.as_mut().poll(cx))).await
}

/// One drive of a thread.
pub(in crate::engine) fn run(run: &Run, graph: &str) -> Span {
    info_span!(
        target: "superstep",
        "run",
        graph,
        thread = run.thread.as_deref(),
        durability = ?run.durability,
    )
}

/// One superstep of a graph. `ns` is where the graph stands; empty for the outermost.
pub(in crate::engine) fn superstep(superstep: &Superstep, tasks: usize) -> Span {
    debug_span!(
        target: "superstep",
        "superstep",
        step = superstep.number,
        ns = &*superstep.setting.ns,
        tasks,
    )
}

/// One attempt of a node or of a recorded call, or a router that is awaited.
pub(in crate::engine) fn task(task: &Task) -> Span {
    let span = debug_span!(
        target: "superstep",
        "task",
        node = task.name(),
        task = field::Empty,
        attempt = task.attempt(),
    );
    if !span.is_disabled() {
        span.record("task", field::display(task.id()));
    }
    span
}

/// Storing a checkpoint, and with it one that was held back.
pub(in crate::engine) fn commit(put: &Put) -> Span {
    debug_span!(
        target: "superstep",
        "commit",
        thread = &*put.thread,
        ns = &*put.ns,
        checkpoint = %put.checkpoint.id,
        step = put.metadata.step,
        tasks = put.writes.len(),
    )
}
