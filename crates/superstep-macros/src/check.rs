//! Interprets the parsed source. Inconsistencies become errors; the rest is passed to code
//! generation.

use proc_macro2::Span;
use superstep_names::{Refusal, refusal};
use syn::ext::IdentExt;
use syn::{ExprPath, GenericParam, Ident, LitStr, Type};

use crate::errors::Errors;
use crate::parse::{
    ChannelAttrs, DeltaAttr, KindAttr, Source, StateField, StateSource, ViewField, ViewSource,
};

pub(crate) struct State {
    pub(crate) source: Source,
    pub(crate) channels: Vec<Channel>,
}

pub(crate) struct Channel {
    pub(crate) field: Ident,
    pub(crate) ty: Type,
    pub(crate) name: LitStr,
    pub(crate) rule: Rule,
    pub(crate) private: bool,
}

/// The effect of a write to a channel.
#[expect(clippy::large_enum_variant, reason = "there is one for each field, for a moment")]
pub(crate) enum Rule {
    Last,
    Any,
    Ephemeral { guard: bool },
    Untracked { guard: bool },
    Topic { accumulate: bool },
    Reduce { reducer: Reducer, stored: Stored },
}

pub(crate) enum Reducer {
    Type(Type),
    Function { path: ExprPath, update: Type },
}

/// The stored form of a reduced channel.
pub(crate) enum Stored {
    /// What its reducer says.
    Either,
    Whole,
    Deltas(u64),
}

pub(crate) struct View {
    pub(crate) source: Source,
    pub(crate) of: Option<Type>,
    pub(crate) parts: Vec<Part>,
}

pub(crate) struct Part {
    pub(crate) field: Ident,
    /// The state's field.
    pub(crate) from: Ident,
    pub(crate) channel: LitStr,
}

pub(crate) fn state(state: StateSource, errors: &mut Errors) -> State {
    owned(&state.source, "a state", errors);
    let mut channels: Vec<_> =
        state.fields.into_iter().map(|field| channel(field, errors)).collect();
    for (at, channel) in channels.iter().enumerate() {
        names(channel, &channels[..at], errors);
    }
    methods(&mut channels, errors);
    State { source: state.source, channels }
}

/// A state outlives every borrow, because tasks and threads share it.
fn owned(source: &Source, what: &str, errors: &mut Errors) {
    for param in &source.generics.params {
        if let GenericParam::Lifetime(param) = param {
            let message = format!("{what} owns its values, so it has no lifetime parameters");
            errors.at(&param.lifetime, message);
        }
    }
}

fn channel(field: StateField, errors: &mut Errors) -> Channel {
    let StateField { ident, ty, attrs } = field;
    options(&attrs, errors);
    let name = attrs.rename.clone().unwrap_or_else(|| literal(&ident));
    let private = attrs.private;
    let rule = rule(attrs, &ident, &ty, errors);
    Channel { field: ident, ty, name, rule, private }
}

fn literal(ident: &Ident) -> LitStr {
    LitStr::new(&ident.unraw().to_string(), ident.span())
}

/// Each option belongs to some of the kinds.
fn options(attrs: &ChannelAttrs, errors: &mut Errors) {
    let has = |wanted: fn(&KindAttr) -> bool| attrs.kinds.iter().any(|(_, kind)| wanted(kind));
    if let Some((key, _)) = &attrs.guard
        && !has(|kind| matches!(kind, KindAttr::Ephemeral | KindAttr::Untracked))
    {
        errors.at(key, "`guard` belongs to `ephemeral` or `untracked`");
    }
    if let Some(key) = &attrs.accumulate
        && !has(|kind| matches!(kind, KindAttr::Topic))
    {
        errors.at(key, "`accumulate` belongs to `topic`");
    }
    if let Some((key, _)) = &attrs.delta
        && !has(|kind| matches!(kind, KindAttr::Reduce(_) | KindAttr::ReduceWith(_)))
    {
        errors.at(key, "`delta` belongs to `reduce` or `reduce_with`");
    }
    if let Some((key, _)) = &attrs.update
        && !has(|kind| matches!(kind, KindAttr::ReduceWith(_)))
    {
        let known = has(|kind| matches!(kind, KindAttr::Reduce(_)));
        let why = if known { "; a reducer says itself what it takes" } else { "" };
        errors.at(key, format!("`update` belongs to `reduce_with`{why}"));
    }
}

