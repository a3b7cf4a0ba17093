//! What is measured. The program in `python/` has the same shapes for LangGraph.

mod agent;
mod ask;
mod chat;
mod flow;
mod many;
mod wide;

use futures_util::future::try_join_all;

use crate::failure::Failure;
use crate::protocol::{Measured, Request};
use crate::setting::{Setting, done};

/// Runs a workload as often as the setting says.
pub(crate) async fn run(setting: &mut Setting, request: &Request) -> Result<Measured, Failure> {
    let size = request.size;
    match request.workload.as_str() {
        "sequence" => flow::sequence(setting, size).await,
        "loop" => flow::looped(setting, size).await,
        "loop-untraced" => flow::looped_untraced(setting, size).await,
        "fan" => flow::fan(setting, size).await,
        "subgraphs" => flow::subgraphs(setting, size).await,
        "compile" => flow::compile(setting, size).await,
        "wide" => wide::wide(setting, size).await,
        "react" => chat::react(setting, size).await,
        "agent" => agent::agent(setting, size).await,
        "turn" => chat::turn(setting, size).await,
        "superstep" => chat::superstep(setting, size).await,
        "long" => chat::long(setting, size).await,
        "interrupt" => ask::interrupt(setting, size).await,
        "first-event" => ask::first_event(setting, size).await,
        "concurrent" => many::concurrent(setting, size).await,
        "held" => many::held(setting, size).await,
        unknown => Err(format!("there is no workload `{unknown}`").into()),
    }
}

/// How many connections a pool of either side has at most.
const CONNECTIONS: usize = 10;

/// Short runs that are not measured: so many at once that all connections are open and have their statements prepared, and
/// one alone on the connection that lone runs use.
pub(crate) async fn warm_up(setting: &Setting) -> Result<(), Failure> {
    let graph = setting.equip(flow::circle(3)?);
    for at_once in [CONNECTIONS, 1] {
        let runs = (0..at_once).map(|_| setting.invoke(&graph, flow::Count::update().n(0)));
        for ended in try_join_all(runs.map(IntoFuture::into_future)).await? {
            done(ended)?;
        }
    }
    Ok(())
}
