//! The list of mistakes, each with the token it is reported at, and what is written in spite of them. What the code does
//! is tested in the `superstep` crate, where it can run.

use proc_macro2::TokenStream;
use syn::{DeriveInput, parse_str};

use crate::errors::Errors;
use crate::{check, parse};

fn input(source: &str) -> DeriveInput {
    parse_str(source).expect("the source of a test is Rust")
}

fn listed(errors: Errors) -> Vec<String> {
    let shown = |error: syn::Error| {
        let token = error.span().source_text().unwrap_or_default();
        format!("{token} -> {error}")
    };
    errors.into_list().into_iter().map(shown).collect()
}

/// The mistakes in a state.
fn state(source: &str) -> Vec<String> {
    let mut errors = Errors::default();
    let parsed = parse::state(&input(source), &mut errors);
    check::state(parsed, &mut errors);
    listed(errors)
}

/// The mistakes in a state with these fields.
fn fields(fields: &str) -> Vec<String> {
    state(&format!("struct Essay {{ {fields} }}"))
}

/// The mistakes in a view.
fn view(source: &str) -> Vec<String> {
    let mut errors = Errors::default();
    let parsed = parse::view(&input(source), &mut errors);
    check::view(parsed, &mut errors);
    listed(errors)
}

/// The code without spaces, which the compiler puts wherever it likes.
fn code(tokens: TokenStream) -> String {
    tokens.to_string().split_whitespace().collect()
}

const NONE: [&str; 0] = [];

#[test]
fn a_state_without_mistakes_has_none() {
    let source = "
        #[state(crate = my::superstep)]
        pub struct Essay<T: Ord, const N: usize = 3> where T: Copy {
            topic: String,
            #[channel(reduce = my::Reducer<T, N>, delta = 10)] a: Vec<T>,
            #[channel(reduce_with = <T as Fold>::fold, update = (T, [u8; N]), delta = false)] b: T,
            #[channel(any_value, private)] c: String,
            #[channel(ephemeral, guard = false,)] d: String,
            #[channel(untracked)] #[channel(guard = true)] e: String,
            #[channel(topic, accumulate, rename = \"a.b\")] f: Vec<Self>,
            #[channel()] r#type: String,
        }";
    assert_eq!(state(source), NONE);
    assert!(!code(crate::state(&input(source))).contains("compile_error"));
}

#[test]
fn a_state_is_a_struct_with_named_fields() {
    let cases = [
        ("enum Essay { A }", "enum -> a state is a struct with named fields, but this is an enum"),
        (
            "union Essay { a: u8 }",
            "union -> a state is a struct with named fields, but this is a union",
        ),
        (
            "struct Essay(u8, u8);",
            "(u8, u8) -> a state is a struct with named fields, but this is a tuple struct",
        ),
        (
            "struct Essay;",
            "Essay -> a state is a struct with named fields, but this is a unit struct",
        ),
        (
            "struct Essay<'a> { a: &'a str }",
            "'a -> a state owns its values, so it has no lifetime parameters",
        ),
    ];
    for (source, mistake) in cases {
        assert_eq!(state(source), [mistake]);
    }
}

#[test]
fn an_unknown_key_gets_the_nearest_known_one() {
    let mistakes = fields(
        "#[channel(redcue = Append)] a: String,
         #[channel(acumulate, topic)] b: Vec<String>,
         #[channel(zzzzzz = Map<String, u8>, private, private)] c: String,",
    );
    assert_eq!(
        mistakes,
        [
            "redcue -> `#[channel(...)]` has no key `redcue`; did you mean `reduce`?",
            "acumulate -> `#[channel(...)]` has no key `acumulate`; did you mean `accumulate`?",
            "zzzzzz -> `#[channel(...)]` has no key `zzzzzz`; known are `reduce`, `reduce_with`, \
             `any_value`, `ephemeral`, `untracked`, `topic`, `update`, `guard`, `accumulate`, \
             `delta`, `private`, `rename`",
            "private -> `private` is given twice",
        ]
    );
}

#[test]
fn a_key_has_the_value_it_takes() {
    let mistakes = fields(
        "#[channel(reduce)] a: String,
         #[channel(reduce = )] b: String,
         #[channel(reduce_with = |a, b| {}, private)] c: String,
         #[channel(topic = true)] d: String,
         #[channel(private(yes))] e: String,
         #[channel(ephemeral, guard = 1)] f: String,
         #[channel(ephemeral, guard)] g: String,
         #[channel(rename = name)] h: String,
         #[channel(reduce = Sum, delta = true)] i: u8,
         #[channel(reduce = Sum, delta = -1)] j: u8,
         #[channel(reduce = Sum delta = 1)] k: u8,
         #[channel = \"l\"] l: u8,
         #[channel(3)] m: u8,",
    );
    assert_eq!(
        mistakes,
        [
            "reduce -> `reduce` takes a reducer, such as `Append`",
            "reduce -> `reduce` takes a reducer, such as `Append`",
            "| -> `reduce_with` takes the path of a `fn(&mut T, U)`",
            "topic -> `topic` takes no value",
            "private -> `private` takes no value",
            "1 -> `guard` takes `true` or `false`",
            "guard -> `guard` takes `true` or `false`",
            "name -> `rename` takes a name in quotes",
            "true -> `delta` takes a number of updates, or `false`",
            "delta -> expected `,`",
            "= -> expected `(`",
            "3 -> expected ident",
            "-1 -> `delta` takes a number of updates, or `false`",
        ]
    );
}

