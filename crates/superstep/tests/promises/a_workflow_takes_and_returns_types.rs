//! What a workflow takes and returns are types of the user's, checked when the program is compiled; what is stored of them is
//! checked when it is read.

use serde::{Deserialize, Serialize};
use superstep::func::{Entrypoint, Final};
use superstep::prelude::*;

use crate::world::{World, assert_says, failed, in_memory};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Order {
    items: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    cents: u64,
    shipped: bool,
}

#[entrypoint]
async fn order(order: Order, task: Task) -> Result<Receipt, NodeError> {
    let cents = order.items.iter().map(|item| item.len() as u64 * 100).sum();
    Ok(Receipt { cents, shipped: task.interrupt("ship?").await })
}

fn tea() -> Order {
    Order { items: vec!["tea".to_owned()] }
}

#[tokio::test]
async fn of_the_users_own() {
    let thread = in_memory(order().compile(), &World::new()).thread("1");
    let asked = thread.start(tea()).await.expect("a run").interrupted().expect("a question");
    assert_eq!(asked.state(), None, "it has returned nothing yet");
    let receipt = thread.resume(true).await.expect("a run").done();
    assert_eq!(receipt, Some(Receipt { cents: 300, shipped: true }));
    // The last result is what a run that is interrupted has, and what one with nothing to do returns.
    assert_eq!(thread.invoke(()).await.expect("a run").done(), receipt);
    let asked = thread.start(tea()).await.expect("a run").interrupted().expect("a question");
    assert_eq!(asked.into_state(), receipt);
}

#[task]
async fn add((a, b): (u32, u32)) -> Result<u32, NodeError> {
    Ok(a + b)
}

#[entrypoint]
async fn sum((a, b): (u32, u32), task: Task) -> Result<u32, NodeError> {
    add(&task, (a, b)).await
}

#[tokio::test]
async fn when_an_argument_is_taken_apart() {
    let thread = in_memory(sum().compile(), &World::new()).thread("1");
    assert_eq!(thread.start((1, 2)).await.expect("a run").done(), Some(3));
}

#[tokio::test]
async fn when_something_else_is_remembered() {
    let counter = Entrypoint::new("counter", |by: u32, task: Task| async move {
        let sum = task.previous::<u32>()?.unwrap_or(0) + by;
        Ok::<_, NodeError>(Final { value: format!("{sum} in all"), save: sum })
    });
    let thread = in_memory(counter.compile(), &World::new()).thread("1");
    for (by, said) in [(1, "1 in all"), (2, "3 in all")] {
        let counted: Option<String> = thread.start(by).await.expect("a run").done();
        assert_eq!(counted.as_deref(), Some(said));
    }
}

#[tokio::test]
async fn when_there_is_nothing_to_take_or_to_return() {
    let nothing = Entrypoint::new("nothing", |(): (), _: Task| async { Ok::<_, NodeError>(()) });
    let thread = in_memory(nothing.compile(), &World::new()).thread("1");
    assert_eq!(thread.start(()).await.expect("a run").done(), Some(()));
    let maybe = Entrypoint::new("maybe", |n: Option<i64>, _: Task| async move {
        Ok::<_, NodeError>(n.filter(|n| *n > 0))
    });
    let thread = in_memory(maybe.compile(), &World::new()).thread("1");
    assert_eq!(thread.start(Some(1)).await.expect("a run").done(), Some(Some(1)));
    assert_eq!(thread.start(None).await.expect("a run").done(), Some(None));
}

/// Another version of the program may have stored something else.
#[tokio::test]
async fn and_a_stored_result_that_does_not_fit_is_an_error() {
    let checkpointer = MemorySaver::new();
    let text =
        Entrypoint::new("flow", |(): (), _: Task| async { Ok::<_, NodeError>("text".to_owned()) });
    text.compile()
        .with_checkpointer(checkpointer.clone())
        .thread("1")
        .start(())
        .await
        .expect("a run");
    let number = Entrypoint::new("flow", |(): (), _: Task| async { Ok::<_, NodeError>(7_u64) });
    let thread = number.compile().with_checkpointer(checkpointer).thread("1");
    failed(thread.invoke(()).await);
    assert_eq!(thread.start(()).await.expect("a run").done(), Some(7));
}

/// As a graph refuses an update that cannot be stored, before anything is.
#[tokio::test]
async fn and_an_input_that_is_no_data_is_refused() {
    let world = World::new();
    let flow = Entrypoint::new("flow", |n: u128, task: Task| async move {
        task.context::<World>().expect("a world").ran("flow");
        Ok::<_, NodeError>(n)
    });
    let thread = in_memory(flow.compile(), &world).thread("1");
    let (_, text) = failed(thread.start(u128::MAX).await);
    assert_says(&text, &["the input cannot be serialized"]);
    assert!(world.take().is_empty());
    assert!(thread.get_state().await.expect("a look").metadata.is_none(), "nothing is stored");
    assert_eq!(thread.start(7).await.expect("a run").done(), Some(7));
}

/// A graph that calls a workflow gives it an input of its type, too.
#[tokio::test]
async fn inside_another_workflow() {
    let double =
        Entrypoint::new("double", |n: i64, _: Task| async move { Ok::<_, NodeError>(n * 2) });
    let double = double.compile();
    let outer = Entrypoint::new("outer", move |n: i64, task: Task| {
        let double = double.clone();
        async move {
            let doubled: i64 = task.invoke(&double, double.input(n)).await?;
            Ok::<_, NodeError>(doubled + 1)
        }
    });
    assert_eq!(outer.compile().start(3).await.expect("a run").done(), Some(7));
}
