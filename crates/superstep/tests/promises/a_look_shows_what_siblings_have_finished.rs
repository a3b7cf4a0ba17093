//! Shows that a snapshot of a superstep that is open shows all that its finished tasks have written, whatever the kind of the
//! channel, and that a question with one id is one question.

use crate::world::{asked, texts};
use superstep::prelude::*;

#[derive(State, Clone, Default, Debug)]
struct Notes {
    #[channel(reduce = Append)]
    log: Vec<String>,
    #[channel(ephemeral)]
    hint: Option<String>,
}

/// In the reference a value that lives for one superstep is not shown.
#[tokio::test]
async fn for_one_superstep_too() {
    let graph = StateGraph::<Notes>::new()
        .add_node("quick", || Notes::update().log(["quick".to_owned()]).hint(Some("x".to_owned())))
        .add_node("ask", |task: Task| async move {
            Notes::update().log([task.interrupt::<String>("well?").await])
        })
        .add_edge(START, "quick")
        .add_edge(START, "ask")
        .compile()
        .expect("a graph");
    let thread = graph.with_checkpointer(MemorySaver::new()).thread("1");
    assert_eq!(asked(thread.invoke(Notes::update()).await), ["well?"]);
    let state = thread.get_state().await.expect("a state");
    assert_eq!(state.state().log, ["quick"]);
    assert_eq!(state.state().hint.as_deref(), Some("x"));
    assert_eq!(texts(&state.interrupts), ["well?"]);
}

/// A node that waits for the same question twice asks once.
#[tokio::test]
async fn one_question_with_one_id_once() {
    let graph = StateGraph::<Notes>::new()
        .add_node("ask", |task: Task| async move {
            let (one, other) =
                tokio::join!(task.interrupt::<String>("well?"), task.interrupt::<String>("well?"));
            Notes::update().log([one, other])
        })
        .add_edge(START, "ask")
        .compile()
        .expect("a graph");
    let thread = graph.with_checkpointer(MemorySaver::new()).thread("1");
    assert_eq!(asked(thread.invoke(Notes::update()).await), ["well?"]);
    assert_eq!(texts(&thread.get_state().await.expect("a state").interrupts), ["well?"]);
}
