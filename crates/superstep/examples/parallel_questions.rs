//! Two nodes ask side by side, and are answered one after the other.
//!
//! A run that stops with several questions takes answers by id. Those that are not answered stay open under the same id;
//! a node that has its answer finishes and does not run again.

use std::collections::BTreeMap;

use superstep::CompiledGraph;
use superstep::prelude::*;

#[derive(State, Clone, Debug, Default)]
struct Trip {
    #[channel(reduce = Append)]
    booked: Vec<String>,
}

async fn flight(task: Task) -> TripUpdate {
    let seat: String = task.interrupt("Window or aisle?").await;
    Trip::update().booked([format!("a flight, {seat}")])
}

async fn hotel(task: Task) -> TripUpdate {
    let nights: u32 = task.interrupt("How many nights?").await;
    Trip::update().booked([format!("a hotel, {nights} nights")])
}

fn app() -> Result<CompiledGraph<Trip>, CompileError> {
    let graph = StateGraph::new()
        .add_node("flight", flight)
        .add_node("hotel", hotel)
        .add_edge(START, "flight")
        .add_edge(START, "hotel")
        .compile()?;
    Ok(graph.with_checkpointer(MemorySaver::new()))
}

async fn book() -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let thread = app()?.thread("trip-1");
    let asked = thread.invoke(Trip::update()).await?.interrupted().ok_or("nobody was asked")?;
    println!("{} and {}", asked[0].value, asked[1].value);

    // The questions come in the order of their nodes; the hotel is answered first.
    let left = thread.resume_all([(asked[1].id.clone(), 3)]).await?;
    let left = left.interrupted().ok_or("the flight was not asked for again")?;
    assert_eq!((left.len(), &left[0].id), (1, &asked[0].id));
    println!("so far: {:?}", left.state().map(|trip| &trip.booked));

    let answers = BTreeMap::from([(left[0].id.clone(), "aisle")]);
    let trip = thread.resume_all(answers).await?.done().ok_or("something is still asked")?;
    Ok(trip.booked)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{:?}", book().await?);
    Ok(())
}

#[cfg(test)]
#[tokio::test]
async fn each_answer_reaches_its_question() {
    // Writes are folded in the order of the nodes, whichever was answered first.
    assert_eq!(book().await.expect("a trip"), ["a flight, aisle", "a hotel, 3 nights"]);
}