#[test]
fn a_channel_has_one_kind() {
    let mistakes = fields(
        "#[channel(topic, reduce = Append, any_value)] a: Vec<String>,
         #[channel(reduce = A)] #[channel(reduce = B)] b: String,
         #[channel(ephemeral, untracked, guard = false)] r#type: String,",
    );
    assert_eq!(
        mistakes,
        [
            "reduce -> `reduce` is given twice",
            "reduce -> field `a` is `topic` already; a channel has one kind",
            "any_value -> field `a` is `topic` already; a channel has one kind",
            "untracked -> field `type` is `ephemeral` already; a channel has one kind",
        ]
    );
}

#[test]
fn an_option_goes_with_its_kind() {
    let mistakes = fields(
        "#[channel(guard = false, accumulate, delta = 2, update = u8)] all: String,
         #[channel(reduce = Sum, guard = false, accumulate, update = u8)] reduced: u8,
         #[channel(topic, delta = false)] topic: Vec<u8>,
         #[channel(reduce_with = f, delta = 0)] zero: u8,
         #[channel(reduce_with = f, delta = 99999999999999999999)] large: u8,",
    );
    assert_eq!(
        mistakes,
        [
            "guard -> `guard` belongs to `ephemeral` or `untracked`",
            "accumulate -> `accumulate` belongs to `topic`",
            "delta -> `delta` belongs to `reduce` or `reduce_with`",
            "update -> `update` belongs to `reduce_with`",
            "guard -> `guard` belongs to `ephemeral` or `untracked`",
            "accumulate -> `accumulate` belongs to `topic`",
            "update -> `update` belongs to `reduce_with`; a reducer says itself what it takes",
            "delta -> `delta` belongs to `reduce` or `reduce_with`",
            "0 -> `delta` is at least 1; `delta = false` stores whole values",
            "99999999999999999999 -> `delta` takes a number of updates, or `false`",
        ]
    );
}

#[test]
fn a_name_is_free_and_not_reserved() {
    let mistakes = fields(
        "#[channel(rename = \"\")] a: u8,
         configurable: u8,
         #[channel(rename = \"|\")] b: u8,
         #[channel(rename = \"branch:to:a\")] c: u8,
         topic: u8,
         #[channel(rename = \"topic\")] e: u8,
         #[channel(rename = \"join\")] f: u8,
         __pregel_tasks: u8,
         #[channel(reduce = Sum)] count: u8,
         overwrite_count: u8,
         overwrite_topic: u8,",
    );
    assert_eq!(
        mistakes,
        [
            "\"\" -> the channel name `` is empty; give the channel another with `rename`",
            "configurable -> the channel name `configurable` is reserved; give the channel another \
             with `rename`",
            "\"|\" -> the channel name `|` contains `:` or `|`, which are reserved; give the \
             channel another with `rename`",
            "\"branch:to:a\" -> the channel name `branch:to:a` contains `:` or `|`, which are \
             reserved; give the channel another with `rename`",
            "\"topic\" -> the channel of field `topic` has the name `topic` already",
            "__pregel_tasks -> the channel name `__pregel_tasks` is reserved; give the channel \
             another with `rename`",
            "overwrite_count -> `overwrite_count` is the method that overwrites `count`; rename \
             the field",
        ]
    );
}

/// The checks of a graph ask the same function, and have a test of their own for it.
#[test]
fn every_name_that_a_graph_refuses_is_refused() {
    for name in superstep_names::RESERVED.iter().copied().chain(["", ":", "|", "a:b", "join:a+b:c"])
    {
        let mistakes = fields(&format!("#[channel(rename = {name:?})] a: u8"));
        assert_eq!(mistakes.len(), 1, "{name}: {mistakes:?}");
    }
}

#[test]
fn attributes_stand_where_they_belong() {
    let mistakes = state(
        "#[channel(topic)] #[state(crates = a)] struct Essay { #[state(crate = a)] a: String }",
    );
    assert_eq!(
        mistakes,
        [
            "crates -> `#[state(...)]` has no key `crates`; did you mean `crate`?",
            "channel -> `#[channel(...)]` goes on a field",
            "state -> `#[state(...)]` goes on the struct",
        ]
    );
}

