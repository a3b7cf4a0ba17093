//! From events of the engine to the events that clients asked for.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::{Value, from_value, to_value};
use superstep::state::Message;
use superstep::{AnyEvent, Mode, Outcome, RawSnapshot, TaskSnapshot};

use super::trace::Trace;
use crate::store::Run;
use crate::time::Micros;

/// The modes of the engine that give the events of these modes of the API.
pub(crate) fn engine_modes(asked: &[String]) -> Vec<Mode> {
    let mut modes = Vec::new();
    for word in asked {
        let of_word: &[Mode] = match &**word {
            "messages-tuple" => &[Mode::Messages],
            // Tasks with their superstep, and tokens.
            "events" => &[Mode::Debug, Mode::Messages],
            word => &Mode::from_name(word).map_or(Vec::new(), |mode| vec![mode]),
        };
        let new: Vec<_> = of_word.iter().filter(|mode| !modes.contains(*mode)).copied().collect();
        modes.extend(new);
    }
    modes
}

/// What the metadata of messages and tasks says of their run.
pub(crate) fn message_metadata(run: &Run) -> Map<String, Json> {
    let mut metadata = run.metadata.clone();
    metadata.insert("run_attempt".to_owned(), run.attempt.into());
    metadata.insert("run_id".to_owned(), run.run_id.as_str().into());
    metadata
}

/// Adds the metadata of the run to the start of a task.
pub(crate) fn task_with_metadata(task: &mut Json, metadata: &Map<String, Json>) {
    if task.get("triggers").is_some() {
        task["metadata"] = Json::Object(metadata.clone());
    }
}

/// The start of a task with the metadata of the run, or its end in the form that clients know.
fn complete_task(task: &mut Json, metadata: &Map<String, Json>) {
    task_with_metadata(task, metadata);
    if let Some(text) = task["error"].as_str() {
        task["error"] = named_error(text);
    }
    for asked in task.get_mut("interrupts").and_then(Json::as_array_mut).into_iter().flatten() {
        if let Some(asked) = asked.as_object_mut() {
            asked.entry("response_schema").or_insert(Json::Null);
        }
    }
}

/// The name and the text of an error that is stored as `Name("text")`.
fn named_error(stored: &str) -> Json {
    let parts = stored.split_once('(').and_then(|(name, rest)| {
        let text = rest.strip_suffix(')')?;
        Some((name, serde_json::from_str::<String>(text).unwrap_or_else(|_| text.to_owned())))
    });
    let (name, text) = parts.unwrap_or(("Error", stored.to_owned()));
    json!({ "error": name, "message": text })
}

/// In the mode `debug`, a task that is a subgraph says where its checkpoints are.
fn subgraphs_as_places(checkpoint: &mut Json) {
    for task in checkpoint.get_mut("tasks").and_then(Json::as_array_mut).into_iter().flatten() {
        let place = task["state"].get_mut("configurable").map(Json::take);
        if let (Some(place), Some(task)) = (place, task.as_object_mut()) {
            task.remove("state");
            task.insert("checkpoint".to_owned(), place);
        }
    }
}

/// Makes the events of one run.
pub(crate) struct Frames {
    asked: HashSet<String>,
    subgraphs: bool,
    stateless: bool,
    /// Added to the metadata of messages and tasks.
    metadata: Map<String, Json>,
    /// Added to the configs of checkpoints.
    configurable: Map<String, Json>,
    /// Messages of which pieces were sent, as far as they have come.
    partial: HashMap<String, Message>,
    /// For the mode `events`.
    trace: Option<Trace>,
}

