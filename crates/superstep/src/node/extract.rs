use std::any::TypeId;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::Invocation;
use crate::engine::Task;
use crate::error::NodeError;
use crate::state::State;

/// An argument of a node over the state `S`.
///
/// Implement it for your own argument types:
///
/// ```
/// use superstep::node::{FromTask, Invocation};
/// use superstep::prelude::*;
///
/// #[derive(State, Clone, Default)]
/// struct Ticket {
///     customer: String,
///     reply: String,
/// }
///
/// /// The customer of the ticket, in lower case.
/// struct Customer(String);
///
/// impl FromTask<Ticket> for Customer {
///     fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError> {
///         let ticket = call.state::<Ticket>()?;
///         if ticket.customer.is_empty() {
///             return Err(NodeError::from(format!("node `{}` has no customer", call.task().name())));
///         }
///         Ok(Self(ticket.customer.to_lowercase()))
///     }
///
///     fn reads() -> Option<&'static [&'static str]> {
///         Some(&["customer"])
///     }
/// }
///
/// async fn greet(Customer(name): Customer) -> TicketUpdate {
///     Ticket::update().reply(format!("Dear {name}"))
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let app = StateGraph::<Ticket>::new().add_node("greet", greet).add_edge(START, "greet").compile()?;
/// let ticket = app.invoke(Ticket::update().customer("ADA")).await?.done();
/// assert_eq!(ticket.expect("nothing is asked").reply, "Dear ada");
/// assert!(app.invoke(Ticket::update()).await.is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "a node over `{S}` cannot have an argument of type `{Self}`",
    label = "an argument of this node has the type `{Self}`",
    note = "the state is taken as `Arc<{S}>`, not as `&{S}` or `{S}`",
    note = "a node can also take `Task`, `Ctx<T>` for what `with_context` was given, `Arg<T>` for what was dispatched, `In<View>` and `Failure`"
)]
pub trait FromTask<S: State>: Sized {
    /// Extracts the argument.
    ///
    /// # Errors
    /// It is missing, or of another type.
    fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError>;

    /// The type it takes from the run's context, with its name.
    fn needs() -> Option<(TypeId, &'static str)> {
        None
    }

    /// The channels it reads, if not all of them.
    fn reads() -> Option<&'static [&'static str]> {
        None
    }
}

impl<S: State> FromTask<S> for Arc<S> {
    fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError> {
        call.state()
    }
}

impl<S: State> FromTask<S> for Task {
    fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError> {
        Ok(call.task.clone())
    }
}

/// A value of the run's context, such as a client, set by
/// [`with_context`](crate::CompiledGraph::with_context).
#[doc(alias = "Runtime")]
#[derive(Clone, Debug)]
pub struct Ctx<T>(pub T);

impl<S: State, T: Clone + Send + Sync + 'static> FromTask<S> for Ctx<T> {
    fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError> {
        let name = std::any::type_name::<T>();
        let found = call.task.context::<T>();
        found.map(Ctx).ok_or_else(|| {
            NodeError::permanent(format!(
                "the run has no context of type `{name}`; give it one with `with_context`"
            ))
        })
    }

    fn needs() -> Option<(TypeId, &'static str)> {
        Some((TypeId::of::<T>(), std::any::type_name::<T>()))
    }
}

/// The argument of the [`Dispatch`](super::Dispatch) that started this task. A value of another
/// type is converted through serde; the node fails if that is impossible.
#[derive(Clone, Debug)]
pub struct Arg<T>(pub T);

impl<S: State, T: DeserializeOwned + Clone + Send + Sync + 'static> FromTask<S> for Arg<T> {
    fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError> {
        call.arg()?.map(Arg).ok_or_else(|| {
            NodeError::permanent(format!(
                "node `{}` takes an argument, but was triggered by an edge; run it with a `Dispatch`",
                call.task.name()
            ))
        })
    }
}

/// For a node that is both dispatched and triggered by edges: `None` if an edge triggered it.
impl<S: State, T: DeserializeOwned + Clone + Send + Sync + 'static> FromTask<S> for Option<Arg<T>> {
    fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError> {
        Ok(call.arg()?.map(Arg))
    }
}

/// A part of the state as its own struct. Implemented by `#[derive(View)]`.
pub trait View<S: State>: Sized + Send + 'static {
    /// The names of the channels it has.
    const CHANNELS: &'static [&'static str];

    /// Takes the part out of the state.
    fn view(state: &S) -> Self;

    /// The part as an update of the state.
    fn into_update(self) -> S::Update;
}

/// The state seen as a smaller struct `V`.
#[derive(Clone, Debug)]
pub struct In<V>(pub V);

impl<S: State, V: View<S>> FromTask<S> for In<V> {
    fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError> {
        let state = <Arc<S> as FromTask<S>>::from_task(call)?;
        Ok(In(V::view(&state)))
    }

    fn reads() -> Option<&'static [&'static str]> {
        Some(V::CHANNELS)
    }
}

/// The argument of an error handler: the failed node and its error.
#[doc(alias = "NodeError")]
#[derive(Clone, Debug)]
pub struct Failure {
    /// The node that failed.
    pub node: Arc<str>,
    /// Why.
    pub error: NodeError,
}

impl<S: State> FromTask<S> for Failure {
    fn from_task(call: &Invocation<'_>) -> Result<Self, NodeError> {
        call.failure.cloned().ok_or_else(|| {
            NodeError::permanent(format!("node `{}` is not an error handler", call.task.name()))
        })
    }
}
