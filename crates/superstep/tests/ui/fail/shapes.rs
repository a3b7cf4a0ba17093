//! A state and a view are structs with named fields that own what they hold.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
enum Enum {
    #[default]
    Variant,
}

#[derive(State, Clone, Default)]
struct Tuple(String, u32);

#[derive(State, Clone, Default)]
struct Unit;

#[derive(State, Clone, Copy)]
union Union {
    number: u32,
}

#[derive(State, Clone, Default)]
struct Borrowed<'a> {
    topic: std::borrow::Cow<'a, str>,
}

#[derive(View)]
#[view(Tuple)]
struct Part(String);

fn main() {}
