//! Shows that an async function with loops, branches and calls beside each other is a workflow that
//! stops and continues, with `#[task]` and `#[entrypoint]` as without them.
//!
//! It could break because the function knows nothing of how often it runs: only its recorded calls do.

use std::time::Duration;

use superstep::func::{Entrypoint, Final};
use superstep::prelude::*;
use superstep::{Data, UpdatesEvent};

use crate::world::{World, asked, assert_says, done, failed, in_memory};

#[task]
async fn double(task: Task, n: i64) -> Result<i64, NodeError> {
    let world: World = task.context().expect("a world");
    world.ran(format!("double {n}"));
    tokio::time::sleep(Duration::from_secs(1)).await;
    Ok(n * 2)
}

/// A call that makes calls of its own.
#[task(name = "sum of doubles")]
async fn sum(task: Task, numbers: Vec<i64>) -> Result<i64, NodeError> {
    let calls: Vec<_> = numbers.into_iter().map(|n| double(&task, n).spawn()).collect();
    let mut sum = 0;
    for call in calls {
        sum += call.await?;
    }
    Ok(sum)
}

/// Doubles until it is enough, asks whether to continue each time, and adds what it had last time.
#[entrypoint]
async fn enough(limit: i64, task: Task) -> Result<Final<String, i64>, NodeError> {
    let mut n = task.previous::<i64>()?.unwrap_or(1);
    let mut rounds = 0;
    while n < limit {
        n = double(&task, n).await?;
        rounds += 1;
        task.emit(n);
        if n < limit && !task.interrupt::<bool>(format!("{n}; go on?")).await {
            break;
        }
    }
    let n = if rounds > 1 { n + sum(&task, vec![1, 2]).await? } else { n };
    Ok(Final { value: format!("{n} after {rounds}"), save: n })
}

#[tokio::test(start_paused = true)]
async fn with_loops_branches_questions_and_memory() {
    let world = World::new();
    let thread = in_memory(enough().compile(), &world).thread("1");
    assert_eq!(asked(thread.start(8).await), ["2; go on?"]);
    assert_eq!(asked(thread.resume(true).await), ["4; go on?"]);
    assert_eq!(done(thread.resume(true).await), "14 after 3");
    assert_eq!(world.take(), ["double 1", "double 2", "double 4", "double 1", "double 2"]);
    // What was saved is not what was returned, and is there in the next run.
    assert_eq!(done(thread.start(20).await), "28 after 1");
    assert_eq!(world.take(), ["double 14"]);
}

#[tokio::test(start_paused = true)]
async fn calls_beside_each_other_take_as_long_as_one() {
    let world = World::new();
    let flow = Entrypoint::new("flow", |numbers: Vec<i64>, task: Task| async move {
        sum(&task, numbers).await
    });
    let thread = in_memory(flow.compile(), &world).thread("1");
    let began = tokio::time::Instant::now();
    let sum = done(thread.start((1..=50).collect()).await);
    assert_eq!(sum, 2550);
    assert_eq!(began.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn streams_show_calls_and_what_they_say() {
    let world = World::new();
    let thread = in_memory(enough().compile(), &world).thread("1");
    let modes = [Mode::Updates, Mode::Custom, Mode::Values];
    let mut stream = thread.start(2).stream(modes);
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        match event.expect("an event").data {
            Data::Updates(UpdatesEvent::Task { node, .. }) => {
                seen.push(format!("update of {node}"));
            }
            Data::Custom(value) => seen.push(format!("custom {value}")),
            Data::Values(_) => seen.push("values".to_owned()),
            _ => {}
        }
    }
    assert_eq!(seen, ["update of double", "custom 2", "update of enough", "values"]);
}

#[task]
async fn flaky(task: Task) -> Result<u32, NodeError> {
    let world: World = task.context().expect("a world");
    world.ran("flaky");
    match task.attempt() {
        1 | 2 => Err(NodeError::from("a hiccup")),
        attempt => Ok(attempt),
    }
}

#[task]
async fn slow() -> Result<(), NodeError> {
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn calls_are_tried_again_and_have_their_time() {
    let world = World::new();
    let flow = Entrypoint::new("flow", |(): (), task: Task| async move {
        let attempts = flaky(&task).retry(3).await?;
        slow(&task).timeout(TimeoutPolicy::run(Duration::from_secs(5))).await?;
        Ok::<_, NodeError>(attempts)
    });
    let thread = in_memory(flow.compile(), &world).thread("1");
    let (error, text) = failed(thread.start(()).await);
    assert_eq!(error.kind(), "NodeTimeoutError");
    assert_says(&text, &["`slow`", "5s"]);
    assert_eq!(world.take(), ["flaky", "flaky", "flaky"]);
    // What has succeeded is not tried again.
    failed(thread.invoke(()).await);
    assert!(world.take().is_empty());
}

#[entrypoint(name = "named")]
async fn without_a_task(n: i64) -> Result<i64, NodeError> {
    Ok(n + 1)
}

#[tokio::test(start_paused = true)]
async fn a_workflow_needs_neither_a_task_nor_a_checkpointer() {
    let app = without_a_task().compile();
    assert_eq!(done(app.start(1).await), 2);
    let (_, text) = failed(app.invoke(Value::from("one")).await);
    assert_says(&text, &["input of `named` does not fit"]);
}
