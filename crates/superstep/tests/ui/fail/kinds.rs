//! A channel has one kind, and options go with the kind they belong to.
use superstep::prelude::*;

fn replace(value: &mut String, update: String) {
    *value = update;
}

#[derive(State, Clone, Default)]
struct Essay {
    #[channel(topic, reduce = Append, any_value)]
    three: Vec<String>,
    #[channel(reduce = Append, reduce_with = replace)]
    two: String,
    #[channel(guard = false)]
    guard: String,
    #[channel(reduce = Append, accumulate)]
    accumulate: Vec<String>,
    #[channel(delta = 10)]
    delta: String,
    #[channel(update = String)]
    update: String,
    #[channel(reduce = Append, update = String)]
    known: String,
    #[channel(reduce = Append, delta = 0)]
    never: Vec<String>,
    #[channel(reduce = Append, delta = true)]
    always: Vec<String>,
}

fn main() {}
