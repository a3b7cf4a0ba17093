//! Questions, and the first thing a reader hears.

use superstep::prelude::*;

use super::flow::circle;
use crate::failure::Failure;
use crate::protocol::Measured;
use crate::setting::{Setting, done, nanos};

#[derive(State, Clone, Default)]
struct Payment {
    amount: u64,
    approved: bool,
}

/// A run up to a question, and its answer; `size` times, each on a new thread.
pub(super) async fn interrupt(setting: &mut Setting, size: usize) -> Result<Measured, Failure> {
    let graph = StateGraph::<Payment>::new()
        .add_node("approve", async |payment: Arc<Payment>, task: Task| {
            let approved: bool = task.interrupt(format!("Pay {} euros?", payment.amount)).await;
            Payment::update().approved(approved)
        })
        .add_edge(START, "approve")
        .compile()?;
    let graph = setting.equip(graph);
    let mut measured = Measured { units: size as u64, ..Measured::default() };
    for _ in 0..setting.rounds {
        let threads: Vec<_> = (0..size).map(|_| setting.thread(&graph)).collect();
        let began = setting.start().await?;
        for thread in &threads {
            let asked = setting.with_options(thread.invoke(Payment::update().amount(3))).await?;
            asked.interrupted().ok_or("nobody was asked")?;
            let answered = setting.with_options(thread.resume(true)).await?;
            let payment = done(answered)?;
            assert!(payment.approved, "the answer has arrived");
        }
        measured.nanos.push(nanos(began.elapsed()));
    }
    Ok(measured)
}

/// From the call to the first event, of a graph that has more to say.
pub(super) async fn first_event(setting: &mut Setting, size: usize) -> Result<Measured, Failure> {
    let graph = setting.equip(circle(3)?);
    let mut measured = Measured { units: size as u64, ..Measured::default() };
    for _ in 0..setting.rounds {
        let mut waited = 0;
        for _ in 0..size {
            let began = setting.start().await?;
            let run = setting.invoke(&graph, super::flow::Count::update().n(0));
            let mut events = run.stream([Mode::Updates]);
            events.next().await.ok_or("there was no event")??;
            waited += nanos(began.elapsed());
            while let Some(event) = events.next().await {
                event?;
            }
        }
        measured.nanos.push(waited);
    }
    Ok(measured)
}
