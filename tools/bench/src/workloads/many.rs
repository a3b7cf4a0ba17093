//! Many threads at once, and what a run holds.

use futures_util::future::try_join_all;
use superstep::prelude::*;

use super::flow::{Count, circle, in_circles};
use crate::failure::Failure;
use crate::protocol::Measured;
use crate::setting::{Setting, done, nanos};

/// How far each thread goes.
const STEPS: usize = 9;

/// Threads that all run at the same time on one checkpointer.
pub(super) async fn concurrent(setting: &mut Setting, threads: usize) -> Result<Measured, Failure> {
    let supersteps = in_circles(STEPS);
    let graph = setting.equip(circle(supersteps)?);
    let mut measured = Measured { units: supersteps * threads as u64, ..Measured::default() };
    for _ in 0..setting.rounds {
        let invokes: Vec<_> =
            (0..threads).map(|_| setting.invoke(&graph, Count::update().n(0))).collect();
        let began = setting.start().await?;
        let runs = invokes.into_iter().map(|invoke| tokio::spawn(invoke.into_future()));
        for ended in try_join_all(runs).await? {
            done(ended?)?;
        }
        measured.nanos.push(nanos(began.elapsed()));
    }
    Ok(measured)
}

/// What a run holds at its end more than after its first hundred supersteps, in bytes for each superstep.
pub(super) async fn held(setting: &mut Setting, supersteps: usize) -> Result<Measured, Failure> {
    const FIRST: u64 = 100;
    let last = supersteps as u64;
    let memory = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = memory.clone();
    let graph =
        StateGraph::<Count>::new()
            .add_node("step", move |count: Arc<Count>| {
                if count.n == FIRST || count.n == last {
                    noted.lock().expect("nothing panics while it holds this").push(resident());
                }
                Count::update().n(count.n + 1)
            })
            .add_edge(START, "step")
            .add_conditional_edges("step", ["step", END], move |count: &Count| {
                if count.n <= last { "step" } else { END }
            })
            .compile()?;
    let graph = setting.equip(graph);
    let mut measured = Measured { units: last, ..Measured::default() };
    for _ in 0..setting.rounds {
        let began = setting.start().await?;
        done(setting.invoke(&graph, Count::update().n(0)).await?)?;
        measured.nanos.push(nanos(began.elapsed()));
        let mut noted = memory.lock().expect("nothing panics while it holds this");
        let (first, last) = (noted[0], noted[1]);
        noted.clear();
        measured.also.push(("bytes held".to_owned(), last as f64 - first as f64));
    }
    Ok(measured)
}

/// What the system says this process has in memory, in bytes.
///
/// Counting allocations would be exact, and would slow down everything else this program measures. Pages are coarse, so
/// the run is long: a hundred bytes a superstep that are not given back show in ten thousand of them.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}
