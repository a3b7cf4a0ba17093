//! Reads what stands in the source, without asking whether its parts go together.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::{
    Attribute, Data, DeriveInput, ExprPath, Fields, Generics, Ident, LitBool, LitInt, LitStr, Path,
    Token, Type, Visibility,
};

use crate::errors::{Errors, nearest};

/// A type that derives something, as far as both macros look at it.
pub(crate) struct Source {
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) generics: Generics,
    /// Where the library is.
    pub(crate) root: Path,
}

pub(crate) struct StateSource {
    pub(crate) source: Source,
    pub(crate) fields: Vec<StateField>,
}

pub(crate) struct StateField {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
    pub(crate) attrs: ChannelAttrs,
}

/// The keys of a field's `#[channel(...)]` attributes.
#[derive(Default)]
pub(crate) struct ChannelAttrs {
    /// All that say what the channel does, in the order they stand there.
    pub(crate) kinds: Vec<(Ident, KindAttr)>,
    pub(crate) update: Option<(Ident, Type)>,
    pub(crate) guard: Option<(Ident, bool)>,
    pub(crate) accumulate: Option<Ident>,
    pub(crate) delta: Option<(Ident, DeltaAttr)>,
    pub(crate) private: bool,
    pub(crate) rename: Option<LitStr>,
}

pub(crate) enum KindAttr {
    Reduce(Box<Type>),
    ReduceWith(ExprPath),
    AnyValue,
    Ephemeral,
    Untracked,
    Topic,
}

pub(crate) enum DeltaAttr {
    Off,
    Every(LitInt),
}

pub(crate) struct ViewSource {
    pub(crate) source: Source,
    /// The state that is viewed, if the struct says which.
    pub(crate) of: Option<Type>,
    pub(crate) fields: Vec<ViewField>,
}

pub(crate) struct ViewField {
    pub(crate) ident: Ident,
    /// The state's field, if it has another name.
    pub(crate) rename: Option<LitStr>,
    /// The channel, if it has another name than the state's field.
    pub(crate) channel: Option<LitStr>,
}

pub(crate) fn state(input: &DeriveInput, errors: &mut Errors) -> StateSource {
    let mut root = default_root();
    let mut keys = Keys::new("state", &["crate"]);
    keys.read(&input.attrs, errors, |key, input| {
        root = value(key, input, "the path of the library")?;
        Ok(())
    });
    misplaced(&input.attrs, "channel", "a field", errors);

    let own = Own::of(input);
    let fields = named_fields(input, "a state", errors).map(|(ident, field)| {
        misplaced(&field.attrs, "state", "the struct", errors);
        let ty = own.spell_out(&field.ty);
        StateField { ident: ident.clone(), ty, attrs: channel(&field.attrs, &own, errors) }
    });
    let fields = fields.collect();
    StateSource { source: source(input, root), fields }
}

pub(crate) fn view(input: &DeriveInput, errors: &mut Errors) -> ViewSource {
    let mut root = default_root();
    let mut of = None;
    for attr in input.attrs.iter().filter(|attr| attr.path().is_ident("view")) {
        let parsed = attr.parse_args_with(|input: ParseStream<'_>| {
            of = Some(input.parse::<Type>()?);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
            input.parse::<TokenStream>()
        });
        let rest = match parsed {
            Ok(rest) => rest,
            Err(error) => {
                errors.at(&attr.meta, format!("expected `#[view(State)]`: {error}"));
                continue;
            }
        };
        Keys::new("view", &["crate"]).read_tokens(rest, errors, |key, input| {
            root = value(key, input, "the path of the library")?;
            Ok(())
        });
    }

    let fields = named_fields(input, "a view", errors).map(|(ident, field)| {
        let mut view = ViewField { ident: ident.clone(), rename: None, channel: None };
        Keys::new("view", &["rename", "channel"]).read(&field.attrs, errors, |key, input| {
            let name = value(key, input, "a name in quotes")?;
            let place = if key == "rename" { &mut view.rename } else { &mut view.channel };
            *place = Some(name);
            Ok(())
        });
        view
    });
    let fields = fields.collect();
    ViewSource { source: source(input, root), of, fields }
}

fn source(input: &DeriveInput, root: Path) -> Source {
    let DeriveInput { ident, vis, generics, .. } = input;
    Source { ident: ident.clone(), vis: vis.clone(), generics: generics.clone(), root }
}

