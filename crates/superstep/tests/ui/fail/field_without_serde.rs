//! A field that cannot be stored is one error, at its type.
use superstep::prelude::*;

#[derive(Clone, Default)]
struct Handle;

#[derive(State, Clone, Default)]
struct Essay {
    handle: Handle,
}

fn main() {
    let _ = Essay::update().handle(Handle);
}
