//! A field that the state has not, or has with another type, is an error at the field.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    topic: String,
    words: u64,
}

#[derive(View)]
#[view(Essay)]
struct Part {
    title: String,
}

#[derive(View)]
#[view(Essay)]
struct Mistyped {
    words: String,
}

fn main() {}