fn rule(attrs: ChannelAttrs, field: &Ident, ty: &Type, errors: &mut Errors) -> Rule {
    let guard = attrs.guard.is_none_or(|(_, guard)| guard);
    let mut kinds = attrs.kinds.into_iter();
    let Some((first, kind)) = kinds.next() else {
        return Rule::Last;
    };
    for (key, _) in kinds {
        let field = field.unraw();
        let message = format!("field `{field}` is `{first}` already; a channel has one kind");
        errors.at(key, message);
    }
    let reducer = match kind {
        KindAttr::AnyValue => return Rule::Any,
        KindAttr::Ephemeral => return Rule::Ephemeral { guard },
        KindAttr::Untracked => return Rule::Untracked { guard },
        KindAttr::Topic => return Rule::Topic { accumulate: attrs.accumulate.is_some() },
        KindAttr::Reduce(reducer) => Reducer::Type(*reducer),
        KindAttr::ReduceWith(path) => {
            let update = attrs.update.map_or_else(|| ty.clone(), |(_, update)| update);
            Reducer::Function { path, update }
        }
    };
    let stored = match attrs.delta {
        None => Stored::Either,
        Some((_, DeltaAttr::Off)) => Stored::Whole,
        Some((_, DeltaAttr::Every(number))) => match number.base10_parse() {
            Ok(0) => {
                errors.at(number, "`delta` is at least 1; `delta = false` stores whole values");
                Stored::Either
            }
            Ok(updates) => Stored::Deltas(updates),
            Err(_) => {
                errors.at(number, "`delta` takes a number of updates, or `false`");
                Stored::Either
            }
        },
    };
    Rule::Reduce { reducer, stored }
}

fn names(channel: &Channel, before: &[Channel], errors: &mut Errors) {
    let name = channel.name.value();
    if let Some(refusal) = refusal(&name) {
        let remedy = "; give the channel another with `rename`";
        errors.at(&channel.name, format!("the channel name `{name}` {refusal}{remedy}"));
    }
    if let Some(other) = before.iter().find(|other| other.name.value() == name) {
        let field = other.field.unraw();
        let message = format!("the channel of field `{field}` has the name `{name}` already");
        errors.at(&channel.name, message);
    }
}

/// The update has a method for each field, and for a reduced one a second method. A field whose method would have the
/// name of such a second one is left out, because the compiler would complain again.
fn methods(channels: &mut Vec<Channel>, errors: &mut Errors) {
    let reduced = channels.iter().filter(|channel| matches!(channel.rule, Rule::Reduce { .. }));
    let taken: Vec<_> =
        reduced.map(|channel| format!("overwrite_{}", channel.field.unraw())).collect();
    channels.retain(|channel| {
        let name = channel.field.unraw().to_string();
        let free = !taken.contains(&name);
        if !free {
            let of = name.strip_prefix("overwrite_").unwrap_or_default();
            let message =
                format!("`{name}` is the method that overwrites `{of}`; rename the field");
            errors.at(&channel.field, message);
        }
        free
    });
}

pub(crate) fn view(view: ViewSource, errors: &mut Errors) -> View {
    let ViewSource { source, of, fields } = view;
    owned(&source, "a view", errors);
    if of.is_none() {
        errors.at(&source.ident, "a view says of what state it is: `#[view(State)]`");
    }
    let mut parts: Vec<Part> = Vec::new();
    for field in fields {
        let Some(part) = part(field, errors) else { continue };
        if let Some(other) = parts.iter().find(|other| other.from == part.from) {
            let (from, field) = (part.from.unraw(), other.field.unraw());
            errors.at(&part.field, format!("field `{field}` views `{from}` already"));
        }
        parts.push(part);
    }
    View { source, of, parts }
}

fn part(field: ViewField, errors: &mut Errors) -> Option<Part> {
    let from = match &field.rename {
        None => field.ident.clone(),
        Some(name) => match identifier(&name.value(), name.span()) {
            Some(ident) => ident,
            None => {
                errors.at(name, "`rename` names a field of the state");
                return None;
            }
        },
    };
    let channel = field.channel.unwrap_or_else(|| literal(&from));
    if let Some(refusal @ Refusal::Empty) = refusal(&channel.value()) {
        errors.at(&channel, format!("the channel name `` {refusal}"));
    }
    Some(Part { field: field.ident, from, channel })
}

/// The name as an identifier, raw if it is a keyword.
fn identifier(name: &str, span: Span) -> Option<Ident> {
    let parse = |name: &str| syn::parse_str::<Ident>(name).ok();
    let mut ident = parse(name).or_else(|| parse(&format!("r#{name}")))?;
    ident.set_span(span);
    Some(ident)
}
