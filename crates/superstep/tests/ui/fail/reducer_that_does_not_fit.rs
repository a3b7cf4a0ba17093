//! A reducer that does not fit its field is one error, at the reducer, however the channel is stored.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    #[channel(reduce = Append)]
    count: u64,
}

#[derive(State, Clone, Default)]
struct Log {
    #[channel(reduce = Sum, delta = 100)]
    lines: Vec<String>,
}

#[derive(State, Clone, Default)]
struct Chat {
    #[channel(reduce = Messages, delta = false)]
    messages: Vec<String>,
}

fn main() {}
