//! Two subgraphs ask at the same time; each answer goes to the task that asked.
//!
//! ```sh
//! cargo run -p superstep-examples --bin trip
//! ```

use superstep::CompiledGraph;
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Booking {
    what: String,
    options: Vec<String>,
    chosen: String,
}

async fn search(booking: Arc<Booking>) -> BookingUpdate {
    println!("searching for a {}", booking.what);
    Booking::update().options(["cheap", "good"].map(|kind| format!("{kind} {}", booking.what)))
}

async fn choose(booking: Arc<Booking>, task: Task) -> Result<BookingUpdate, NodeError> {
    let nth: usize = task.interrupt(&booking.options).await;
    let chosen = booking.options.get(nth).ok_or("there is no such option")?;
    Ok(Booking::update().chosen(chosen))
}

#[derive(State, Clone, Default)]
struct Trip {
    #[channel(reduce = Append)]
    booked: Vec<String>,
}

fn trip() -> Result<CompiledGraph<Trip>, CompileError> {
    let booking = StateGraph::<Booking>::new()
        .add_node("search", search)
        .add_node("choose", choose)
        .add_edge(START, "search")
        .add_edge("search", "choose")
        .compile()?;
    let book = |what: &'static str| {
        booking.as_node(
            move |_: &Trip| Booking::update().what(what),
            |booking: Booking| Trip::update().booked([booking.chosen]),
        )
    };
    StateGraph::<Trip>::new()
        .add_node("flight", book("flight"))
        .add_node("hotel", book("hotel"))
        .add_edge(START, "flight")
        .add_edge(START, "hotel")
        .compile()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let thread = trip()?.with_checkpointer(MemorySaver::new()).thread("trip-1");
    let asked = thread.invoke(Trip::update()).await?.interrupted().ok_or("nothing was asked")?;
    for question in &asked {
        println!("which one? {}", question.value);
    }

    // Somebody chooses the hotel first. The other question stays open under the same id.
    let left = thread.resume_all([(asked[1].id.clone(), 0)]).await?;
    let left = left.interrupted().ok_or("the flight was not asked for")?;
    assert_eq!(left[0].id, asked[0].id);

    if let Outcome::Done(trip) = thread.resume_all([(left[0].id.clone(), 1)]).await? {
        println!("booked: {}", trip.booked.join(", "));
    }
    Ok(())
}
