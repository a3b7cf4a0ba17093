//! `#[tool]`: a function as a tool of an agent.
//!
//! The generated code declares a struct of the arguments and calls library functions; it has no logic of its own.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{
    Attribute, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, LitStr, Meta, Pat, Path, Token, Type,
};

use crate::errors::{Errors, nearest};

#[derive(Default)]
struct Options {
    name: Option<LitStr>,
    library: Option<Path>,
    approve: bool,
    return_direct: bool,
}

/// One argument of the function.
struct Argument {
    name: Ident,
    ty: Type,
    /// Its documentation, which the model reads.
    docs: Vec<Attribute>,
    /// Whether it comes from the agent and not from the model.
    injected: bool,
}

pub(crate) fn tool(options: TokenStream, mut item: ItemFn) -> TokenStream {
    let mut errors = Errors::default();
    let options = read_options(options, &mut errors);
    let arguments = read_arguments(&mut item, &mut errors);
    let description = documentation(&item.attrs);
    if description.is_empty() {
        let text = "a tool needs documentation (`/// ...`): it tells the model what the tool does";
        errors.at(&item.sig.ident, text);
    }
    if !errors.is_empty() {
        let errors = errors.into_compile_errors();
        return quote!(#errors #[allow(dead_code)] #item);
    }
    generate(&options, &item, &arguments, &description)
}

fn read_arguments(item: &mut ItemFn, errors: &mut Errors) -> Vec<Argument> {
    let signature = &mut item.sig;
    if signature.asyncness.is_none() {
        errors.at(signature.fn_token, "`#[tool]` is for an `async fn`");
    }
    if !signature.generics.params.is_empty() {
        let text = "`#[tool]` needs to know all types; use `tool::function` for a generic tool";
        errors.at(&signature.generics.params, text);
    }
    if matches!(signature.output, syn::ReturnType::Default) {
        let text = "a tool returns what the model is told, such as a `String` or a `Result` of one";
        errors.at(&signature.ident, text);
    }
    let mut arguments = Vec::new();
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                errors.at(receiver, "`#[tool]` is for a function, not for a method");
            }
            FnArg::Typed(typed) => {
                if let Type::Reference(reference) = &*typed.ty {
                    let text = "a tool must own its arguments; take the value itself";
                    errors.at(reference, text);
                }
                let (docs, attrs) =
                    typed.attrs.drain(..).partition(|attribute| attribute.path().is_ident("doc"));
                typed.attrs = attrs;
                let injected = is_injected(&typed.ty);
                let name = match &*typed.pat {
                    Pat::Ident(pattern) => pattern.ident.clone(),
                    other if injected => {
                        format_ident!("argument_{}", arguments.len(), span = other.span())
                    }
                    other => {
                        errors.at(other, "the model gives arguments by name; give this one a name");
                        continue;
                    }
                };
                arguments.push(Argument { name, ty: (*typed.ty).clone(), docs, injected });
            }
        }
    }
    arguments
}

/// Whether a type is one of those that the agent provides, by the last part of its name.
fn is_injected(ty: &Type) -> bool {
    const PROVIDED: [&str; 6] = ["Call", "Task", "Ctx", "Arc", "AnyStore", "Invocation"];
    let Type::Path(path) = ty else { return false };
    let Some(last) = path.path.segments.last() else { return false };
    PROVIDED.iter().any(|name| last.ident == name)
}

/// The text of the documentation, as people read it.
fn documentation(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) => Some(line.value()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> = lines.map(|line| line.trim().to_owned()).collect();
    lines.join("\n").trim().to_owned()
}

fn read_options(tokens: TokenStream, errors: &mut Errors) -> Options {
    const KNOWN: [&str; 4] = ["name", "approve", "return_direct", "crate"];
    let mut options = Options::default();
    let list = match Punctuated::<Meta, Token![,]>::parse_terminated.parse2(tokens) {
        Ok(list) => list,
        Err(error) => {
            errors.push(error);
            return options;
        }
    };
    for meta in list {
        match &meta {
            Meta::Path(path) if path.is_ident("approve") => options.approve = true,
            Meta::Path(path) if path.is_ident("return_direct") => options.return_direct = true,
            Meta::NameValue(pair) if pair.path.is_ident("name") => match &pair.value {
                Expr::Lit(ExprLit { lit: Lit::Str(name), .. }) => options.name = Some(name.clone()),
                other => errors.at(other, "the name is a text"),
            },
            Meta::NameValue(pair) if pair.path.is_ident("crate") => match &pair.value {
                Expr::Path(path) => options.library = Some(path.path.clone()),
                other => errors.at(other, "the crate is a path"),
            },
            other => {
                let name = other.path().to_token_stream().to_string();
                errors
                    .at(other.path(), format!("unknown option `{name}`{}", nearest(&name, &KNOWN)));
            }
        }
    }
    options
}

fn generate(
    options: &Options,
    item: &ItemFn,
    arguments: &[Argument],
    description: &str,
) -> TokenStream {
    let library = options
        .library
        .as_ref()
        .map_or_else(|| quote!(::superstep_agent), ToTokens::to_token_stream);
    let ItemFn { attrs, vis, sig, block, .. } = item;
    let ident = &sig.ident;
    let name =
        options.name.clone().unwrap_or_else(|| LitStr::new(&ident.to_string(), ident.span()));
    let fields = arguments.iter().filter(|argument| !argument.injected);
    let fields = fields.map(|Argument { name, ty, docs, .. }| quote!(#(#docs)* #name: #ty,));
    let passed = arguments.iter().map(|Argument { name, ty, injected, .. }| match injected {
        true => quote!(<#ty as #library::tool::FromInvocation>::from_invocation(&__invocation)?),
        false => quote!(__arguments.#name),
    });
    let private = quote!(#library::__private);
    let serde = quote!(#private::serde).to_string();
    let schemars = quote!(#private::schemars).to_string();
    let approve = options.approve.then(|| quote!(.approve()));
    let return_direct = options.return_direct.then(|| quote!(.return_direct()));
    quote! {
        #(#attrs)*
        #vis fn #ident() -> #library::AnyTool {
            #[derive(#private::Deserialize, #private::JsonSchema)]
            #[serde(crate = #serde)]
            #[schemars(crate = #schemars)]
            #[allow(dead_code)]
            struct __Arguments {
                #(#fields)*
            }

            #sig #block

            #library::tool::function::<__Arguments>(#name, #description)
                #approve
                #return_direct
                .run(|__arguments, __invocation: #library::Invocation| async move {
                    #library::tool::IntoToolOutput::into_tool_output(#ident(#(#passed),*).await)
                })
        }
    }
}
