use std::any::TypeId;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{AnyNode, BoxFuture, FromTask, IntoOutput, Invocation, Node, Output};
use crate::error::NodeError;
use crate::state::State;

/// Converts a function, async function, closure or compiled graph to a node over the state `S`.
///
/// `M` distinguishes the kinds of nodes and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a node over `{S}`",
    note = "a node is a function, async or not, whose arguments are `Arc<{S}>`, `Task`, `Ctx<T>`, `Arg<T>`, `In<View>` or `Failure`, in any order, and which returns `()`, an update, a `Command`, `Dispatch`es, or a `Result` of these"
)]
pub trait IntoNode<S: State, M> {
    /// The node with its types erased.
    fn into_node(self) -> AnyNode<S>;
}

impl<S: State> IntoNode<S, ()> for AnyNode<S> {
    fn into_node(self) -> AnyNode<S> {
        self
    }
}

/// Marks nodes that are functions with the arguments `A` and the result kind `K`.
#[derive(Debug)]
pub struct OfFunction<A, K>(PhantomData<(A, K)>);

/// The one implementation for functions of any kind. If there were one for each number of arguments, the compiler would say
/// only that none of them fits; so it says which argument does not, or that the result does not.
impl<S, F, A, K> IntoNode<S, OfFunction<A, K>> for F
where
    S: State,
    F: Callable<A> + Send + Sync + 'static,
    A: Arguments<S>,
    F::Return: Returns<S, K>,
    <F::Return as Returns<S, K>>::Value: IntoOutput<S>,
    <F::Return as Returns<S, K>>::Future: Send + 'static,
    K: 'static,
{
    fn into_node(self) -> AnyNode<S> {
        AnyNode::from_node(Function { run: Arc::new(self), kinds: Kinds::<S, A, K>::default() })
    }
}

/// A function that takes the arguments `A`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a node",
    note = "a node is a function or a closure, async or not, with up to six arguments, or a compiled graph"
)]
pub trait Callable<A> {
    /// What it returns.
    type Return;

    /// Calls it.
    fn call(&self, arguments: A) -> Self::Return;
}

/// The arguments of a node over the state `S`, taken together.
pub trait Arguments<S: State>: Sized + Send + 'static {
    /// Takes all of them out of the invocation.
    ///
    /// # Errors
    /// One is missing, or of another type.
    fn take(call: &Invocation<'_>) -> Result<Self, NodeError>;

    /// The types they take from the run's context, with their names.
    fn needs() -> Vec<(TypeId, &'static str)>;

    /// The channels they read, if not all of them.
    fn reads() -> Option<&'static [&'static str]>;
}

macro_rules! functions {
    ($($argument:ident),*) => {
        impl<F, R, $($argument),*> Callable<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> R,
        {
            type Return = R;

            #[allow(non_snake_case)]
            fn call(&self, ($($argument,)*): ($($argument,)*)) -> R {
                self($($argument),*)
            }
        }

        impl<S: State, $($argument: FromTask<S> + Send + 'static),*> Arguments<S> for ($($argument,)*) {
            #[allow(unused_variables)]
            fn take(call: &Invocation<'_>) -> Result<Self, NodeError> {
                Ok(($($argument::from_task(call)?,)*))
            }

            fn needs() -> Vec<(TypeId, &'static str)> {
                let needs: &[Option<(TypeId, &'static str)>] = &[$($argument::needs()),*];
                needs.iter().copied().flatten().collect()
            }

            fn reads() -> Option<&'static [&'static str]> {
                let reads: &[Option<&'static [&'static str]>] = &[$($argument::reads()),*];
                reads.iter().copied().flatten().next()
            }
        }
    };
}

functions!();
functions!(A1);
functions!(A1, A2);
functions!(A1, A2, A3);
functions!(A1, A2, A3, A4);
functions!(A1, A2, A3, A4, A5);
functions!(A1, A2, A3, A4, A5, A6);

/// Results that come when the function returns.
#[derive(Debug)]
pub struct AtOnce;

/// Results that come when the future is done that the function returns.
#[derive(Debug)]
pub struct Later;

/// The return type of a node function over the state `S`, of the kind `K`.
#[diagnostic::on_unimplemented(
    message = "a node over `{S}` cannot return `{Self}`",
    label = "this node returns `{Self}`",
    note = "a node returns `()`, an update, a `Command`, `Dispatch`es, or a `Result` of these"
)]
pub trait Returns<S: State, K>: Sized {
    /// The result of the node.
    type Value;

    /// The future to poll.
    type Future;

    /// Calls the function.
    fn run<F, A>(function: &Arc<F>, arguments: A) -> BoxFuture<Result<Output, NodeError>>
    where
        F: Callable<A, Return = Self> + Send + Sync + 'static,
        A: Send + 'static,
        Self::Value: IntoOutput<S>,
        Self::Future: Send + 'static;
}

impl<S: State, R: IntoOutput<S>> Returns<S, AtOnce> for R {
    type Value = R;
    type Future = ();

    /// It is called when it is polled, so that a spawned node runs where it was spawned.
    fn run<F, A>(function: &Arc<F>, arguments: A) -> BoxFuture<Result<Output, NodeError>>
    where
        F: Callable<A, Return = Self> + Send + Sync + 'static,
        A: Send + 'static,
    {
        let function = function.clone();
        Box::pin(async move { function.call(arguments).into_output() })
    }
}

impl<S: State, R: Future> Returns<S, Later> for R {
    type Value = R::Output;
    type Future = R;

    fn run<F, A>(function: &Arc<F>, arguments: A) -> BoxFuture<Result<Output, NodeError>>
    where
        F: Callable<A, Return = Self> + Send + Sync + 'static,
        A: Send + 'static,
        R::Output: IntoOutput<S>,
        R: Send + 'static,
    {
        let future = function.call(arguments);
        Box::pin(async move { future.await.into_output() })
    }
}

/// Types that a function has to do with, and holds no value of.
type Kinds<S, A, K> = PhantomData<fn() -> (S, A, K)>;

struct Function<F, S, A, K> {
    run: Arc<F>,
    kinds: Kinds<S, A, K>,
}

impl<S, F, A, K> Node for Function<F, S, A, K>
where
    S: State,
    F: Callable<A> + Send + Sync + 'static,
    A: Arguments<S>,
    F::Return: Returns<S, K>,
    <F::Return as Returns<S, K>>::Value: IntoOutput<S>,
    <F::Return as Returns<S, K>>::Future: Send + 'static,
{
    fn run(&self, call: Invocation<'_>) -> BoxFuture<Result<Output, NodeError>> {
        match A::take(&call) {
            Ok(arguments) => F::Return::run(&self.run, arguments),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn needs(&self) -> Vec<(TypeId, &'static str)> {
        A::needs()
    }

    fn reads(&self) -> Option<&'static [&'static str]> {
        A::reads()
    }
}
