//! The generated code names everything by its full path.
#![allow(dead_code)]

mod shadowed {
    type String = ::std::string::String;
    struct Option;
    struct Result;
    struct Some;
    struct Ok;
    struct PhantomData;
    struct Arc;
    struct Writes;
    struct Schema;
    struct Kind;
    struct Append;
    struct Last;
    trait Into {}
    trait Clone {}
    trait Default {}
    trait Debug {}
    trait Update {}
    trait Reducer {}
    mod core {}
    mod std {}
    mod superstep {}

    #[derive(::superstep::State, ::core::clone::Clone, ::core::default::Default)]
    pub(super) struct Essay {
        topic: String,
        #[channel(topic)]
        events: ::std::vec::Vec<String>,
        #[channel(ephemeral)]
        once: ::core::option::Option<String>,
        #[channel(reduce_with = fold, delta = 2)]
        total: u64,
    }

    #[derive(::superstep::View)]
    #[view(Essay)]
    pub(super) struct Part {
        topic: String,
        total: u64,
    }

    fn fold(total: &mut u64, update: u64) {
        *total += update;
    }
}

fn main() {
    let _ = shadowed::Essay::update().topic("a").total(1);
}
