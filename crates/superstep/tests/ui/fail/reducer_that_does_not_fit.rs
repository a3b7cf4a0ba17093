//! A reducer that does not fit its field is told of at the reducer.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    #[channel(reduce = Append)]
    count: u64,
}

fn main() {}
