//! A view says of what state it is, and has each field of it once.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    topic: String,
}

#[derive(View)]
struct Nothing {
    topic: String,
}

#[derive(View)]
#[view(Essay)]
struct Twice {
    topic: String,
    #[view(rename = "topic")]
    again: String,
    #[view(rename = "not a field")]
    text: String,
    #[view(renamed = "topic")]
    misspelt: String,
}

fn main() {}
