//! What `#[derive(State)]` and `#[derive(View)]` write: the channels of a struct, in order and of the right kind, and an
//! update whose methods write them by position.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use superstep::checkpoint::to_value;
use superstep::prelude::*;
use superstep::state::{Deltas, Kind, Schema, Update, Writes};

/// The name, the kind and the privacy of each channel.
fn channels<S: State>() -> Vec<String> {
    let schema = format!("{:?}", Schema::<S>::of());
    let specs = schema.trim_matches(['[', ']']).split("Spec ").skip(1);
    specs.map(|spec| spec.trim_end_matches(", ").to_owned()).collect()
}

fn spec(name: &str, kind: Kind, starts_filled: bool, private: bool) -> String {
    format!(
        "{{ name: {name:?}, kind: {kind:?}, starts_filled: {starts_filled}, private: {private} }}"
    )
}

/// The writes of an update, as far as they can be seen from outside.
fn writes<S: State>(update: impl Update<S>) -> String {
    shown(&update.into_writes())
}

fn shown(writes: &impl Debug) -> String {
    format!("{writes:?}")
}

#[derive(State, Clone, Default)]
struct Essay {
    topic: String,
    #[channel(reduce = Append)]
    notes: Vec<String>,
    draft: Option<String>,
}

mod by_hand {
    use super::*;

    #[derive(Clone, Default)]
    pub(super) struct Essay {
        topic: String,
        notes: Vec<String>,
        draft: Option<String>,
    }

    impl State for Essay {
        type Update = Writes;

        fn channels(schema: &mut Schema<Self>) {
            schema.last("topic", |essay| &essay.topic, |essay| &mut essay.topic);
            schema.reduce::<_, Append>("notes", |essay| &essay.notes, |essay| &mut essay.notes);
            schema.last("draft", |essay| &essay.draft, |essay| &mut essay.draft);
        }

        fn empty(_: &Arc<Schema<Self>>) -> Self {
            Self::default()
        }

        fn duplicate(&self) -> Self {
            self.clone()
        }
    }
}

#[test]
fn a_derived_state_is_the_one_written_by_hand() {
    assert_eq!(channels::<Essay>(), channels::<by_hand::Essay>());

    let mut by_hand = Writes::new();
    by_hand.push::<String>(0, "Pregel".to_owned());
    by_hand.push::<Vec<String>>(1, vec!["a note".to_owned()]);
    by_hand.push::<Option<String>>(2, Some("a draft".to_owned()));
    by_hand.overwrite::<Vec<String>>(1, Vec::new());
    let derived = Essay::update()
        .topic("Pregel")
        .notes(["a note".to_owned()])
        .draft("a draft".to_owned())
        .overwrite_notes([]);
    assert_eq!(writes(derived), shown(&by_hand));
}

#[test]
fn an_empty_state_is_the_default() {
    let schema = Arc::new(Schema::<Essay>::of());
    let essay = Essay::empty(&schema);
    assert!(essay.topic.is_empty() && essay.notes.is_empty() && essay.draft.is_none());
}

fn keep_longest(value: &mut String, update: String) {
    if update.len() > value.len() {
        *value = update;
    }
}

#[derive(State, Clone, Default)]
struct Kinds {
    last: String,
    #[channel(any_value)]
    any: String,
    #[channel(ephemeral)]
    once: String,
    #[channel(ephemeral, guard = false)]
    once_or_more: String,
    #[channel(untracked, guard = true)]
    client: String,
    #[channel(guard = false, untracked)]
    clients: String,
    #[channel(topic)]
    events: Vec<String>,
    #[channel(topic, accumulate)]
    log: Vec<String>,
    #[channel(reduce = Sum)]
    count: u64,
    #[channel(reduce = Append, delta = 7)]
    every_seven: Vec<String>,
    #[channel(reduce = Append)]
    #[channel(delta = false)]
    whole: Vec<String>,
    #[channel(reduce = superstep::state::Merge)]
    merged: BTreeMap<String, u8>,
    #[channel(reduce_with = keep_longest)]
    longest: String,
    #[channel(reduce_with = keep_longest, delta = 3)]
    longest_of_three: String,
    #[channel(private)]
    secret: String,
    #[channel(reduce = Max, private, rename = "top-score")]
    best: f64,
    r#type: String,
}

