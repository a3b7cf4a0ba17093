//! The macros of superstep. Use them through the `superstep` crate, which re-exports them; its
//! module `state` documents the generated code.
//!
//! Each macro works in three steps, one file each: `parse` reads what stands in the source, `check` finds out what it
//! means and what is wrong with it, `generate` writes the code. The first two collect every mistake; if there is one,
//! the third still writes items of the right shape, so that the rest of the program is checked as if all were well.

mod check;
mod errors;
mod function;
mod generate;
mod parse;
#[cfg(test)]
mod tests;
mod tool;

use proc_macro2::TokenStream;
use syn::{DeriveInput, ItemFn};

use crate::errors::Errors;

/// Makes a struct with named fields the state of a graph: each field is a channel.
///
/// The struct also derives `Clone` and `Default`. Each type parameter must implement `FieldValue`.
///
/// `#[channel(...)]` on a field says how writes are applied; the module `superstep::state` has the
/// table. `#[state(crate = path)]` on the struct says where to find `superstep`, if it is not
/// `::superstep`.
#[proc_macro_derive(State, attributes(state, channel))]
pub fn derive_state(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    state(&input).into()
}

/// Makes a struct a view of a state, which a node can take as an argument and a graph as its input.
///
/// `#[view(Essay)]` on the struct names the state. Its fields have the names and types of fields of the state;
/// `#[view(rename = "notes")]` on a field names the state's field, if it has another name. If the state in turn has
/// renamed the channel, `#[view(channel = "name")]` gives the channel's name.
///
/// `#[view(Essay, crate = path)]` says where to find `superstep`, if it is not `::superstep`.
#[proc_macro_derive(View, attributes(view))]
pub fn derive_view(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    view(&input).into()
}

/// Turns an async function into a recorded call: a function with a `&Task` before its arguments, which returns a
/// `superstep::func::Call`.
///
/// The arguments must be `Serialize`, `Clone`, `Send`, `Sync` and `'static`: they are compared when the call returns its
/// record, and the call may be tried again. An argument of type `Task` is not one of the arguments of the call; it is the
/// call's own task. The function returns a `Result`.
///
/// `#[task(name = "charge")]` gives the call another name than that of the function, `#[task(crate = path)]` says where to
/// find `superstep`, if it is not `::superstep`.
#[proc_macro_attribute]
pub fn task(
    options: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let item = syn::parse_macro_input!(item as ItemFn);
    function::task(options.into(), item).into()
}

/// Turns an async function into a workflow: a function without arguments, which returns a `superstep::func::Entrypoint`.
///
/// The function takes one input, which must be `Deserialize`, and the `Task` it runs in, either or both. It returns a
/// `Result`.
///
/// `#[entrypoint(name = "order")]` gives the workflow another name than that of the function, `#[entrypoint(crate = path)]`
/// says where to find `superstep`, if it is not `::superstep`.
#[proc_macro_attribute]
pub fn entrypoint(
    options: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let item = syn::parse_macro_input!(item as ItemFn);
    function::entrypoint(options.into(), item).into()
}

/// Turns an async function into a tool of an agent: a function without arguments, which returns a `superstep_agent::AnyTool`. List
/// it in `tools![...]`.
///
/// The documentation of the function tells the model what the tool does. Its arguments are what the model gives, by name; documentation on an
/// argument is shown to the model, too. Their types must be `Deserialize` and `JsonSchema`. Arguments of the types `Call`, `Task`,
/// `Ctx<T>`, `AnyStore`, `Invocation` and `Arc<AgentState<X>>` come from the agent and not from the model.
///
/// The function returns what the model is told: text, a `Value`, a `Json`, a `ToolOutput`, or a `Result` of one.
///
/// `#[tool(approve)]` asks a person before each call, `#[tool(return_direct)]` ends the agent with the result, `#[tool(name = "search")]` gives
/// the tool another name, `#[tool(crate = path)]` says where to find `superstep_agent`, if it is not `::superstep_agent`.
#[proc_macro_attribute]
pub fn tool(
    options: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let item = syn::parse_macro_input!(item as ItemFn);
    tool::tool(options.into(), item).into()
}

fn state(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let source = parse::state(input, &mut errors);
    let state = check::state(source, &mut errors);
    generate::with_errors(errors, |body| generate::state(&state, body))
}

fn view(input: &DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let source = parse::view(input, &mut errors);
    let view = check::view(source, &mut errors);
    generate::with_errors(errors, |body| generate::view(&view, body))
}
