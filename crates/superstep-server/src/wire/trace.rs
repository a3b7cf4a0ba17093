//! The events of the mode `events`: a trace of the run in the shape of LangChain's tracing events, from what the engine knows.

use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use crate::store::Run;

/// Makes the trace of one run.
pub(super) struct Trace {
    run_id: String,
    graph: String,
    input: Json,
    metadata: Map<String, Json>,
    /// What is known of tasks that have started, by their ids.
    tasks: HashMap<String, Traced>,
    /// How many tasks were dispatched in which superstep.
    dispatched: (Json, usize),
}

struct Traced {
    base: Json,
    input: Json,
}

impl Trace {
    pub(super) fn new(run: &Run, metadata: &Map<String, Json>) -> Self {
        let mut metadata = metadata.clone();
        metadata.insert("thread_id".to_owned(), run.thread().into());
        Self {
            run_id: run.run_id.clone(),
            graph: run.graph_id.clone(),
            input: run.asked("input").clone(),
            metadata,
            tasks: HashMap::new(),
            dispatched: (Json::Null, 0),
        }
    }

    /// An id for a part of the run, the same each time.
    fn id(&self, part: &str) -> String {
        let run = Uuid::try_parse(&self.run_id).unwrap_or(Uuid::NAMESPACE_OID);
        Uuid::new_v5(&run, part.as_bytes()).to_string()
    }

    fn root(&self, event: &str, data: Json) -> Json {
        json!({
            "event": event, "data": data, "name": self.graph, "tags": [], "run_id": self.run_id,
            "metadata": self.metadata, "parent_ids": [],
        })
    }

    pub(super) fn begin(&self) -> Json {
        self.root("on_chain_start", json!({ "input": self.input }))
    }

    pub(super) fn end(&self, values: &Json) -> Json {
        self.root("on_chain_end", json!({ "output": values }))
    }

    /// What is above a graph: the run, and the tasks that the graph is in.
    fn parents(&self, ns: &[String]) -> Vec<String> {
        let tasks = ns.iter().filter_map(|level| level.split(':').nth(1));
        std::iter::once(self.run_id.clone()).chain(tasks.map(|task| self.id(task))).collect()
    }

    /// The events of a task, from an event of the mode `debug`.
    pub(super) fn task(&mut self, ns: &[String], debug: &Json) -> Vec<Json> {
        let payload = &debug["payload"];
        let Some(id) = payload["id"].as_str() else { return Vec::new() };
        match debug["type"].as_str() {
            Some("task") => {
                let base = self.base(ns, &debug["step"], payload);
                let started = with(&base, "on_chain_start", json!({ "input": payload["input"] }));
                let input = payload["input"].clone();
                self.tasks.insert(id.to_owned(), Traced { base, input });
                vec![started]
            }
            Some("task_result") => {
                let Some(Traced { base, input }) = self.tasks.remove(id) else { return Vec::new() };
                let asked = payload["interrupts"].as_array().is_some_and(|asked| !asked.is_empty());
                if asked || !payload["error"].is_null() {
                    return Vec::new();
                }
                let result = &payload["result"];
                vec![
                    with(&base, "on_chain_stream", json!({ "chunk": result })),
                    with(&base, "on_chain_end", json!({ "output": result, "input": input })),
                ]
            }
            _ => Vec::new(),
        }
    }

    /// What all events of a task have in common.
    fn base(&mut self, ns: &[String], step: &Json, payload: &Json) -> Json {
        let (id, name) = (&payload["id"], &payload["name"]);
        let (id, name) = (id.as_str().unwrap_or_default(), name.as_str().unwrap_or_default());
        let path = if payload["triggers"] == json!(["__pregel_push"]) {
            let before = if self.dispatched.0 == *step { self.dispatched.1 } else { 0 };
            self.dispatched = (step.clone(), before + 1);
            json!(["__pregel_push", before])
        } else {
            json!(["__pregel_pull", name])
        };
        let mut levels = ns.to_vec();
        levels.push(format!("{name}:{id}"));
        let mut metadata = self.metadata.clone();
        let own = [
            ("langgraph_step", step.clone()),
            ("langgraph_node", name.into()),
            ("langgraph_triggers", payload["triggers"].clone()),
            ("langgraph_path", path),
            ("langgraph_checkpoint_ns", levels.join("|").into()),
        ];
        metadata.extend(own.map(|(key, value)| (key.to_owned(), value)));
        json!({
            "name": name, "tags": [format!("graph:step:{step}")], "run_id": self.id(id),
            "metadata": metadata, "parent_ids": self.parents(ns),
        })
    }

    /// The event of a chunk of a message.
    pub(super) fn message(&self, ns: &[String], message: &Json, metadata: &Json) -> Option<Json> {
        let id = message["id"].as_str()?;
        if !message["type"].as_str().is_some_and(|kind| kind.ends_with("Chunk")) {
            return None;
        }
        let mut all = self.metadata.clone();
        all.extend(metadata.as_object().cloned().unwrap_or_default());
        let task =
            metadata["langgraph_checkpoint_ns"].as_str().and_then(|ns| ns.rsplit(':').next());
        let mut parents = self.parents(ns);
        parents.extend(task.map(|task| self.id(task)));
        Some(json!({
            "event": "on_chat_model_stream", "data": { "chunk": message },
            "name": metadata["langgraph_node"], "tags": [], "run_id": self.id(id),
            "metadata": all, "parent_ids": parents,
        }))
    }
}

fn with(base: &Json, event: &str, data: Json) -> Json {
    let mut json = base.clone();
    json["event"] = event.into();
    json["data"] = data;
    json
}
