//! Shows invariant 3: triggered nodes by name, then dispatches by position, in whatever order the tasks finish. It would
//! break if writes were folded as they arrive, if names were compared in the order of definition, or if the tenth dispatch
//! were sorted as text before the second.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Notes, Random, done, kept, line, sleep};
use superstep::prelude::*;

const NODES: [&str; 4] = ["m", "B", "ab", "a"];
const DISPATCHES: u64 = 12;

fn graph(seed: &Arc<AtomicU64>) -> StateGraph<Notes> {
    let wait = {
        let seed = seed.clone();
        move |place: u64| {
            let mut random = Random(seed.load(Ordering::Relaxed));
            let mut waits: Vec<u64> = (0..DISPATCHES + 4).collect();
            random.shuffle(&mut waits);
            sleep(waits[place as usize])
        }
    };
    let mut graph = StateGraph::new()
        .add_node("spread", || {
            (0..DISPATCHES).map(|n| Dispatch::new("worker", n)).collect::<Vec<_>>()
        })
        .destinations(["worker"])
        .add_edge(START, "spread");
    for (place, name) in NODES.into_iter().enumerate() {
        let wait = wait.clone();
        let node = move || {
            let waited = wait(DISPATCHES + place as u64);
            async move {
                waited.await;
                line(name)
            }
        };
        graph = graph.add_node(name, node).add_edge("spread", name);
    }
    graph.add_node("worker", move |Arg(n): Arg<u64>| {
        let waited = wait(n);
        async move {
            waited.await;
            line(n.to_string())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_thousand_completion_orders_give_one_state() {
    let expected: Vec<String> = ["B", "a", "ab", "m"]
        .into_iter()
        .map(str::to_owned)
        .chain((0..DISPATCHES).map(|n| n.to_string()))
        .collect();
    let seed = Arc::new(AtomicU64::new(0));
    let graph = graph(&seed);
    let app = kept(graph);
    for order in 0..1_000 {
        seed.store(order, Ordering::Relaxed);
        let thread = app.thread(order.to_string());
        let notes = done(thread.invoke(Notes::update()).await);
        assert_eq!(notes.lines, expected, "order {order}");
        if order % 100 == 0 {
            let stored = thread.get_state().await.expect("a stored state");
            assert_eq!(stored.state().lines, expected, "what is stored, order {order}");
        }
    }
}
