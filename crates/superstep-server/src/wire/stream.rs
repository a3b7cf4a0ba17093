//! From events of the engine to the events that clients asked for.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::{Value, from_value, to_value};
use superstep::state::Message;
use superstep::{AnyEvent, Mode, Outcome};

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
            Mode::Tasks => task_with_metadata(&mut data, &self.metadata),
            Mode::Checkpoints if self.stateless => return Vec::new(),
            Mode::Checkpoints => self.complete_checkpoint(&mut data),
            Mode::Debug => {
                data["timestamp"] = Micros::now().rfc3339().into();
                match data["type"].as_str() {
                    Some("checkpoint") => self.complete_checkpoint(&mut data["payload"]),
                    _ => task_with_metadata(&mut data["payload"], &self.metadata),
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
