//! `#[task]` and `#[entrypoint]`: functions as recorded calls and as workflows.
//!
//! The generated code calls one library function each.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitStr, Meta, Pat, Path, Token, Type};

use crate::errors::{Errors, nearest};

/// The options in the attribute.
#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    library: Option<Path>,
}

/// One argument of the function.
struct Argument {
    name: Ident,
    ty: Type,
    is_task: bool,
}

struct Function {
    item: ItemFn,
    options: Options,
    arguments: Vec<Argument>,
}

pub(crate) fn task(options: TokenStream, item: ItemFn) -> TokenStream {
    let mut errors = Errors::default();
    let function = read(options, item, "task", &mut errors);
    if !errors.is_empty() {
        return function.refused(errors);
    }
    function.as_call()
}

pub(crate) fn entrypoint(options: TokenStream, item: ItemFn) -> TokenStream {
    let mut errors = Errors::default();
    let function = read(options, item, "entrypoint", &mut errors);
    let inputs: Vec<_> = function.arguments.iter().filter(|argument| !argument.is_task).collect();
    match &inputs[..] {
        [] | [_] => {}
        [_, second, ..] => errors.at(
            &second.name,
            "a workflow has one input; take several values as a tuple or a struct",
        ),
    }
    if !errors.is_empty() {
        return function.refused(errors);
    }
    function.as_workflow()
}

fn read(options: TokenStream, item: ItemFn, what: &str, errors: &mut Errors) -> Function {
    let options = read_options(options, errors);
    let signature = &item.sig;
    if signature.asyncness.is_none() {
        errors.at(signature.fn_token, format!("`#[{what}]` is for an `async fn`"));
    }
    if !signature.generics.params.is_empty() {
        errors.at(
            &signature.generics.params,
            format!("`#[{what}]` needs to know all types; use `Task::call` in a generic function"),
        );
    }
    if matches!(signature.output, syn::ReturnType::Default) {
        errors
            .at(&signature.ident, format!("`#[{what}]` is for a function that returns a `Result`"));
    }
    let mut arguments = Vec::new();
    for input in &signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                errors.at(receiver, format!("`#[{what}]` is for a function, not for a method"));
            }
            FnArg::Typed(typed) => {
                if let Type::Reference(reference) = &*typed.ty {
                    errors.at(
                        reference,
                        "what runs again must own its arguments; take the value itself",
                    );
                }
                let name = match &*typed.pat {
                    Pat::Ident(pattern) => pattern.ident.clone(),
                    // The function itself destructures the value.
                    other => format_ident!("argument_{}", arguments.len(), span = other.span()),
                };
                let (is_task, ty) = (is_task(&typed.ty), (*typed.ty).clone());
                arguments.push(Argument { name, ty, is_task });
            }
        }
    }
    Function { item, options, arguments }
}

fn is_task(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "Task"))
}

fn read_options(tokens: TokenStream, errors: &mut Errors) -> Options {
    let mut options = Options::default();
    let list = match Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(list) => list,
        Err(error) => {
            errors.push(error);
            return options;
        }
    };
    for meta in list {
        let known = ["name", "crate"];
        let Meta::NameValue(pair) = &meta else {
            errors.at(&meta, "write `name = \"...\"` or `crate = path`");
            continue;
        };
        if pair.path.is_ident("name") {
            match &pair.value {
                Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => options.name = Some(name.clone()),
                other => errors.at(other, "the name is a text"),
            }
        } else if pair.path.is_ident("crate") {
            match &pair.value {
                Expr::Path(path) => options.library = Some(path.path.clone()),
                other => errors.at(other, "the crate is a path"),
            }
        } else {
            let name = pair.path.to_token_stream().to_string();
            errors.at(&pair.path, format!("unknown option `{name}`{}", nearest(&name, &known)));
        }
    }
    options
}

impl Function {
    fn name(&self) -> LitStr {
        let ident = &self.item.sig.ident;
        let own = || LitStr::new(&ident.to_string(), ident.span());
        self.options.name.clone().unwrap_or_else(own)
    }

    fn library(&self) -> TokenStream {
        self.options.library.as_ref().map_or_else(|| quote!(::superstep), ToTokens::to_token_stream)
    }

    /// The errors, and the original function, so that its body is checked, too.
    fn refused(&self, errors: Errors) -> TokenStream {
        let errors = errors.into_compile_errors();
        let item = &self.item;
        quote!(#errors #[allow(dead_code)] #item)
    }

    /// The original function, nested in the generated one of the same name.
    fn inner(&self) -> TokenStream {
        let ItemFn { sig, block, .. } = &self.item;
        quote!(#sig #block)
    }

    fn as_call(&self) -> TokenStream {
        let (library, name, inner) = (self.library(), self.name(), self.inner());
        let ItemFn { attrs, vis, sig, .. } = &self.item;
        let ident = &sig.ident;
        let syn::ReturnType::Type(_, output) = &sig.output else { return TokenStream::new() };
        let plain: Vec<_> = self.arguments.iter().filter(|argument| !argument.is_task).collect();
        let (names, types): (Vec<_>, Vec<_>) =
            plain.iter().map(|argument| (&argument.name, &argument.ty)).unzip();
        let passed = self.arguments.iter().map(|argument| {
            let name = &argument.name;
            if argument.is_task { quote!(__task.clone()) } else { quote!(#name.clone()) }
        });
        quote! {
            #(#attrs)*
            #vis fn #ident(
                task: &#library::Task,
                #(#names: #types,)*
            ) -> #library::func::Call<'static, <#output as #library::func::Fallible>::Value> {
                #inner
                let __args = #library::func::arguments(&(#(&#names,)*));
                #library::Task::call_with(task, #name, move |__task: #library::Task| {
                    #ident(#(#passed),*)
                })
                .recorded_args(__args)
            }
        }
    }

    fn as_workflow(&self) -> TokenStream {
        let (library, name, inner) = (self.library(), self.name(), self.inner());
        let ItemFn { attrs, vis, sig, .. } = &self.item;
        let ident = &sig.ident;
        let input = self.arguments.iter().find(|argument| !argument.is_task);
        let input = input.map_or_else(|| quote!(()), |argument| argument.ty.to_token_stream());
        let passed = self.arguments.iter().map(|argument| {
            if argument.is_task { quote!(__task.clone()) } else { quote!(__input) }
        });
        let syn::ReturnType::Type(_, output) = &sig.output else { return TokenStream::new() };
        let returned = quote!(<#output as #library::func::Fallible>::Value);
        quote! {
            #(#attrs)*
            #vis fn #ident() -> #library::func::Entrypoint<
                #input,
                <#returned as #library::func::IntoFinal>::Output,
            > {
                #inner
                #library::func::Entrypoint::new(
                    #name,
                    |__input: #input, __task: #library::Task| #ident(#(#passed),*),
                )
            }
        }
    }
}
