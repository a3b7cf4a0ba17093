use std::any::TypeId;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use super::{AnyNode, BoxFuture, FromTask, IntoOutput, Invocation, Node, Output};
use crate::error::NodeError;
use crate::state::State;

/// Everything that can be a node over the state `S`: functions, async functions, closures, compiled graphs.
///
/// `M` tells the kinds of nodes apart and is always inferred.
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

/// Marks nodes that are async functions with the arguments `A`.
#[derive(Debug)]
pub struct AsyncFunction<A>(PhantomData<A>);

/// Marks nodes that are plain functions with the arguments `A`.
#[derive(Debug)]
pub struct PlainFunction<A>(PhantomData<A>);

struct Function<F, S, A> {
    run: F,
    arguments: PhantomData<fn() -> (S, A)>,
}

/// What the arguments of a function, taken together, ask for.
struct Asks {
    needs: Vec<(TypeId, &'static str)>,
    reads: Option<&'static [&'static str]>,
}

trait Arguments<S: State> {
    fn asks() -> Asks;
}

macro_rules! functions {
    ($($argument:ident),*) => {
        impl<S: State, $($argument: FromTask<S>),*> Arguments<S> for ($($argument,)*) {
            fn asks() -> Asks {
                let needs: &[Option<(TypeId, &'static str)>] = &[$($argument::needs()),*];
                let reads: &[Option<&'static [&'static str]>] = &[$($argument::reads()),*];
                Asks {
                    needs: needs.iter().copied().flatten().collect(),
                    reads: reads.iter().copied().flatten().next(),
                }
            }
        }

        impl<S, F, R, $($argument),*> IntoNode<S, AsyncFunction<($($argument,)*)>> for F
        where
            S: State,
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: Future + Send + 'static,
            R::Output: IntoOutput<S>,
            $($argument: FromTask<S> + Send + 'static,)*
        {
            fn into_node(self) -> AnyNode<S> {
                AnyNode::from_node(Function::<Async<F>, S, ($($argument,)*)> {
                    run: Async(self),
                    arguments: PhantomData,
                })
            }
        }

        impl<S, F, R, $($argument),*> IntoNode<S, PlainFunction<($($argument,)*)>> for F
        where
            S: State,
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: IntoOutput<S>,
            $($argument: FromTask<S> + Send + 'static,)*
        {
            fn into_node(self) -> AnyNode<S> {
                AnyNode::from_node(Function::<Plain<F>, S, ($($argument,)*)> {
                    run: Plain(Arc::new(self)),
                    arguments: PhantomData,
                })
            }
        }

        impl<S, F, R, $($argument),*> Node for Function<Async<F>, S, ($($argument,)*)>
        where
            S: State,
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: Future + Send + 'static,
            R::Output: IntoOutput<S>,
            $($argument: FromTask<S> + Send + 'static,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn run(&self, call: Invocation<'_>) -> BoxFuture<Result<Output, NodeError>> {
                $(
                    let $argument = match $argument::from_task(&call) {
                        Ok(argument) => argument,
                        Err(error) => return Box::pin(std::future::ready(Err(error))),
                    };
                )*
                let future = (self.run.0)($($argument),*);
                Box::pin(async move { future.await.into_output() })
            }

            fn needs(&self) -> Vec<(TypeId, &'static str)> {
                <($($argument,)*) as Arguments<S>>::asks().needs
            }

            fn reads(&self) -> Option<&'static [&'static str]> {
                <($($argument,)*) as Arguments<S>>::asks().reads
            }
        }

        impl<S, F, R, $($argument),*> Node for Function<Plain<F>, S, ($($argument,)*)>
        where
            S: State,
            F: Fn($($argument),*) -> R + Send + Sync + 'static,
            R: IntoOutput<S>,
            $($argument: FromTask<S> + Send + 'static,)*
        {
            #[allow(non_snake_case, unused_variables)]
            fn run(&self, call: Invocation<'_>) -> BoxFuture<Result<Output, NodeError>> {
                $(
                    let $argument = match $argument::from_task(&call) {
                        Ok(argument) => argument,
                        Err(error) => return Box::pin(std::future::ready(Err(error))),
                    };
                )*
                // Runs when it is polled, so that a spawned node runs where it was spawned.
                let run = self.run.0.clone();
                Box::pin(async move { run($($argument),*).into_output() })
            }

            fn needs(&self) -> Vec<(TypeId, &'static str)> {
                <($($argument,)*) as Arguments<S>>::asks().needs
            }

            fn reads(&self) -> Option<&'static [&'static str]> {
                <($($argument,)*) as Arguments<S>>::asks().reads
            }
        }
    };
}

struct Async<F>(F);
struct Plain<F>(Arc<F>);

functions!();
functions!(A1);
functions!(A1, A2);
functions!(A1, A2, A3);
functions!(A1, A2, A3, A4);
functions!(A1, A2, A3, A4, A5);
functions!(A1, A2, A3, A4, A5, A6);
