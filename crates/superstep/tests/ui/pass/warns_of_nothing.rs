//! The generated code passes the lints of a strict crate, whatever the state looks like.
#![deny(
    warnings,
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    unused_qualifications
)]
#![deny(rust_2018_idioms)]

use superstep::prelude::*;

mod private {
    use superstep::prelude::*;

    struct Longest;

    impl Reducer<String> for Longest {
        type Update = String;

        fn reduce(value: &mut String, update: String) {
            if update.len() > value.len() {
                *value = update;
            }
        }
    }

    /// A public state with a reducer of its own.
    #[derive(State, Clone, Debug, Default)]
    pub struct Public {
        #[channel(reduce = Longest)]
        longest: String,
        #[channel(reduce_with = append)]
        joined: String,
        is_done: bool,
    }

    fn append(value: &mut String, update: String) {
        value.push_str(&update);
    }

    #[derive(State, Clone, Default)]
    pub(crate) struct InCrate {
        pub(crate) topic: String,
    }
}

pub use private::Public;

#[derive(State, Clone, Default)]
struct NeverWritten {
    #[channel(reduce = Append)]
    notes: Vec<String>,
}

fn main() {
    let _ = private::InCrate::default().topic;
    let _ = NeverWritten::default().notes;

    #[derive(State, Clone, Default)]
    struct Local {
        topic: String,
    }

    let _ = Local::update().topic("in a function");
    let _ = Local::default().topic;
}