impl Frames {
    pub(crate) fn new(run: &Run) -> Self {
        let asked = run.asked("stream_mode").as_array().into_iter().flatten();
        let asked: HashSet<String> = asked.filter_map(Json::as_str).map(str::to_owned).collect();
        let metadata = message_metadata(run);
        let trace = asked.contains("events").then(|| Trace::new(run, &metadata));
        let configurable = run.asked("config")["configurable"].as_object().cloned();
        Self {
            asked,
            subgraphs: run.asked("subgraphs") == &Json::Bool(true),
            stateless: run.stateless.is_some(),
            metadata,
            configurable: configurable.unwrap_or_default(),
            partial: HashMap::new(),
            trace,
        }
    }

    /// The events before those of the engine.
    pub(crate) fn begin(&self) -> Option<(String, Json)> {
        self.trace.as_ref().map(|trace| ("events".to_owned(), trace.begin()))
    }

    /// The events after those of the engine, if the run did not fail.
    pub(crate) fn end(&self, outcome: &Outcome<Json>) -> Option<(String, Json)> {
        let values = match outcome {
            Outcome::Done(values) => values.clone(),
            Outcome::Interrupted(asked) => asked.state().cloned().unwrap_or_default(),
            _ => return None,
        };
        self.trace.as_ref().map(|trace| ("events".to_owned(), trace.end(&values)))
    }

    /// The events that clients see of this one.
    pub(crate) fn of(&mut self, event: &AnyEvent) -> Vec<(String, Json)> {
        let AnyEvent::Data { mode, ns, data, .. } = event else { return Vec::new() };
        let mut frames = self.frames(*mode, ns, data);
        if let Some(trace) = &mut self.trace {
            let traced = match mode {
                Mode::Debug => trace.task(ns, data),
                Mode::Messages => trace.message(ns, &data[0], &data[1]).into_iter().collect(),
                _ => Vec::new(),
            };
            frames.extend(traced.into_iter().map(|event| ("events".to_owned(), event)));
        }
        frames
    }

    /// The events of a superstep that was stored, as far as they can be made from its checkpoints.
    pub(crate) fn of_superstep(
        &self,
        before: Option<&RawSnapshot>,
        after: &RawSnapshot,
    ) -> Vec<(String, Json)> {
        let mut frames = before.map_or_else(Vec::new, |before| self.of_tasks(before, |_| true));
        let begun = after.metadata.as_ref().is_some_and(|metadata| metadata.step >= 0);
        frames.extend(self.values_of(after).filter(|_| begun));
        if self.asked.contains("checkpoints") && !self.stateless {
            let mut checkpoint = after.to_event_json();
            self.complete_checkpoint(&mut checkpoint);
            frames.push(("checkpoints".to_owned(), checkpoint));
        }
        frames
    }

    /// The events of tasks that have finished in a superstep that is not stored.
    pub(crate) fn of_finished(&self, state: &RawSnapshot) -> Vec<(String, Json)> {
        self.of_tasks(state, |task| task.result.is_some())
    }

    /// The event that shows this state.
    pub(crate) fn values_of(&self, state: &RawSnapshot) -> Option<(String, Json)> {
        let asked = self.asked.contains("values");
        asked.then(|| ("values".to_owned(), state.values.clone().into()))
    }

    fn of_tasks(
        &self,
        state: &RawSnapshot,
        is_wanted: impl Fn(&TaskSnapshot) -> bool,
    ) -> Vec<(String, Json)> {
        let mut frames = Vec::new();
        let shown = state.tasks.iter().filter(|task| !task.name.starts_with("__"));
        for task in shown.filter(|task| is_wanted(task)) {
            let result = Json::from(task.result.clone());
            if self.asked.contains("updates") {
                frames.push(("updates".to_owned(), json!({ &*task.name: result })));
            }
            if self.asked.contains("tasks") {
                let end = json!({
                    "id": task.id.to_string(), "name": &*task.name, "error": null, "result": result, "interrupts": [],
                });
                frames.push(("tasks".to_owned(), end));
            }
        }
        frames
    }

