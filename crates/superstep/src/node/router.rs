use std::any::Any;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::BoxFuture;
use super::command::{Dispatch, Goto, IntoGoto};
use crate::engine::Task;
use crate::error::NodeError;
use crate::state::State;

/// The state that a router reads: with the writes of its node applied.
pub(crate) struct RouteContext {
    pub(crate) cells: Arc<dyn Any + Send + Sync>,
    pub(crate) task: Task,
}

/// Access to that state: by reference for a synchronous router, shared otherwise.
pub(crate) trait Router: Send + Sync {
    /// Answers at once, if this router can.
    fn route_now(&self, state: &(dyn Any + Send + Sync)) -> Option<Result<Routes, NodeError>>;

    fn route(&self, context: RouteContext) -> BoxFuture<Result<Routes, NodeError>>;
}

/// The targets that a router returns: any number of nodes and dispatches.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// The targets, in order. `None` instead of a name means that the router gave no answer.
    pub(crate) to: SmallVec<[Option<Goto>; 1]>,
}

impl Routes {
    /// Leads to these places.
    pub fn to(goto: impl IntoGoto) -> Self {
        Self { to: goto.into_goto().into_iter().map(Some).collect() }
    }
}

/// A return type of routers.
#[diagnostic::on_unimplemented(
    message = "a router cannot return `{Self}`",
    note = "a router returns a node's name, a `Dispatch`, a list of these, or a `Result` of them"
)]
pub trait IntoRoutes {
    /// The targets, or why the router failed.
    ///
    /// # Errors
    /// The router's own error.
    fn into_routes(self) -> Result<Routes, NodeError>;

    /// Appends the targets, for long lists.
    #[doc(hidden)]
    fn add_to(self, routes: &mut Routes) -> Result<(), NodeError>
    where
        Self: Sized,
    {
        routes.to.extend(self.into_routes()?.to);
        Ok(())
    }
}

impl IntoRoutes for Routes {
    fn into_routes(self) -> Result<Routes, NodeError> {
        Ok(self)
    }
}

macro_rules! one_route {
    ($($kind:ty => $goto:expr),* $(,)?) => {
        $(impl IntoRoutes for $kind {
            fn into_routes(self) -> Result<Routes, NodeError> {
                let mut routes = Routes::default();
                self.add_to(&mut routes)?;
                Ok(routes)
            }

            fn add_to(self, routes: &mut Routes) -> Result<(), NodeError> {
                routes.to.push(Some($goto(self)));
                Ok(())
            }
        })*
    };
}

one_route! {
    &str => |name: &str| Goto::Node(name.into()),
    String => |name: String| Goto::Node(name.into()),
    Arc<str> => Goto::Node,
    Dispatch => Goto::Dispatch,
    Goto => std::convert::identity,
}

impl<T: IntoRoutes> IntoRoutes for Vec<T> {
    fn into_routes(self) -> Result<Routes, NodeError> {
        let mut all = Routes { to: SmallVec::with_capacity(self.len()) };
        for item in self {
            item.add_to(&mut all)?;
        }
        Ok(all)
    }
}

impl<T: IntoRoutes, const N: usize> IntoRoutes for [T; N] {
    fn into_routes(self) -> Result<Routes, NodeError> {
        Vec::from(self).into_routes()
    }
}

impl<T: IntoRoutes> IntoRoutes for Option<T> {
    fn into_routes(self) -> Result<Routes, NodeError> {
        self.map_or(Ok(Routes { to: smallvec![None] }), IntoRoutes::into_routes)
    }
}

impl<T: IntoRoutes, E: Into<NodeError>> IntoRoutes for Result<T, E> {
    fn into_routes(self) -> Result<Routes, NodeError> {
        self.map_err(Into::into)?.into_routes()
    }
}