#[test]
fn each_attribute_gives_its_kind_of_channel() {
    let growing = Schema::<Essay>::of();
    assert!(shown(&growing).contains("Growing"), "an appending reducer stores writes by default");
    let expected = [
        spec("last", Kind::Last, false, false),
        spec("any", Kind::Any, false, false),
        spec("once", Kind::Ephemeral { guard: true }, false, false),
        spec("once_or_more", Kind::Ephemeral { guard: false }, false, false),
        spec("client", Kind::Untracked { guard: true }, false, false),
        spec("clients", Kind::Untracked { guard: false }, false, false),
        spec("events", Kind::Topic { accumulate: false }, false, false),
        spec("log", Kind::Topic { accumulate: true }, false, false),
        spec("count", Kind::Reduce, true, false),
        spec("every_seven", Kind::Delta(Deltas::Every(7)), true, false),
        spec("whole", Kind::Reduce, true, false),
        spec("merged", Kind::Reduce, true, false),
        spec("longest", Kind::Reduce, true, false),
        spec("longest_of_three", Kind::Delta(Deltas::Every(3)), true, false),
        spec("secret", Kind::Last, false, true),
        spec("top-score", Kind::Reduce, true, true),
        spec("type", Kind::Last, false, false),
    ];
    assert_eq!(channels::<Kinds>(), expected);
}

/// A literal has no type of its own, so a setter that took anything that turns into a `u64` would see an `i32`.
#[test]
fn setters_of_numbers_take_literals() {
    let update = Kinds::update().count(2).best(0.5).overwrite_count(3);
    let mut expected = Writes::new();
    expected.push::<u64>(8, 2);
    expected.push::<f64>(15, 0.5);
    expected.overwrite::<u64>(8, 3);
    assert_eq!(writes(update), shown(&expected));
}

#[test]
fn every_field_has_a_setter() {
    let update = Kinds::update()
        .last("a")
        .any("b")
        .once("c")
        .once_or_more("d")
        .client("e")
        .clients("f")
        .events(["g".to_owned()])
        .log(["h".to_owned()])
        .count(1)
        .every_seven(["i".to_owned()])
        .whole(["j".to_owned()])
        .merged([("k".to_owned(), 1)])
        .longest("l")
        .longest_of_three("m")
        .secret("n")
        .best(1.0)
        .r#type("o");
    assert_eq!(update.clone().into_writes().len(), 17);
    assert!(shown(&update).starts_with("KindsUpdate("));
}

#[derive(State, Clone, Default)]
struct Counters {
    #[channel(reduce_with = Self::count, update = Vec<String>)]
    words: BTreeMap<String, u64>,
    #[channel(reduce_with = keep_longest)]
    longest: String,
}

impl Counters {
    fn count(words: &mut BTreeMap<String, u64>, seen: Vec<String>) {
        for word in seen {
            *words.entry(word).or_default() += 1;
        }
    }
}

#[test]
fn a_reducing_function_says_what_an_update_is() {
    let update = Counters::update().words(["a".to_owned()]).longest("abc");
    let mut expected = Writes::new();
    expected.push::<Vec<String>>(0, vec!["a".to_owned()]);
    expected.push::<String>(1, "abc".to_owned());
    assert_eq!(writes(update), shown(&expected));

    let schema = Schema::<Counters>::of();
    let update = |words| to_value(&BTreeMap::from([("words", words)])).expect("plain data");
    assert!(schema.parse(update(vec!["a", "b"])).is_ok());
    let value = to_value(&BTreeMap::from([("words", BTreeMap::from([("a", 1)]))]));
    assert!(schema.parse(value.expect("plain data")).is_err(), "the value is not the update");
}

