//! What is measured. The program in `python/` has the same shapes for LangGraph.

mod ask;
mod chat;
mod flow;
mod many;
mod wide;

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

/// A short run that is not measured, so that connections are open and statements prepared.
pub(crate) async fn warm_up(setting: &Setting) -> Result<(), Failure> {
    let graph = setting.equip(flow::circle(3)?);
    done(setting.invoke(&graph, flow::Count::update().n(0)).await?)?;
    Ok(())
}