fn default_root() -> Path {
    syn::parse_quote!(::superstep)
}

/// The fields of a struct, or none and a mistake.
fn named_fields<'a>(
    input: &'a DeriveInput,
    what: &str,
    errors: &mut Errors,
) -> impl Iterator<Item = (&'a Ident, &'a syn::Field)> + use<'a> {
    let mut wrong = |tokens: &dyn ToTokens, is: &str| {
        errors.at(tokens, format!("{what} is a struct with named fields, but this is {is}"));
    };
    let fields = match &input.data {
        Data::Struct(data) => match &data.fields {
            Fields::Named(fields) => Some(fields.named.iter()),
            Fields::Unnamed(fields) => {
                wrong(fields, "a tuple struct");
                None
            }
            Fields::Unit => {
                wrong(&input.ident, "a unit struct");
                None
            }
        },
        Data::Enum(data) => {
            wrong(&data.enum_token, "an enum");
            None
        }
        Data::Union(data) => {
            wrong(&data.union_token, "a union");
            None
        }
    };
    fields.into_iter().flatten().filter_map(|field| Some((field.ident.as_ref()?, field)))
}

fn misplaced(attrs: &[Attribute], name: &str, place: &str, errors: &mut Errors) {
    for attr in attrs.iter().filter(|attr| attr.path().is_ident(name)) {
        errors.at(attr.path(), format!("`#[{name}(...)]` goes on {place}"));
    }
}

const CHANNEL_KEYS: &[&str] = &[
    "reduce",
    "reduce_with",
    "any_value",
    "ephemeral",
    "untracked",
    "topic",
    "update",
    "guard",
    "accumulate",
    "delta",
    "private",
    "rename",
];

fn channel(attrs: &[Attribute], own: &Own, errors: &mut Errors) -> ChannelAttrs {
    let mut channel = ChannelAttrs::default();
    Keys::new("channel", CHANNEL_KEYS).read(attrs, errors, |key, input| {
        let kind = match key.to_string().as_str() {
            "reduce" => {
                let reducer: Type = value(key, input, "a reducer, such as `Append`")?;
                KindAttr::Reduce(Box::new(own.spell_out(&reducer)))
            }
            "reduce_with" => {
                let function: ExprPath = value(key, input, "the path of a `fn(&mut T, U)`")?;
                KindAttr::ReduceWith(own.spell_out(&function))
            }
            "any_value" => flag(key, input, KindAttr::AnyValue)?,
            "ephemeral" => flag(key, input, KindAttr::Ephemeral)?,
            "untracked" => flag(key, input, KindAttr::Untracked)?,
            "topic" => flag(key, input, KindAttr::Topic)?,
            "update" => {
                let update: Type = value(key, input, "a type")?;
                channel.update = Some((key.clone(), own.spell_out(&update)));
                return Ok(());
            }
            "guard" => {
                let guard: LitBool = value(key, input, "`true` or `false`")?;
                channel.guard = Some((key.clone(), guard.value));
                return Ok(());
            }
            "delta" => {
                let delta = value(key, input, "a number of updates, or `false`")?;
                channel.delta = Some((key.clone(), delta));
                return Ok(());
            }
            "rename" => {
                channel.rename = Some(value(key, input, "a name in quotes")?);
                return Ok(());
            }
            "private" => {
                channel.private = flag(key, input, true)?;
                return Ok(());
            }
            _ => {
                channel.accumulate = flag(key, input, Some(key.clone()))?;
                return Ok(());
            }
        };
        channel.kinds.push((key.clone(), kind));
        Ok(())
    });
    channel
}

impl Parse for DeltaAttr {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if !input.peek(LitBool) {
            return input.parse().map(Self::Every);
        }
        let off: LitBool = input.parse()?;
        if off.value {
            return Err(syn::Error::new(off.span, ""));
        }
        Ok(Self::Off)
    }
}

/// Reads `key = value, key, ...`, where each key is known and stands there once.
struct Keys {
    attr: &'static str,
    known: &'static [&'static str],
    seen: Vec<Ident>,
}