/// Converts a function to a router over the state `S`.
///
/// The plain form is a function `fn(&S) -> R`. An async router takes `Arc<S>`, and may take a
/// [`Task`](crate::Task) after it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a router over `{S}`",
    note = "a router is a function of `&{S}`, or an async function of `Arc<{S}>` (and `Task`), that returns a node's name, a `Dispatch`, a list of these, or a `Result` of them"
)]
pub trait IntoRouter<S: State, M> {
    /// The router with its types erased.
    #[doc(hidden)]
    fn into_router(self) -> AnyRouter;
}

/// A router, ready to be added to a graph.
#[doc(hidden)]
#[derive(Clone)]
pub struct AnyRouter(pub(crate) Arc<dyn Router>);

impl std::fmt::Debug for AnyRouter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AnyRouter")
    }
}

struct Looking<F, S>(F, PhantomData<fn() -> S>);
struct Awaiting<F, S>(F, PhantomData<fn() -> S>);
struct AwaitingTask<F, S>(F, PhantomData<fn() -> S>);

/// Marks routers that look at the state and answer at once.
#[derive(Debug)]
pub struct AtOnce;
/// Marks routers that are awaited.
#[derive(Debug)]
pub struct Awaited;
/// Marks routers that are awaited and use the task.
#[derive(Debug)]
pub struct AwaitedWithTask;

impl<S: State, F, R> IntoRouter<S, AtOnce> for F
where
    F: Fn(&S) -> R + Send + Sync + 'static,
    R: IntoRoutes,
{
    fn into_router(self) -> AnyRouter {
        AnyRouter(Arc::new(Looking(self, PhantomData)))
    }
}

impl<S: State, F, R> IntoRouter<S, Awaited> for F
where
    F: Fn(Arc<S>) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoRoutes,
{
    fn into_router(self) -> AnyRouter {
        AnyRouter(Arc::new(Awaiting(self, PhantomData)))
    }
}

impl<S: State, F, R> IntoRouter<S, AwaitedWithTask> for F
where
    F: Fn(Arc<S>, Task) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoRoutes,
{
    fn into_router(self) -> AnyRouter {
        AnyRouter(Arc::new(AwaitingTask(self, PhantomData)))
    }
}

const OWN_STATE: &str = "a router runs in a graph over its own state type";

impl<S: State, F, R> Router for Looking<F, S>
where
    F: Fn(&S) -> R + Send + Sync + 'static,
    R: IntoRoutes,
{
    fn route_now(&self, state: &(dyn Any + Send + Sync)) -> Option<Result<Routes, NodeError>> {
        Some((self.0)(state.downcast_ref().expect(OWN_STATE)).into_routes())
    }

    fn route(&self, context: RouteContext) -> BoxFuture<Result<Routes, NodeError>> {
        let routes = (self.0)(context.cells.downcast_ref().expect(OWN_STATE)).into_routes();
        Box::pin(std::future::ready(routes))
    }
}

impl<S: State, F, R> Router for Awaiting<F, S>
where
    F: Fn(Arc<S>) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoRoutes,
{
    fn route_now(&self, _: &(dyn Any + Send + Sync)) -> Option<Result<Routes, NodeError>> {
        None
    }

    fn route(&self, context: RouteContext) -> BoxFuture<Result<Routes, NodeError>> {
        let future = (self.0)(context.cells.downcast().expect(OWN_STATE));
        Box::pin(async move { future.await.into_routes() })
    }
}

impl<S: State, F, R> Router for AwaitingTask<F, S>
where
    F: Fn(Arc<S>, Task) -> R + Send + Sync + 'static,
    R: Future + Send + 'static,
    R::Output: IntoRoutes,
{
    fn route_now(&self, _: &(dyn Any + Send + Sync)) -> Option<Result<Routes, NodeError>> {
        None
    }

    fn route(&self, context: RouteContext) -> BoxFuture<Result<Routes, NodeError>> {
        let future = (self.0)(context.cells.downcast().expect(OWN_STATE), context.task);
        Box::pin(async move { future.await.into_routes() })
    }
}
