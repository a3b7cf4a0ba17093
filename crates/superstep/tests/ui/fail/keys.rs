//! Unknown and repeated keys, and keys with a value they do not take, all at once.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
#[state(crates = ::superstep)]
struct Essay {
    #[channel(redcue = Append)]
    misspelt: Vec<String>,
    #[channel(colour = Map<String, u8>, private)]
    unknown: String,
    #[channel(reduce = Append, reduce = Sum)]
    twice: Vec<String>,
    #[channel(private)]
    #[channel(private)]
    twice_apart: String,
    #[channel(reduce)]
    nothing: Vec<String>,
    #[channel(ephemeral = true)]
    something: String,
    #[channel(ephemeral, guard = 1)]
    number: String,
    #[channel(rename = name)]
    bare: String,
    #[channel]
    no_list: String,
    #[state(crate = ::superstep)]
    misplaced: String,
}

fn main() {
    let _ =
        Essay::update().misspelt(["the rest compiles".to_owned()]).unknown("as if all were well");
}