impl Keys {
    fn new(attr: &'static str, known: &'static [&'static str]) -> Self {
        Self { attr, known, seen: Vec::new() }
    }

    fn read(
        &mut self,
        attrs: &[Attribute],
        errors: &mut Errors,
        mut take: impl FnMut(&Ident, ParseStream<'_>) -> syn::Result<()>,
    ) {
        for attr in attrs.iter().filter(|attr| attr.path().is_ident(self.attr)) {
            match attr.meta.require_list() {
                Ok(list) => self.read_tokens(list.tokens.clone(), errors, &mut take),
                Err(error) => errors.push(error),
            }
        }
    }

    fn read_tokens(
        &mut self,
        tokens: TokenStream,
        errors: &mut Errors,
        mut take: impl FnMut(&Ident, ParseStream<'_>) -> syn::Result<()>,
    ) {
        let read = |input: ParseStream<'_>| {
            while !input.is_empty() {
                if let Err(error) = self.read_key(input, &mut take) {
                    errors.push(error);
                    skip(input)?;
                } else if !input.is_empty() && !input.peek(Token![,]) {
                    errors.push(input.error("expected `,`"));
                    skip(input)?;
                }
                input.parse::<Option<Token![,]>>()?;
            }
            Ok(())
        };
        if let Err(error) = syn::parse::Parser::parse2(read, tokens) {
            errors.push(error);
        }
    }

    fn read_key(
        &mut self,
        input: ParseStream<'_>,
        take: &mut impl FnMut(&Ident, ParseStream<'_>) -> syn::Result<()>,
    ) -> syn::Result<()> {
        let key = input.call(Ident::parse_any)?;
        let name = key.to_string();
        if !self.known.contains(&name.as_str()) {
            let near = nearest(&name, self.known);
            let message = format!("`#[{}(...)]` has no key `{name}`{near}", self.attr);
            return Err(syn::Error::new(key.span(), message));
        }
        if self.seen.contains(&key) {
            return Err(syn::Error::new(key.span(), format!("`{name}` is given twice")));
        }
        self.seen.push(key.clone());
        take(&key, input)
    }
}

/// The value after `key =`.
fn value<T: Parse>(key: &Ident, input: ParseStream<'_>, what: &str) -> syn::Result<T> {
    let takes = |span| syn::Error::new(span, format!("`{key}` takes {what}"));
    if !input.peek(Token![=]) {
        return Err(takes(key.span()));
    }
    input.parse::<Token![=]>()?;
    // At the end of the attribute there is no token to point at but the key.
    let span = if input.is_empty() { key.span() } else { input.span() };
    input.parse().map_err(|_| takes(span))
}

/// A key that stands alone.
fn flag<T>(key: &Ident, input: ParseStream<'_>, set: T) -> syn::Result<T> {
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(set);
    }
    Err(syn::Error::new(key.span(), format!("`{key}` takes no value")))
}

/// Continues to the comma after a mistake. A type and the head of a closure are skipped whole,
/// because they may have commas of their own.
fn skip(input: ParseStream<'_>) -> syn::Result<()> {
    if input.parse::<Option<Token![=]>>()?.is_some() && input.fork().parse::<Type>().is_ok() {
        input.parse::<Type>()?;
    }
    let mut in_head = false;
    while !input.is_empty() && (in_head || !input.peek(Token![,])) {
        in_head ^= input.peek(Token![|]);
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// The type itself, to be named where `Self` would be another one.
struct Own(TokenStream);

impl Own {
    fn of(input: &DeriveInput) -> Self {
        let (ident, (_, generics, _)) = (&input.ident, input.generics.split_for_impl());
        Self(quote!(#ident #generics))
    }

    /// The same syntax with the type's name in place of `Self`.
    fn spell_out<T: Parse + ToTokens + Clone>(&self, syntax: &T) -> T {
        let spelt = self.replace(syntax.to_token_stream());
        syn::parse2(spelt).unwrap_or_else(|_| syntax.clone())
    }

    fn replace(&self, tokens: TokenStream) -> TokenStream {
        let mut spelt = TokenStream::new();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(ident) if ident == "Self" => {
                    let own = &self.0;
                    let qualifies = matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
                    spelt.extend(if qualifies { quote!(<#own>) } else { quote!(#own) });
                }
                TokenTree::Group(group) => {
                    let mut inner = Group::new(group.delimiter(), self.replace(group.stream()));
                    inner.set_span(group.span());
                    spelt.extend([TokenTree::Group(inner)]);
                }
                other => spelt.extend([other]),
            }
        }
        spelt
    }
}
