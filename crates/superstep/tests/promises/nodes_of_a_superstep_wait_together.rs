//! Shows that five nodes that each wait 100 ms wait at the same time. It would break if tasks were awaited one after the
//! other, or if a barrier waited for more than the slowest.

use crate::common;

use crate::common::{Notes, done, line, ms, sleep};
use superstep::prelude::*;
use tokio::time::Instant;

fn five() -> StateGraph<Notes> {
    ["a", "b", "c", "d", "e"].into_iter().fold(StateGraph::new(), |graph, name| {
        let node = move || async move {
            sleep(100).await;
            line(name)
        };
        graph.add_node(name, node).add_edge(START, name)
    })
}

#[tokio::test(start_paused = true)]
async fn five_nodes_take_as_long_as_one() {
    let graph = five().compile().expect("a graph that compiles");
    let began = Instant::now();
    let notes = done(graph.invoke(Notes::update()).await);
    let took = began.elapsed();
    assert_eq!(notes.lines, ["a", "b", "c", "d", "e"]);
    assert!(took >= ms(100) && took < ms(110), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn spawned_nodes_wait_together_too() {
    let node = || async {
        sleep(100).await;
        line("x")
    };
    let graph = StateGraph::<Notes>::new()
        .add_node("a", node)
        .spawned()
        .add_node("b", node)
        .spawned()
        .add_edge(START, "a")
        .add_edge(START, "b");
    let began = Instant::now();
    let notes = done(common::kept(graph).thread("t").invoke(Notes::update()).await);
    let took = began.elapsed();
    assert_eq!(notes.lines, ["x", "x"]);
    assert!(took >= ms(100) && took < ms(110), "{took:?}");
}