#[derive(State, Clone, Default)]
struct Pair<T, const N: usize, U = String>
where
    T: std::ops::AddAssign,
    U: PartialOrd,
{
    #[channel(reduce = Sum)]
    sum: T,
    #[channel(reduce_with = replace_if_room::<U, N>, update = U)]
    window: Vec<U>,
    last: Option<(T, U)>,
}

fn replace_if_room<U, const N: usize>(window: &mut Vec<U>, item: U) {
    if window.len() < N {
        window.push(item);
    }
}

#[test]
fn generics_are_carried_over() {
    let expected = [
        spec("sum", Kind::Reduce, true, false),
        spec("window", Kind::Reduce, true, false),
        spec("last", Kind::Last, false, false),
    ];
    assert_eq!(channels::<Pair<u32, 4>>(), expected);
    let update: PairUpdate<u32, 4> =
        Pair::update().sum(1_u32).window("a").last((1, "b".to_owned()));
    assert_eq!(writes::<Pair<u32, 4>>(update).matches("Update(").count(), 3);
}

#[test]
fn a_generic_update_needs_nothing_of_its_parameters_to_be_printed() {
    #[derive(Clone, Default, serde::Serialize, serde::Deserialize)]
    struct Quiet;

    #[derive(State, Clone, Default)]
    struct Holder<T> {
        held: Vec<T>,
    }

    let update = Holder::update().held([Quiet]);
    assert!(shown(&update.clone()).starts_with("HolderUpdate("));
}

#[derive(State, Clone, Default, serde::Serialize, serde::Deserialize)]
struct Tree {
    #[channel(reduce = Append)]
    children: Vec<Self>,
}

#[test]
fn a_state_may_hold_itself() {
    assert_eq!(writes(Tree::update().children([Tree::default()])).matches("Update(").count(), 1);
}

/// Names of methods that the update has already, or that the generated code could call by mistake.
#[derive(State, Clone, Default)]
struct Awkward {
    clone: u8,
    default: u8,
    into_writes: u8,
    into_output: u8,
    update: u8,
    writes: u8,
    of: u8,
    is_done: bool,
    add: u8,
    value: u8,
    state: u8,
    schema: u8,
}

#[test]
fn awkward_field_names_are_still_channels() {
    let update = Awkward::update()
        .clone(1)
        .default(2)
        .into_writes(3)
        .into_output(4)
        .update(5)
        .writes(6)
        .of(7)
        .is_done(true)
        .add(9)
        .value(10)
        .state(11)
        .schema(12);
    let copy = Clone::clone(&update);
    assert_eq!(Update::<Awkward>::into_writes(copy).len(), channels::<Awkward>().len());
}

macro_rules! wide {
    ($($field:ident)*: $type:ty) => {
        #[derive(State, Clone, Default)]
        struct Wide {
            $($field: $type,)*
        }

        #[derive(View)]
        #[view(Wide)]
        struct AsWide {
            $($field: $type,)*
        }

        fn write_all() -> WideUpdate {
            Wide::update()$(.$field(1))*
        }

        const FIELDS: &[&str] = &[$(stringify!($field)),*];
    };
}

wide! {
    f00 f01 f02 f03 f04 f05 f06 f07 f08 f09 f10 f11 f12 f13 f14 f15 f16 f17 f18 f19 f20 f21 f22 f23
    f24 f25 f26 f27 f28 f29 f30 f31 f32 f33 f34 f35 f36 f37 f38 f39 f40 f41 f42 f43 f44 f45 f46 f47
    f48 f49 f50 f51 f52 f53 f54 f55 f56 f57 f58 f59 f60 f61 f62 f63 f64 f65 f66 f67 f68 f69: u64
}

