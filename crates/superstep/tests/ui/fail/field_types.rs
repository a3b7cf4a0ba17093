//! A field that cannot be stored, or that its reducer does not know, is an error at its type.
use superstep::prelude::*;

#[derive(Clone, Default)]
struct NotStorable;

fn sum(value: &mut u64, update: u64) -> u64 {
    *value + update
}

#[derive(State, Clone, Default)]
struct Essay {
    handle: NotStorable,
    #[channel(topic)]
    count: u64,
    #[channel(reduce_with = sum)]
    sum: u64,
}

fn main() {}
