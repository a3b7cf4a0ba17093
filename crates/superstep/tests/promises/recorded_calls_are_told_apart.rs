//! Shows that the record of a call is the record of that call: its failure is as good as a result, other arguments are
//! noticed, and each call has a key of its own for the outside world.
//!
//! It could break because a node that runs again makes its calls again, and nothing but their order says which is which.

use std::sync::{Arc, Mutex};

use superstep::func::{Entrypoint, Workflow};
use superstep::prelude::*;

use crate::world::{World, asked, assert_says, done, failed, in_memory};

/// Tries one way, and if that fails another one; then asks.
fn fallback(world: &World) -> superstep::CompiledGraph<Workflow<()>, String> {
    let flow = Entrypoint::new("flow", |(): (), task: Task| async move {
        let world: World = task.context().expect("a world");
        let first = task.call("first", || async {
            world.ran("first");
            if world.is_broken() {
                Err(NodeError::permanent("no way"))
            } else {
                Ok("first".to_owned())
            }
        });
        let way = match first.await {
            Ok(way) => way,
            Err(error) => format!("second, since {error}"),
        };
        let sure: bool = task.interrupt("sure?").await;
        Ok::<_, NodeError>(format!("{way}: {sure}"))
    });
    in_memory(flow.compile(), world)
}

/// F31: in the reference the call that failed runs again, succeeds this time, and the workflow takes another way than the one
/// it asked about.
#[tokio::test(start_paused = true)]
async fn a_failure_that_was_caught_is_a_record() {
    let world = World::broken();
    let thread = fallback(&world).thread("1");
    assert_eq!(asked(thread.start(()).await), ["sure?"]);
    world.mend();
    let said = done(thread.resume(true).await);
    assert_eq!(said, "second, since no way: true");
    assert_eq!(world.take(), ["first"], "once");
}

/// But a failure that was the failure of the node is tried again with it.
#[tokio::test(start_paused = true)]
async fn a_failure_that_was_not_caught_is_tried_again() {
    let world = World::broken();
    let flow = Entrypoint::new("flow", |(): (), task: Task| async move {
        let world: World = task.context().expect("a world");
        task.call("only", || async {
            world.ran("only");
            if world.is_broken() {
                Err(NodeError::permanent("no way"))
            } else {
                Ok("done".to_owned())
            }
        })
        .await
    });
    let thread = in_memory(flow.compile(), &world).thread("1");
    failed(thread.start(()).await);
    world.mend();
    assert_eq!(done(thread.invoke(()).await), "done");
    assert_eq!(world.take(), ["only", "only"]);
}

/// F5: the reference matches by name and position only, and returns what was recorded for other arguments.
#[tokio::test(start_paused = true)]
async fn other_arguments_are_noticed() {
    let amount = Arc::new(Mutex::new(1_i64));
    let now = amount.clone();
    let flow = Entrypoint::new("flow", move |(): (), task: Task| {
        let amount = *now.lock().expect("an amount");
        async move {
            let charge = task.call("charge", move || async move { Ok::<_, NodeError>(amount) });
            let charged = charge.args(amount).await?;
            let _: bool = task.interrupt("ship?").await;
            Ok::<_, NodeError>(charged)
        }
    });
    let thread = in_memory(flow.compile(), &World::new()).thread("1");
    assert_eq!(asked(thread.start(()).await), ["ship?"]);
    *amount.lock().expect("an amount") = 2;
    let (error, text) = failed(thread.resume(true).await);
    assert_eq!(error.kind(), "ReplayMismatch");
    assert_says(&text, &["call 0", "`charge`", "`flow`", "other arguments", "same order"]);
    *amount.lock().expect("an amount") = 1;
    assert_eq!(done(thread.invoke(()).await), 1);
}

#[tokio::test(start_paused = true)]
async fn each_call_has_a_key_that_stays() {
    let keys = Arc::new(Mutex::new(Vec::<String>::new()));
    let seen = keys.clone();
    let flow = Entrypoint::new("flow", move |(): (), task: Task| {
        let seen = seen.clone();
        async move {
            for _ in 0..2 {
                let seen = seen.clone();
                let call = task.call_with("charge", move |task| {
                    let key = task.idempotency_key();
                    let mut seen = seen.lock().expect("keys");
                    seen.push(key);
                    let hiccups = seen.len() < 3;
                    async move { if hiccups { Err(NodeError::from("a hiccup")) } else { Ok(()) } }
                });
                let key = call.idempotency_key();
                call.retry(RetryPolicy::attempts(2)).await?;
                assert!(!key.is_empty());
            }
            Ok::<_, NodeError>(())
        }
    });
    let thread = in_memory(flow.compile(), &World::new()).thread("1");
    // Two attempts fail, and with them the run; then it continues.
    failed(thread.start(()).await);
    done(thread.invoke(()).await);
    let keys = keys.lock().expect("keys").clone();
    assert_eq!(keys.len(), 4, "three times the first call, once the second");
    assert!(keys[..3].iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_ne!(keys[2], keys[3]);
}

/// F12: and a call that makes calls itself does not wait for room that it takes up.
#[tokio::test(start_paused = true)]
async fn a_limit_on_concurrency_holds_for_calls_and_does_not_block() {
    let running = Arc::new(Mutex::new((0_usize, 0_usize)));
    let counted = running.clone();
    let flow = Entrypoint::new("flow", move |(): (), task: Task| {
        let running = counted.clone();
        async move {
            let outer: Vec<_> = (0..6)
                .map(|n: i64| {
                    let running = running.clone();
                    let outer = task.call_with("outer", move |task| {
                        let running = running.clone();
                        async move {
                            let inner = task.call("inner", move || {
                                let running = running.clone();
                                async move {
                                    {
                                        let mut count = running.lock().expect("a count");
                                        count.0 += 1;
                                        count.1 = count.1.max(count.0);
                                    }
                                    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                                    running.lock().expect("a count").0 -= 1;
                                    Ok::<_, NodeError>(n)
                                }
                            });
                            inner.await
                        }
                    });
                    outer.spawn()
                })
                .collect();
            let mut sum = 0;
            for call in outer {
                sum += call.await?;
            }
            Ok::<_, NodeError>(sum)
        }
    });
    let app = in_memory(flow.compile(), &World::new());
    for limit in [1, 2] {
        *running.lock().expect("a count") = (0, 0);
        let thread = app.thread(format!("{limit}"));
        let sum = done(thread.start(()).max_concurrency(limit).await);
        assert_eq!(sum, 15);
        assert_eq!(running.lock().expect("a count").1, limit);
    }
}
