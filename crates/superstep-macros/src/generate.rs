//! Writes the code: declarations and calls of the library, no logic of its own.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Generics, Ident, Type};

use crate::check::{Channel, Part, Reducer, Rule, State, Stored, View};
use crate::errors::Errors;
use crate::parse::Source;

/// Whether functions get their bodies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Real,
    /// The source has mistakes, so that nothing will run. The items are there for the rest of the program to compile
    /// against, and do nothing that could raise a second error for the same mistake.
    Dummy,
}

/// The code, or the mistakes and a dummy of the code.
pub(crate) fn with_errors(errors: Errors, code: impl Fn(Body) -> TokenStream) -> TokenStream {
    if errors.is_empty() {
        return code(Body::Real);
    }
    let code = code(Body::Dummy);
    let errors = errors.into_compile_errors();
    quote!(#errors #code)
}

pub(crate) fn state(state: &State, body: Body) -> TokenStream {
    if has_lifetimes(&state.source.generics) {
        // No implementation can be right: a state is `'static`.
        return TokenStream::new();
    }
    let update = format_ident!("{}Update", state.source.ident.unraw());
    let state_impl = state_impl(state, &update, body);
    let update_type = update_type(&state.source, &update);
    let setters = setters(state, &update);
    let conversions = conversions(&state.source, &update);
    quote!(#state_impl #update_type #setters #conversions)
}

fn has_lifetimes(generics: &Generics) -> bool {
    generics.lifetimes().next().is_some()
}

/// The span of compiler errors about the code for this syntax. Names are looked up as in the rest
/// of the code, even if the syntax comes out of another macro.
fn at(syntax: &impl Spanned) -> Span {
    Span::call_site().located_at(syntax.span())
}

/// The generics with what the library asks of each type parameter.
fn bounded(source: &Source) -> Generics {
    let root = &source.root;
    let mut generics = source.generics.clone();
    let params: Vec<Ident> = generics.type_params().map(|param| param.ident.clone()).collect();
    if !params.is_empty() {
        let predicates = &mut generics.make_where_clause().predicates;
        for param in params {
            predicates.push(syn::parse_quote!(#param: #root::state::FieldValue));
        }
    }
    generics
}

fn state_impl(state: &State, update: &Ident, body: Body) -> TokenStream {
    let Source { ident, vis, generics, root } = &state.source;
    let (plain_impl, _, plain_where) = generics.split_for_impl();
    let bounded = bounded(&state.source);
    let (impl_generics, ty_generics, where_clause) = bounded.split_for_impl();
    let (channels, empty) = match body {
        Body::Real => {
            let channels = state.channels.iter().enumerate().map(|(index, it)| {
                let (storable, declaration) =
                    (storable(&it.ty, &state.source), declare(index, it, &state.source));
                quote!(#storable #declaration)
            });
            (quote!(#(#channels)*), quote!(::core::default::Default::default()))
        }
        Body::Dummy => {
            (quote!(let _ = schema;), quote!(::core::unreachable!("the state has mistakes")))
        }
    };
    // The compiler points at the struct if it has no `Clone`.
    let duplicate = match body {
        Body::Real => quote_spanned!(at(ident)=> ::core::clone::Clone::clone(self)),
        Body::Dummy => quote!(::core::unreachable!("the state has mistakes")),
    };
    let doc = format!("An update of `{}` that writes nothing yet.", ident.unraw());
    quote! {
        #[automatically_derived]
        impl #impl_generics #root::state::State for #ident #ty_generics #where_clause {
            type Update = #update #ty_generics;

            fn channels(schema: &mut #root::state::Schema<Self>) {
                #channels
            }

            fn empty(_: &::std::sync::Arc<#root::state::Schema<Self>>) -> Self {
                #empty
            }

            fn duplicate(&self) -> Self {
                #duplicate
            }
        }

        #[automatically_derived]
        #[allow(dead_code)]
        impl #plain_impl #ident #ty_generics #plain_where {
            #[doc = #doc]
            #vis fn update() -> #update #ty_generics {
                ::core::default::Default::default()
            }
        }
    }
}

/// Asks whether a field can be stored, before anything that needs it to be.
fn storable(ty: &Type, source: &Source) -> TokenStream {
    let root = &source.root;
    quote_spanned!(at(ty)=> #root::state::storable::<#ty>();)
}

/// The declaration of one channel, as a call on the schema.
fn declare(index: usize, channel: &Channel, source: &Source) -> TokenStream {
    let Channel { field, ty, name, rule, private } = channel;
    let root = &source.root;
    let get = quote!(|state| &state.#field, |state| &mut state.#field);
    let private = private.then(|| quote!(.private()));
    // A reducer that does not fit is found here and at the setter. The compiler shows two errors once if they are the same to
    // the letter, so both have the span of what the user wrote and not one of the macro.
    let call = |method: TokenStream, args: TokenStream, span: Span| {
        let schema = quote_spanned!(Span::call_site().located_at(span)=> schema);
        quote_spanned!(span=> #schema.#method(#name, #args #get) #private;)
    };
    let of_kind = |reducer: TokenStream, kind: TokenStream, span: Span| {
        let field = quote_spanned!(span=> field::<#ty, #reducer>);
        call(field, quote!(#root::state::Kind::#kind,), span)
    };
    let last = || quote!(#root::state::Last);
    match rule {
        Rule::Last => quote_spanned!(at(ty)=> schema.last::<#ty>(#name, #get) #private;),
        Rule::Any => of_kind(last(), quote!(Any), ty.span()),
        Rule::Ephemeral { guard } => {
            of_kind(last(), quote!(Ephemeral { guard: #guard }), ty.span())
        }
        Rule::Untracked { guard } => {
            of_kind(last(), quote!(Untracked { guard: #guard }), ty.span())
        }
        Rule::Topic { accumulate } => {
            let kind = quote!(Topic { accumulate: #accumulate });
            of_kind(quote_spanned!(ty.span()=> #root::state::Append), kind, ty.span())
        }
        Rule::Reduce { reducer, stored } => {
            let span = match reducer {
                Reducer::Type(reducer) => reducer.span(),
                Reducer::Function { .. } => at(ty),
            };
            let (item, reducer) = match reducer {
                Reducer::Type(reducer) => (TokenStream::new(), quote!(#reducer)),
                Reducer::Function { path, update } => {
                    function_reducer(index, channel, path, update, source)
                }
            };
            let call = match stored {
                Stored::Either => {
                    call(quote_spanned!(span=> reduce::<#ty, #reducer>), TokenStream::new(), span)
                }
                Stored::Whole => of_kind(reducer, quote!(Reduce), span),
                Stored::Deltas(updates) => {
                    of_kind(reducer, quote!(Delta(#root::state::Deltas::Every(#updates))), span)
                }
            };
            quote!(#item #call)
        }
    }
}

/// A reducer that calls a function, as an item and its type. The item stands in the body of a function, which gives it
/// no access to the state's type parameters, so it has them again.
fn function_reducer(
    index: usize,
    channel: &Channel,
    path: &syn::ExprPath,
    update: &Type,
    source: &Source,
) -> (TokenStream, TokenStream) {
    let Source { ident, generics, root, .. } = source;
    let name = format_ident!("__Reducer{index}");
    let ty = &channel.ty;
    let plain_where = &generics.where_clause;
    let bounded = bounded(source);
    let (impl_generics, ty_generics, where_clause) = bounded.split_for_impl();
    // Without a semicolon, so that a function that returns the new value instead of changing the old one is refused.
    let call = quote_spanned!(at(path)=> #path(value, update));
    let item = quote! {
        #[allow(dead_code)]
        struct #name #generics (::core::marker::PhantomData<fn() -> #ident #ty_generics>) #plain_where;

        impl #impl_generics #root::state::Reducer<#ty> for #name #ty_generics #where_clause {
            type Update = #update;

            fn reduce(value: &mut #ty, update: #update) {
                #call
            }
        }
    };
    (item, quote!(#name #ty_generics))
}

fn update_type(source: &Source, update: &Ident) -> TokenStream {
    let Source { ident, vis, generics, root } = source;
    let (impl_generics, ty_generics, where_clause) = generics.split_for_impl();
    let doc = format!("Writes to channels of `{}`.", ident.unraw());
    let name = update.to_string();
    quote! {
        #[doc = #doc]
        #[must_use = "an update writes nothing until a node returns it or a run takes it"]
        #vis struct #update #generics #where_clause {
            writes: #root::state::Writes,
            of: ::core::marker::PhantomData<fn() -> #ident #ty_generics>,
        }

        #[automatically_derived]
        impl #impl_generics ::core::clone::Clone for #update #ty_generics #where_clause {
            fn clone(&self) -> Self {
                Self {
                    writes: ::core::clone::Clone::clone(&self.writes),
                    of: ::core::marker::PhantomData,
                }
            }
        }

        #[automatically_derived]
        impl #impl_generics ::core::fmt::Debug for #update #ty_generics #where_clause {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_tuple(#name).field(&self.writes).finish()
            }
        }

        #[automatically_derived]
        impl #impl_generics ::core::default::Default for #update #ty_generics #where_clause {
            fn default() -> Self {
                Self {
                    writes: ::core::default::Default::default(),
                    of: ::core::marker::PhantomData,
                }
            }
        }
    }
}

fn setters(state: &State, update: &Ident) -> TokenStream {
    let bounded = bounded(&state.source);
    let (impl_generics, ty_generics, where_clause) = bounded.split_for_impl();
    let setters =
        state.channels.iter().enumerate().map(|(index, it)| setter(index, it, &state.source));
    // Fields may have names that are unusual for methods, and reducers that are more private than the state.
    quote! {
        #[automatically_derived]
        #[allow(
            dead_code,
            non_snake_case,
            private_bounds,
            private_interfaces,
            clippy::all,
            clippy::pedantic
        )]
        impl #impl_generics #update #ty_generics #where_clause {
            #(#setters)*
        }
    }
}

/// The method that writes one channel, and for a reduced one the method that overwrites it.
fn setter(index: usize, channel: &Channel, source: &Source) -> TokenStream {
    let Channel { field, ty, name, rule, .. } = channel;
    let Source { vis, root, .. } = source;
    let storable = storable(ty, source);
    let name = name.value();
    let reduced_by = |reducer: TokenStream, span: Span| {
        if is_number(ty) {
            let written = quote_spanned!(span=> <#reducer as #root::state::Reducer<#ty>>::Update);
            let push = quote_spanned!(span=> push::<#written>);
            (written, quote!(self.writes.#push(#index, value);))
        } else {
            // Not `impl Into<Update>`: with a reducer that does not fit, the method would be one more error.
            let into = quote!(#root::state::IntoWrite<#reducer, #ty>);
            (quote!(impl #into), quote!(<_ as #into>::write(value, &mut self.writes, #index);))
        }
    };
    let converted = |written: &TokenStream| {
        let (param, value) = param(ty, written, root);
        (param, quote!(self.writes.push::<#written>(#index, #value);))
    };
    let (param, push) = match rule {
        Rule::Reduce { reducer: Reducer::Function { update, .. }, .. } => {
            converted(&quote!(#update))
        }
        Rule::Reduce { reducer: Reducer::Type(reducer), .. } => {
            reduced_by(quote!(#reducer), reducer.span())
        }
        Rule::Topic { .. } => {
            reduced_by(quote_spanned!(ty.span()=> #root::state::Append), ty.span())
        }
        Rule::Last | Rule::Any | Rule::Ephemeral { .. } | Rule::Untracked { .. } => {
            converted(&quote!(#ty))
        }
    };
    let doc = match rule {
        Rule::Reduce { .. } => format!("Folds an update into the channel `{name}`."),
        Rule::Topic { .. } => format!("Adds items to the channel `{name}`."),
        _ => format!("Writes the channel `{name}`."),
    };
    let set = quote! {
        #[doc = #doc]
        #vis fn #field(mut self, value: #param) -> Self {
            #storable
            #push
            self
        }
    };
    if !matches!(rule, Rule::Reduce { .. }) {
        return set;
    }
    let method = format_ident!("overwrite_{}", field.unraw(), span = field.span());
    let doc = format!("Replaces the value of the channel `{name}`, whatever its reducer.");
    let (param, value) = self::param(ty, &quote!(#ty), root);
    quote! {
        #set

        #[doc = #doc]
        #[doc(alias = "Overwrite")]
        #vis fn #method(mut self, value: #param) -> Self {
            #storable
            self.writes.overwrite::<#ty>(#index, #value);
            self
        }
    }
}

/// The type of a setter's parameter for a field of type `ty`, and the expression that makes it what is written.
///
/// It takes `impl Into<T>`, except for numbers: a literal would be inferred as `i32`, which does
/// not convert to `u64`. An `Option<String>` takes text, because `&str` does not convert to
/// `Option<String>`.
fn param(ty: &Type, written: &TokenStream, root: &syn::Path) -> (TokenStream, TokenStream) {
    if is_number(ty) {
        (quote!(#written), quote!(value))
    } else if is_optional_text(ty) && quote!(#ty).to_string() == written.to_string() {
        let text = quote!(#root::state::OptionalText);
        (quote!(impl #text), quote!(#text::into_text(value)))
    } else {
        (quote!(impl ::core::convert::Into<#written>), quote!(::core::convert::Into::into(value)))
    }
}

/// Whether a type is written as `Option<String>`.
fn is_optional_text(ty: &Type) -> bool {
    let last = |ty: &Type| match ty {
        Type::Path(path) if path.qself.is_none() => path.path.segments.last().cloned(),
        _ => None,
    };
    let Some(option) = last(ty).filter(|segment| segment.ident == "Option") else { return false };
    let syn::PathArguments::AngleBracketed(inside) = &option.arguments else { return false };
    let mut inside = inside.args.iter();
    let (Some(syn::GenericArgument::Type(inner)), None) = (inside.next(), inside.next()) else {
        return false;
    };
    last(inner).is_some_and(|segment| segment.ident == "String" && segment.arguments.is_empty())
}

fn is_number(ty: &Type) -> bool {
    const NUMBERS: &[&str] = &[
        "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
        "f32", "f64",
    ];
    match ty {
        Type::Group(group) => is_number(&group.elem),
        Type::Paren(paren) => is_number(&paren.elem),
        Type::Path(path) => NUMBERS.iter().any(|number| path.path.is_ident(number)),
        _ => false,
    }
}

/// The implementations that make an update a node's result and a run's input.
fn conversions(source: &Source, update: &Ident) -> TokenStream {
    let Source { ident, root, .. } = source;
    let bounded = bounded(source);
    let (impl_generics, ty_generics, where_clause) = bounded.split_for_impl();
    let state = quote!(#ident #ty_generics);
    quote! {
        #[automatically_derived]
        impl #impl_generics #root::state::Update<#state> for #update #ty_generics #where_clause {
            fn into_writes(self) -> #root::state::Writes {
                self.writes
            }
        }

        #[automatically_derived]
        impl #impl_generics #root::IntoOutput<#state> for #update #ty_generics #where_clause {
            fn into_output(self) -> ::core::result::Result<#root::Output, #root::NodeError> {
                ::core::result::Result::Ok(#root::Output::writes(self.writes))
            }
        }

        #[automatically_derived]
        impl #impl_generics #root::IntoInput<#state> for #update #ty_generics #where_clause {
            fn into_input(self) -> #root::Input {
                #root::Input::writes(self.writes)
            }
        }
    }
}

pub(crate) fn view(view: &View, body: Body) -> TokenStream {
    let Some(of) = view.of.as_ref().filter(|_| !has_lifetimes(&view.source.generics)) else {
        return TokenStream::new();
    };
    let Source { ident, root, .. } = &view.source;
    let bounded = bounded(&view.source);
    let (impl_generics, ty_generics, where_clause) = bounded.split_for_impl();
    let (channels, take, give) = match body {
        Body::Real => view_bodies(&view.parts, of),
        Body::Dummy => {
            let never = quote!(::core::unreachable!("the view has mistakes"));
            (TokenStream::new(), quote!(let _ = state; #never), never)
        }
    };
    quote! {
        #[automatically_derived]
        impl #impl_generics #root::View<#of> for #ident #ty_generics #where_clause {
            const CHANNELS: &'static [&'static str] = &[#channels];

            fn view(state: &#of) -> Self {
                #take
            }

            fn into_update(self) -> <#of as #root::state::State>::Update {
                #give
            }
        }

        #[automatically_derived]
        impl #impl_generics #root::IntoInput<#of> for #ident #ty_generics #where_clause {
            fn into_input(self) -> #root::Input {
                let update = <Self as #root::View<#of>>::into_update(self);
                #root::Input::writes(#root::state::Update::<#of>::into_writes(update))
            }
        }
    }
}

/// The names of the channels, the view taken from the state, and the update made of the view.
fn view_bodies(parts: &[Part], of: &Type) -> (TokenStream, TokenStream, TokenStream) {
    let channels = parts.iter().map(|part| &part.channel);
    let take = parts.iter().map(|Part { field, from, .. }| {
        quote_spanned!(at(field)=> #field: ::core::clone::Clone::clone(&state.#from))
    });
    let give = parts
        .iter()
        .map(|Part { field, from, .. }| quote_spanned!(at(field)=> .#from(self.#field)));
    (quote!(#(#channels),*), quote!(Self { #(#take),* }), quote!(<#of>::update() #(#give)*))
}