#[test]
fn a_state_may_have_many_fields() {
    assert_eq!(FIELDS.len(), 70);
    let schema = Schema::<Wide>::of();
    assert!(schema.names().map(|name| &**name).eq(FIELDS.iter().copied()));
    assert_eq!(write_all().into_writes().len(), 70);
    assert_eq!(AsWide::view(&Wide::default()).into_update().into_writes().len(), 70);
}

#[derive(View, Clone)]
#[view(Essay)]
struct Part {
    topic: String,
    #[view(rename = "notes")]
    all: Vec<String>,
}

#[test]
fn a_view_takes_its_part_and_gives_it_back() {
    assert_eq!(<Part as View<Essay>>::CHANNELS, ["topic", "notes"]);
    let essay = Essay { topic: "Pregel".into(), notes: vec!["a".into()], draft: None };
    let part = Part::view(&essay);
    assert_eq!(part.topic, "Pregel");
    assert_eq!(part.all, ["a"]);
    let back = part.into_update();
    assert_eq!(writes(back), writes(Essay::update().topic("Pregel").notes(["a".to_owned()])));
}

#[derive(View)]
#[view(Kinds)]
struct Renamed {
    #[view(rename = "type")]
    what: String,
    #[view(rename = "best", channel = "top-score")]
    score: f64,
}

#[test]
fn a_view_names_channels_that_the_state_renamed() {
    assert_eq!(<Renamed as View<Kinds>>::CHANNELS, ["type", "top-score"]);
    let kinds = Kinds { r#type: "a".into(), best: 2.0, ..Kinds::default() };
    let Renamed { what, score } = Renamed::view(&kinds);
    assert_eq!((what.as_str(), score), ("a", 2.0));
}

#[derive(View)]
#[view(Pair<T, N>)]
struct Sums<T: std::ops::AddAssign, const N: usize> {
    sum: T,
}

#[test]
fn a_view_may_be_generic() {
    let pair = Pair::<u32, 4> { sum: 3, ..Pair::default() };
    assert_eq!(<Sums<u32, 4> as View<Pair<u32, 4>>>::view(&pair).sum, 3);
}

mod elsewhere {
    pub(super) use superstep as engine;

    #[derive(engine::State, Clone, Default)]
    #[state(crate = crate::elsewhere::engine)]
    pub(super) struct Moved {
        #[channel(reduce_with = fold)]
        total: u64,
    }

    #[derive(engine::View)]
    #[view(Moved, crate = self::engine)]
    pub(super) struct Total {
        pub(super) total: u64,
    }

    fn fold(total: &mut u64, update: u64) {
        *total += update;
    }
}

#[test]
fn the_library_may_be_elsewhere() {
    assert_eq!(channels::<elsewhere::Moved>(), [spec("total", Kind::Reduce, true, false)]);
    let update = elsewhere::Total { total: 1 }.into_update();
    assert_eq!(writes(update), writes(elsewhere::Moved::update().total(1)));
}

#[derive(State, Clone, Debug, Default, PartialEq)]
struct Labels {
    plain: Option<String>,
    path: std::option::Option<std::string::String>,
    #[channel(ephemeral)]
    fleeting: Option<String>,
    other: Option<Vec<String>>,
}

/// Text that may be missing is given as text, or as what may be missing.
#[test]
fn optional_text_is_given_as_text() {
    let name = "a".to_owned();
    let updates = [
        Labels::update().plain("a"),
        Labels::update().plain(&name),
        Labels::update().plain(name.clone()),
        Labels::update().plain(Some(name.clone())),
        Labels::update().plain('a'),
        Labels::update().plain(std::borrow::Cow::Borrowed("a")),
    ];
    for update in updates {
        assert_eq!(
            format!("{update:?}"),
            format!("{:?}", Labels::update().plain(Some(name.clone())))
        );
    }
    let missing = Labels::update().plain(None).path("b").fleeting("c").other(vec!["d".to_owned()]);
    let writes = missing.into_writes();
    assert_eq!(writes.len(), 4);
}
