//! Shows which of many tasks of one node failed, finished or waits: errors, snapshots and update events have the id of the task
//! and the beginning of what it was dispatched with. It would break if they named the node alone.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;

use futures_core::Stream;

use crate::common::{Notes, line};
use superstep::checkpoint::TaskId;
use superstep::prelude::*;
use superstep::{Data, UpdatesEvent};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Page {
    number: u32,
    text: String,
}

/// Twenty pages, one of which cannot be read and one of which needs a person.
fn graph() -> StateGraph<Notes> {
    StateGraph::new()
        .add_node("spread", || {
            let page = |number| Page { number, text: "ß".repeat(1000) };
            (0..20).map(|number| Dispatch::new("read", page(number))).collect::<Vec<_>>()
        })
        .destinations(["read"])
        .add_node("read", async |Arg(page): Arg<Page>, task: Task| match page.number {
            13 => Err("torn"),
            7 => {
                let text: String = task.interrupt("what does it say?").await;
                Ok(line(text))
            }
            number => Ok(line(number.to_string())),
        })
        .add_edge(START, "spread")
}

fn arg(number: u32) -> String {
    let whole = format!("{{\"number\":{number},\"text\":\"{}", "ß".repeat(1000));
    whole.chars().take(80).chain(['…']).collect()
}

#[tokio::test]
async fn by_what_it_was_dispatched_with() {
    let app = graph().compile().expect("a graph").with_checkpointer(MemorySaver::new());
    let thread = app.thread("t");
    let mut updated: BTreeMap<TaskId, String> = BTreeMap::new();
    let mut run = pin!(thread.invoke(Notes::update()).stream([Mode::Updates]));
    let mut failed = None;
    while let Some(event) = poll_fn(|cx| run.as_mut().poll_next(cx)).await {
        match event.map(|event| event.data) {
            Ok(Data::Updates(UpdatesEvent::Task { node, task, arg, .. })) if &*node == "read" => {
                let arg = arg.expect("it was dispatched").to_string();
                assert!(updated.insert(task, arg).is_none(), "each task has its own id");
            }
            Ok(Data::Updates(UpdatesEvent::Task { arg, .. })) => assert_eq!(arg, None),
            Ok(_) => {}
            Err(error) => failed = Some(error),
        }
    }
    let failed = failed.expect("a page is torn");
    let RunError::Node { task, arg: found, .. } = &failed else { panic!("{failed:?}") };
    assert_eq!(found.as_deref(), Some(&*arg(13)));
    let text = failed.to_string();
    assert!(text.contains(&arg(13)) && text.contains(&task.to_string()), "{text}");

    let state = thread.get_state().await.expect("a state");
    let tasks = &state.tasks;
    let numbers: Vec<_> = (0..20).map(|number| Some(arg(number))).collect();
    let found: Vec<_> = tasks.iter().map(|task| task.arg.as_deref().map(str::to_owned)).collect();
    assert_eq!(found, numbers);
    assert_eq!(tasks[13].id, *task);
    assert!(tasks[13].error.is_some());
    assert_eq!(tasks[7].interrupts.len(), 1);
    for done in tasks.iter().filter(|task| task.result.is_some()) {
        assert_eq!(updated.get(&done.id).map(String::as_str), done.arg.as_deref());
    }
    assert!(!updated.is_empty(), "some pages were read");
}
