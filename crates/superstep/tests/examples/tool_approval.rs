//! Drives `examples/tool_approval.rs`, which has no room for its tests.

use super::*;

#[tokio::test]
async fn only_the_task_that_asked_runs_again() {
    let log = Log::default();
    let thread = app(log.clone()).expect("a graph").thread("t");
    let ran = || std::mem::take(&mut *log.lock().expect("nobody panics"));
    let asked = thread.invoke(Desk::update()).await.expect("a run").interrupted();
    assert_eq!(asked.expect("a question")[0].value, "Run `rm notes.txt`?".into());
    assert_eq!(ran(), ["greet", "choose", "run_tool"]);
    let desk = thread.resume(false).await.expect("a run").done().expect("the end");
    assert_eq!(desk.report, "not allowed");
    assert_eq!(ran(), ["run_tool"]);
}
