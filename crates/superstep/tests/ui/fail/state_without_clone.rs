//! A state that does not derive `Clone` is one error, at the state.
use superstep::prelude::*;

#[derive(State, Default)]
struct Essay {
    topic: String,
}

fn main() {
    let _ = StateGraph::<Essay>::new();
    let _ = Essay::update().topic("rust");
}