    fn frames(&mut self, mode: Mode, ns: &[String], data: &Json) -> Vec<(String, Json)> {
        let name = |word: &str| match ns.is_empty() {
            true => word.to_owned(),
            false => format!("{word}|{}", ns.join("|")),
        };
        // The engine may be asked for more than this, for those who follow the thread.
        let is_asked = match mode {
            Mode::Messages => true,
            mode => self.asked.contains(mode.as_str()),
        };
        if !is_asked || (!ns.is_empty() && !self.subgraphs) {
            return Vec::new();
        }
        let mut data = data.clone();
        match mode {
            Mode::Messages => return self.messages(data, &name("messages")),
            Mode::Tasks => complete_task(&mut data, &self.metadata),
            Mode::Checkpoints if self.stateless => return Vec::new(),
            Mode::Checkpoints => self.complete_checkpoint(&mut data),
            Mode::Debug => {
                data["timestamp"] = Micros::now().rfc3339().into();
                match data["type"].as_str() {
                    Some("checkpoint") if self.stateless => return Vec::new(),
                    Some("checkpoint") => {
                        self.complete_checkpoint(&mut data["payload"]);
                        subgraphs_as_places(&mut data["payload"]);
                    }
                    _ => complete_task(&mut data["payload"], &self.metadata),
                }
            }
            _ => {}
        }
        vec![(name(mode.as_str()), data)]
    }

    fn complete_checkpoint(&self, checkpoint: &mut Json) {
        for config in ["config", "parent_config"] {
            if let Some(place) =
                checkpoint[config].get_mut("configurable").and_then(Json::as_object_mut)
            {
                for (key, value) in &self.configurable {
                    place.entry(key).or_insert_with(|| value.clone());
                }
            }
        }
    }

    fn messages(&mut self, data: Json, tuple: &str) -> Vec<(String, Json)> {
        let Json::Array(pair) = data else { return Vec::new() };
        let Ok([message, metadata]) = <[Json; 2]>::try_from(pair) else { return Vec::new() };
        let mut all = self.metadata.clone();
        all.extend(
            self.configurable.get("thread_id").map(|id| ("thread_id".to_owned(), id.clone())),
        );
        all.extend(metadata.as_object().cloned().unwrap_or_default());
        let mut frames = Vec::new();
        if self.asked.contains("messages-tuple") {
            frames.push((tuple.to_owned(), json!([message, all])));
        }
        if self.asked.contains("messages") {
            frames.extend(self.partial(message, all));
        }
        frames
    }

    /// The whole of a message so far, for clients that do not put pieces together.
    fn partial(&mut self, json: Json, metadata: Map<String, Json>) -> Vec<(String, Json)> {
        let id = json["id"].as_str().unwrap_or_default().to_owned();
        let is_piece = json["type"].as_str().is_some_and(|kind| kind.ends_with("Chunk"));
        let mut frames = Vec::new();
        if !self.partial.contains_key(&id) {
            frames
                .push(("messages/metadata".to_owned(), json!({ &*id: { "metadata": metadata } })));
        }
        let Ok(piece) = from_value::<Message>(Value::from(json.clone())) else { return frames };
        if !is_piece {
            self.partial.insert(id, piece);
            frames.push(("messages/complete".to_owned(), json!([json])));
            return frames;
        }
        let whole = match self.partial.remove(&id) {
            None => piece,
            Some(mut whole) => match whole.merge(piece) {
                Ok(()) => whole,
                Err(_) => return frames,
            },
        };
        let shown = to_value(&whole.clone().into_message()).map(Json::from);
        self.partial.insert(id, whole);
        frames.extend(shown.ok().map(|shown| ("messages/partial".to_owned(), json!([shown]))));
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_errors_are_shown_by_name_and_text() {
        for (stored, name, text) in [
            (r#"ValueError("a \"b\"")"#, "ValueError", "a \"b\""),
            ("ValueError('a')", "ValueError", "'a'"),
            ("broken", "Error", "broken"),
        ] {
            assert_eq!(named_error(stored), json!({ "error": name, "message": text }));
        }
    }
}
