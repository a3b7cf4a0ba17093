//! Shows invariants 1 and 2: a task sees the state as it was when its superstep was planned, however much later than its
//! siblings it looks. A router sees in addition what its own node wrote, and nothing else. It would break if states were
//! folded in place while somebody still looks, or if what is staged for a router were not taken back.

use std::sync::Mutex;

use crate::common::{Notes, done, line, sleep};
use superstep::prelude::*;

#[tokio::test(start_paused = true)]
async fn a_late_task_sees_the_state_of_the_plan() {
    let graph = StateGraph::new()
        .add_node("quick", || line("quick").total(1).last("quick".to_owned()))
        .add_node("slow", |notes: Arc<Notes>| async move {
            sleep(100).await;
            line(format!("slow saw {:?} {} {:?}", notes.lines, notes.total, notes.last))
        })
        .add_node("after", |notes: Arc<Notes>| line(format!("after saw {}", notes.lines.len())))
        .add_edge(START, "quick")
        .add_edge(START, "slow")
        .add_edge(["quick", "slow"], "after")
        .compile()
        .expect("a graph that compiles");
    let notes = done(graph.invoke(line("in")).await);
    assert_eq!(notes.lines, ["in", "quick", r#"slow saw ["in"] 0 None"#, "after saw 3"]);
}

#[tokio::test(start_paused = true)]
async fn a_router_sees_what_its_own_node_wrote_and_no_more() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = |name: &'static str| {
        let seen = seen.clone();
        move |notes: &Notes| {
            seen.lock().expect("no panic").push(format!("{name}: {}", notes.lines.join(" ")));
            END
        }
    };
    let graph = StateGraph::new()
        .add_node("lone", || line("lone"))
        .add_node("a", || async {
            sleep(10).await;
            line("a")
        })
        .add_node("b", || async {
            sleep(20).await;
            line("b")
        })
        .add_edge(START, "lone")
        .add_conditional_edges("lone", [END], look("lone"))
        .add_edge("lone", "a")
        .add_edge("lone", "b")
        .add_conditional_edges("a", [END], look("a"))
        .add_conditional_edges("b", [END], look("b"))
        .compile()
        .expect("a graph that compiles");
    let notes = done(graph.invoke(line("in")).await);
    assert_eq!(notes.lines, ["in", "lone", "a", "b"]);
    let seen = seen.lock().expect("no panic").clone();
    assert_eq!(seen, ["lone: in lone", "a: in lone a", "b: in lone b"]);
}

#[tokio::test]
async fn a_state_that_somebody_kept_does_not_change() {
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let graph = StateGraph::new()
        .add_node("one", move |notes: Arc<Notes>| {
            *keep.lock().expect("no panic") = Some(notes);
            line("one")
        })
        .add_node("two", || line("two"))
        .add_edge(START, "one")
        .add_edge("one", "two")
        .compile()
        .expect("a graph that compiles");
    let notes = done(graph.invoke(line("in")).await);
    assert_eq!(notes.lines, ["in", "one", "two"]);
    let kept = kept.lock().expect("no panic").take().expect("the state that `one` saw");
    assert_eq!(kept.lines, ["in"]);
}