#[test]
fn a_view_says_of_what_it_is() {
    assert_eq!(view("#[view(Essay<T>, crate = a)] struct Part<T> { a: T }"), NONE);
    let cases = [
        ("struct Part { a: u8 }", "Part -> a view says of what state it is: `#[view(State)]`"),
        (
            "#[view(Essay)] enum Part { A }",
            "enum -> a view is a struct with named fields, but this is an enum",
        ),
        (
            "#[view(Essay)] struct Part<'a> { a: &'a str }",
            "'a -> a view owns its values, so it has no lifetime parameters",
        ),
    ];
    for (source, mistake) in cases {
        assert_eq!(view(source), [mistake]);
    }
}

#[test]
fn a_view_has_each_field_once() {
    let mistakes = view(
        "#[view(Essay)] struct Part {
            topic: String,
            #[view(rename = \"topic\")] a: String,
            #[view(rename = \"\")] b: String,
            #[view(rename = \"self\")] c: String,
            #[view(channel = \"\")] d: String,
            #[view(renam = \"type\")] e: String,
            #[view(rename = \"type\")] f: String,
        }",
    );
    assert_eq!(
        mistakes,
        [
            "renam -> `#[view(...)]` has no key `renam`; did you mean `rename`?",
            "a -> field `topic` views `topic` already",
            "\"\" -> `rename` names a field of the state",
            "\"self\" -> `rename` names a field of the state",
            "\"\" -> the channel name `` is empty",
        ]
    );
}

#[test]
fn a_state_with_mistakes_still_has_its_items() {
    let code = code(crate::state(&input(
        "pub struct Essay<T> { #[channel(topic, private = 1, delta = 2)] a: Vec<T>, b: T }",
    )));
    assert_eq!(code.matches("compile_error!{").count(), 2);
    for item in [
        "impl<T>::superstep::state::StateforEssay<T>",
        "fnchannels(schema:&mut::superstep::state::Schema<Self>){let_=schema;}",
        "pubstructEssayUpdate<T>",
        "pubfnupdate()->EssayUpdate<T>",
        "pubfna(mutself",
        "pubfnb(mutself",
        "::superstep::IntoOutput<Essay<T>>forEssayUpdate<T>",
        "::superstep::IntoInput<Essay<T>>forEssayUpdate<T>",
    ] {
        assert!(code.contains(item), "{item} is not in {code}");
    }
}

#[test]
fn what_is_no_struct_still_has_its_items() {
    let code = code(crate::state(&input("enum Essay { A }")));
    assert!(code.starts_with("::core::compile_error!{"), "{code}");
    assert!(
        code.contains("impl::superstep::state::StateforEssay{typeUpdate=EssayUpdate;"),
        "{code}"
    );
}

#[test]
fn a_view_with_mistakes_is_still_a_view() {
    let code = code(crate::view(&input("#[view(Essay)] struct Part(u8);")));
    assert!(code.starts_with("::core::compile_error!{"), "{code}");
    assert!(code.contains("impl::superstep::View<Essay>forPart"), "{code}");
    assert!(code.contains("impl::superstep::IntoInput<Essay>forPart"), "{code}");
}

#[test]
fn code_has_only_full_paths() {
    let code =
        code(crate::state(&input("#[state(crate = my::engine)] struct Essay { a: String }")));
    assert!(
        code.contains("impl my::engine::state::StateforEssay".replace(' ', "").as_str()),
        "{code}"
    );
    assert!(!code.contains("superstep"), "{code}");
}

#[test]
fn mistakes_of_a_tool_are_told_at_once() {
    let function = syn::parse_str("fn find<T>(&self, topic: &str) {}").expect("a function");
    let code = code(crate::tool::tool("aprove".parse().expect("tokens"), function));
    for text in [
        "didyoumean`approve`?",
        "`#[tool]`isforan`asyncfn`",
        "toknowalltypes",
        "notforamethod",
        "mustownitsarguments",
        "returnswhatthemodelistold",
        "needsdocumentation",
    ] {
        assert!(code.contains(text), "{text}: {code}");
    }
}

#[test]
fn a_tool_takes_what_the_agent_has_from_the_agent() {
    let source = "/// Finds.\nasync fn find(/// What.\n topic: String, call: Call, Ctx(db): Ctx<Db>) -> String { topic }";
    let function = syn::parse_str(source).expect("a function");
    let code =
        code(crate::tool::tool("approve, crate = my::agents".parse().expect("tokens"), function));
    assert!(code.contains("struct__Arguments{#[doc=\"What.\"]topic:String,}"), "{code}");
    assert!(code.contains("<Callasmy::agents::tool::FromInvocation>"), "{code}");
    assert!(code.contains(".approve()"), "{code}");
    assert!(!code.contains("superstep"), "{code}");
}
