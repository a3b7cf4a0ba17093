//! What happens in a run, in the words of the protocol.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use superstep::{AnyEvent, Mode};

use super::messages::Messages;
use super::session::Session;
use super::tools::Tools;
use crate::app::App;
use crate::store::{Ended, Run, RunStatus, StoreError, Stored, ThreadStatus};
use crate::wire::{message_metadata, task_with_metadata};

/// What a run must be asked for so that all channels have their events.
pub(crate) const MODES: [Mode; 6] =
    [Mode::Values, Mode::Updates, Mode::Messages, Mode::Custom, Mode::Tasks, Mode::Checkpoints];

type Told = Result<(), StoreError>;

/// Writes what happens in an attempt of a run to the session of its thread.
pub(crate) struct Publisher {
    session: Arc<Session>,
    run_id: String,
    attempt: u32,
    graph: String,
    /// The metadata of its tasks.
    metadata: Map<String, Json>,
    messages: Messages,
    tools: Tools,
    /// The graphs inside that have started and not ended.
    inside: Vec<Vec<String>>,
    asked: HashSet<String>,
    /// What is told only when the end of the run is stored: its questions, and the state beside them.
    questions: Vec<(Vec<String>, Json)>,
    values: Option<Json>,
}

impl Publisher {
    /// `None` if the thread of the run is not followed.
    pub(crate) async fn open(app: &App, run: &Run) -> Result<Option<Self>, StoreError> {
        if !run.session {
            return Ok(None);
        }
        let session = Session::open(app, &run.thread_id).await?;
        session.forget_graphs();
        let mut publisher = Self {
            session,
            run_id: run.run_id.clone(),
            attempt: run.attempt,
            graph: run.graph_id.clone(),
            metadata: message_metadata(run),
            messages: Messages::default(),
            tools: Tools::default(),
            inside: Vec::new(),
            asked: HashSet::new(),
            questions: Vec::new(),
            values: None,
        };
        publisher.lifecycle(&[], "running", None).await?;
        publisher.flush().await?;
        Ok(Some(publisher))
    }

    /// An id for what happens once in an attempt.
    fn id(&self, what: &str, ns: &[String], word: &str) -> String {
        let ns = ns.join("|");
        match self.attempt {
            1 => format!("synth:{}:{what}|{ns}|{word}", self.run_id),
            attempt => format!("synth:{}:{attempt}:{what}|{ns}|{word}", self.run_id),
        }
    }

    async fn lifecycle(&mut self, ns: &[String], word: &'static str, error: Option<&str>) -> Told {
        let node = ns.last().map(|level| level.split(':').next().unwrap_or(level));
        let name = node.unwrap_or(&self.graph);
        let mut data = json!({ "event": word, "graph_name": name });
        if let Some(error) = error {
            data["error"] = error.into();
        }
        if let ("started", Some(level)) = (word, ns.last()) {
            data["namespace"] = json!(ns);
            data["trigger_call_id"] = level.split_once(':').map(|(_, task)| task).into();
        }
        self.session.note(ns, name, word);
        self.session.push("lifecycle", Some(self.id("lc", ns, word)), ns, &data).await
    }

    /// Tells what happened.
    pub(crate) async fn event(&mut self, event: &AnyEvent) -> Told {
        let AnyEvent::Data { mode, ns, data, .. } = event else { return Ok(()) };
        self.enter(ns).await?;
        match mode {
            Mode::Values => self.values(ns, data).await,
            Mode::Updates => self.updates(ns, data).await,
            Mode::Messages => self.message(ns, data).await,
            Mode::Custom => self.session.push("custom", None, ns, &custom(data)).await,
            Mode::Tasks => self.task(ns, data).await,
            Mode::Checkpoints => {
                self.session.push("checkpoints", None, ns, &checkpoint(data)).await
            }
            _ => Ok(()),
        }
    }

    /// A graph inside starts with its first event.
    async fn enter(&mut self, ns: &[String]) -> Told {
        for depth in 1..=ns.len() {
            let ns = &ns[..depth];
            if !self.inside.iter().any(|inside| inside == ns) {
                self.inside.push(ns.to_vec());
                self.lifecycle(ns, "started", None).await?;
            }
        }
        Ok(())
    }

    async fn values(&mut self, ns: &[String], data: &Json) -> Told {
        let mut values = data.clone();
        let asked = values.as_object_mut().and_then(|values| values.remove("__interrupt__"));
        for question in asked.as_ref().and_then(Json::as_array).into_iter().flatten() {
            let Some(id) = question["id"].as_str() else { continue };
            // The graphs around the one that asks show the question, too.
            if self.asked.insert(id.to_owned()) {
                let value = &question["value"];
                let question = json!({ "interrupt_id": id, "payload": value, "value": value });
                self.questions.push((ns.to_vec(), question));
            }
        }
        if asked.is_some() && ns.is_empty() {
            self.values = Some(values);
            return Ok(());
        }
        self.session.push("values", None, ns, &values).await
    }

