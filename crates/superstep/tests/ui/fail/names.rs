//! Names that are empty, reserved or taken.
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Essay {
    #[channel(rename = "")]
    empty: String,
    checkpoint_id: String,
    #[channel(rename = "__input__")]
    input: String,
    #[channel(rename = "branch:to:write")]
    branch: String,
    #[channel(rename = "join:a+b:c")]
    join: String,
    topic: String,
    #[channel(rename = "topic")]
    subject: String,
    #[channel(reduce = Append)]
    notes: Vec<String>,
    overwrite_notes: String,
}

fn main() {}
