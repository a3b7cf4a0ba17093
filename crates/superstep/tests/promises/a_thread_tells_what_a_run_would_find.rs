//! Shows what the list of threads says of a thread while it goes through its life: a run that was killed while a task was asking
//! and another was working is ready, and not waiting. It would break if an open question alone made a thread wait.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::Semaphore;

use crate::common::{Counter, Notes, line};
use superstep::checkpoint::{AnyCheckpointer, ThreadQuery, ThreadStatus};
use superstep::prelude::*;

/// `ask` asks, `work` waits for a permit, and `last` fails the first time.
fn graph(permits: &Arc<Semaphore>) -> StateGraph<Notes> {
    let (permits, tries) = (permits.clone(), Counter::default());
    StateGraph::new()
        .add_node("ask", async |task: Task| line(task.interrupt::<String>("sure?").await))
        .add_node("work", move || {
            let permits = permits.clone();
            async move {
                permits.acquire().await.expect("it is open").forget();
                line("worked")
            }
        })
        .add_node(
            "last",
            move || if tries.add() == 0 { Err("not today") } else { Ok(line("last")) },
        )
        .add_edge(START, "ask")
        .add_edge(START, "work")
        .add_edge(["ask", "work"], "last")
}

#[tokio::test]
async fn at_every_turn_of_its_life() {
    let checkpointer = AnyCheckpointer::new(MemorySaver::new());
    let permits = Arc::new(Semaphore::new(0));
    let app =
        graph(&permits).compile().expect("a graph").with_any_checkpointer(checkpointer.clone());
    let thread = app.thread("t");
    let says = async |status: ThreadStatus, questions: usize| {
        let page = checkpointer.threads(ThreadQuery::new(5).status(status)).await.expect("a page");
        let [info] = &page.threads[..] else { panic!("no thread is {status}") };
        assert_eq!((info.status, info.pending.len()), (Some(status), questions));
        let with = ThreadQuery::new(5).questions(questions > 0);
        assert_eq!(checkpointer.threads(with).await.expect("a page").threads.len(), 1);
    };

    // The run is dropped, as a process that is killed drops it, when the question is stored and `work` still runs.
    let mut run = Box::pin(thread.invoke(Notes::update()).into_future());
    loop {
        let is_over = poll_fn(|cx| Poll::Ready(run.as_mut().poll(cx).is_ready())).await;
        assert!(!is_over, "`work` has no permit");
        let head = checkpointer.get("t", "", None).await.expect("read");
        if head.is_some_and(|head| !head.open_questions().expect("questions").is_empty()) {
            break;
        }
        tokio::task::yield_now().await;
    }
    says(ThreadStatus::Ready, 1).await;
    drop(run);
    says(ThreadStatus::Ready, 1).await;

    permits.add_permits(1);
    let outcome = thread.invoke(()).await.expect("it goes on");
    assert!(matches!(outcome, Outcome::Interrupted(_)), "{outcome:?}");
    says(ThreadStatus::Waiting, 1).await;

    superstep::answer(&checkpointer, "t", None, "yes").await.expect("it is asked");
    says(ThreadStatus::Ready, 0).await;
    thread.invoke(()).await.expect_err("`last` fails");
    says(ThreadStatus::Failed, 0).await;
    thread.invoke(()).await.expect("`last` does not fail again");
    says(ThreadStatus::Done, 0).await;
}