    async fn updates(&mut self, ns: &[String], data: &Json) -> Told {
        let nodes = data.as_object().into_iter().flatten();
        for (node, values) in nodes.filter(|(node, _)| !node.starts_with("__")) {
            let data = json!({ "node": node, "values": values });
            self.session.push("updates", None, ns, &data).await?;
        }
        Ok(())
    }

    async fn message(&mut self, ns: &[String], data: &Json) -> Told {
        let (message, metadata) = (&data[0], &data[1]);
        for event in self.messages.of(ns, message, metadata) {
            self.session.push("messages", None, ns, &event).await?;
        }
        if let Some(ended) = self.tools.ended(message) {
            self.session.push("tools", None, ns, &ended).await?;
        }
        Ok(())
    }

    async fn task(&mut self, ns: &[String], data: &Json) -> Told {
        let mut task = data.clone();
        task_with_metadata(&mut task, &self.metadata);
        if task.get("triggers").is_some() {
            self.session.push("tasks", None, ns, &task).await?;
            for call in self.tools.started(&task["input"]) {
                self.session.push("tools", None, ns, &call).await?;
            }
            return Ok(());
        }
        let id = task["id"].as_str().unwrap_or_default();
        for (ns, event) in self.messages.end_of_task(id) {
            self.session.push("messages", None, &ns, &event).await?;
        }
        let is_its_graph = |inside: &Vec<String>| {
            let task = inside.last().and_then(|level| level.split(':').nth(1));
            task == Some(id) && inside.len() == ns.len() + 1 && inside.starts_with(ns)
        };
        if let Some(at) = self.inside.iter().position(is_its_graph) {
            let inside = self.inside.remove(at);
            let error = task["error"].as_str();
            let word = match task["interrupts"].as_array().is_some_and(|asked| !asked.is_empty()) {
                true => "interrupted",
                false if error.is_some() => "failed",
                false => "completed",
            };
            self.lifecycle(&inside, word, error).await?;
        }
        self.session.push("tasks", None, ns, &task).await
    }

    /// Whether something waits to be stored.
    pub(crate) fn has_staged(&self) -> bool {
        self.session.has_staged()
    }

    /// Stores what was told, and shows it.
    pub(crate) async fn flush(&self) -> Told {
        self.session.flush().await
    }

    /// What tells how the run ended, and what else waits to be stored. It is stored with the end of the run: the next run of
    /// the thread may begin in another process in the same moment, with the next number.
    pub(crate) async fn end(&mut self, ended: &Ended) -> Result<Vec<Stored>, StoreError> {
        let rolled_back = "the run was rolled back by a request";
        let (word, error) = match ended {
            Ended::PutBack => return Ok(self.session.staged()),
            Ended::Over { status: RunStatus::Error, thread, .. } => {
                ("failed", thread.error["message"].as_str())
            }
            Ended::Over { status: RunStatus::Interrupted, .. } => ("interrupted", None),
            Ended::Over { thread, .. } if thread.status == ThreadStatus::Interrupted => {
                ("interrupted", None)
            }
            Ended::Over { .. } => ("completed", None),
            Ended::Deleted { .. } => ("failed", Some(rolled_back)),
        };
        for (ns, event) in self.messages.end_all() {
            self.session.push("messages", None, &ns, &event).await?;
        }
        for (ns, question) in std::mem::take(&mut self.questions) {
            let asked = question["interrupt_id"].as_str().unwrap_or_default();
            let id = Some(self.id("input", &ns, asked));
            self.session.push("input.requested", id, &ns, &question).await?;
        }
        for inside in std::mem::take(&mut self.inside).into_iter().rev() {
            self.lifecycle(&inside, word, error).await?;
        }
        self.lifecycle(&[], word, error).await?;
        if let Some(values) = self.values.take() {
            self.session.push("values", None, &[], &values).await?;
        }
        self.session.forget_graphs();
        Ok(self.session.staged())
    }

    /// Forgets what waits: the run is deleted, or another process drives it.
    pub(crate) fn give_up(&self) {
        self.session.forget_staged();
    }

    /// Shows how the run ended, once that is stored.
    pub(crate) fn ended(&self, told: Vec<Stored>) {
        self.session.stored(told);
    }
}

/// Tells that a run ended because the server failed, when its publisher is gone.
pub(crate) async fn publish_failure(app: &App, run: &Run, ended: &Ended) -> Told {
    match Publisher::open(app, run).await? {
        Some(mut publisher) => {
            publisher.end(ended).await?;
            publisher.flush().await
        }
        None => Ok(()),
    }
}

/// An object of a name and a payload is a custom event with that name.
fn custom(data: &Json) -> Json {
    match data.as_object() {
        Some(named)
            if named.len() == 2 && data["name"].is_string() && named.contains_key("payload") =>
        {
            data.clone()
        }
        _ => json!({ "payload": data }),
    }
}

fn checkpoint(data: &Json) -> Json {
    let id = |config: &str| &data[config]["configurable"]["checkpoint_id"];
    let metadata = &data["metadata"];
    let mut short =
        json!({ "id": id("config"), "step": metadata["step"], "source": metadata["source"] });
    if !id("parent_config").is_null() {
        short["parent_id"] = id("parent_config").clone();
    }
    short
}
