//! `invoke` and `resume` return the same thing: a run that can be awaited, spawned or streamed. The last item of its
//! stream is the outcome or an error, so that whoever maps the stream keeps it.

use std::pin::pin;

use futures_core::Stream;

use crate::common::{Notes, done, kept, line};
use superstep::checkpoint::Value;
use superstep::prelude::*;
use superstep::{Data, Event, RunControl, Thread, UpdatesEvent};

fn thread() -> Thread<Notes> {
    let graph = StateGraph::<Notes>::new()
        .add_node("ask", |task: Task| async move {
            let name: String = task.interrupt("who?").await;
            task.emit(format!("it is {name}"));
            line(name)
        })
        .add_node("after", || line("after"))
        .add_edge(START, "ask")
        .add_edge("ask", "after");
    kept(graph).thread("t")
}

/// Takes all items of any stream, each as a short text.
async fn all<O>(stream: impl Stream<Item = Result<Event<O>, RunError>>) -> Vec<String>
where
    O: std::fmt::Debug,
{
    let mut stream = pin!(stream);
    let mut seen = Vec::new();
    while let Some(item) = std::future::poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
        seen.push(match item.map(|event| event.data) {
            Ok(Data::Updates(UpdatesEvent::Task { node, .. })) => format!("update of {node}"),
            Ok(Data::Updates(UpdatesEvent::Interrupted(asked))) => {
                format!("asked {}", asked[0].value)
            }
            Ok(Data::Custom(value)) => format!("custom {value}"),
            Ok(Data::Outcome(Outcome::Done(_))) => "done".to_owned(),
            Ok(Data::Outcome(Outcome::Interrupted(asked))) => format!("{} open", asked.len()),
            Ok(Data::Outcome(Outcome::Drained(reason))) => format!("drained: {reason}"),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("failed: {error}"),
        });
    }
    seen
}

#[tokio::test]
async fn both_are_spawned_as_they_are() {
    let thread = thread();
    let asked = tokio::spawn(thread.invoke(Notes::update())).await.expect("no panic");
    assert!(matches!(asked, Ok(Outcome::Interrupted(_))), "{asked:?}");
    let ended = tokio::spawn(thread.resume("Ada")).await.expect("no panic");
    assert_eq!(done(ended).lines, ["Ada", "after"]);
}

#[tokio::test]
async fn both_are_streamed_up_to_their_outcome() {
    let thread = thread();
    let modes = [Mode::Updates, Mode::Custom];
    let failed = all(thread.invoke(()).stream(modes)).await;
    assert!(failed.len() == 1 && failed[0].starts_with("failed: "), "{failed:?}");
    assert_eq!(all(thread.invoke(line("in")).stream(modes)).await, ["asked \"who?\"", "1 open"]);
    assert_eq!(
        all(thread.resume("Ada").stream(modes)).await,
        ["custom \"it is Ada\"", "update of ask", "update of after", "done"]
    );
}

#[tokio::test]
async fn an_outcome_comes_without_any_mode() {
    let thread = thread();
    assert_eq!(all(thread.invoke(line("in")).stream([])).await, ["1 open"]);
    let control = RunControl::new();
    control.request_drain("deploy");
    let drained = thread.resume("Ada").control(control).stream([]);
    assert_eq!(all(drained).await, ["drained: deploy"]);
    let ended = thread.invoke(()).stream([Mode::Values, Mode::Debug]).into_outcome().await;
    assert_eq!(done(ended).lines, ["in", "Ada", "after"]);
}

#[tokio::test]
async fn answers_by_id_are_streamed_too() {
    let thread = thread();
    let asked = thread.invoke(Notes::update()).await.expect("a run").interrupted();
    let answers = asked.expect("a question").into_iter().map(|question| (question.id, "Ada"));
    let run = thread.resume_all(answers).stream([Mode::Custom]);
    assert_eq!(all(run).await, ["custom \"it is Ada\"", "done"]);
}

#[tokio::test]
async fn an_outcome_is_data() {
    let thread = thread();
    let json = |outcome: Outcome<Notes>| {
        let lines = outcome.map(|notes| notes.lines);
        serde_json::to_value(&lines).expect("an outcome that can be serialized")
    };
    let asked = thread.invoke(line("in")).await.expect("a run");
    let questions: Vec<_> = match &asked {
        Outcome::Interrupted(asked) => asked.into_iter().collect(),
        other => panic!("{other:?}"),
    };
    let id = questions[0].id.as_str().to_owned();
    assert_eq!(
        json(asked),
        serde_json::json!({
            "status": "interrupted",
            "interrupts": [{ "id": id, "value": "who?" }],
            "state": ["in"],
        })
    );
    let control = RunControl::new();
    control.request_drain("deploy");
    let drained = thread.resume("Ada").control(control).await.expect("a run");
    assert_eq!(json(drained), serde_json::json!({ "status": "drained", "reason": "deploy" }));
    let ended = thread.invoke(()).await.expect("a run");
    let output = ["in", "Ada", "after"];
    assert_eq!(json(ended), serde_json::json!({ "status": "done", "output": output }));
}

/// A workflow returns data, so all of its events are data.
#[tokio::test]
async fn the_last_event_is_data_too() {
    let double = superstep::func::Entrypoint::new("double", |n: i64, _: Task| async move {
        Ok::<_, NodeError>(n * 2)
    });
    let double = double.compile();
    let mut events = double.start(21).stream([Mode::Values]);
    let mut last = None;
    while let Some(event) = events.next().await {
        last = Some(event.expect("an event").to_value().expect("data"));
    }
    let expected = serde_json::json!({ "status": "done", "output": 42 });
    assert_eq!(last, Some(Value::from(expected)));
}
