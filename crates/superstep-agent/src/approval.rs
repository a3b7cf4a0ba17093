//! Asking a person before a tool runs.
//!
//! Each call asks by itself, in its own task, before anything of the tool runs. So calls are answered in any order and in any
//! process, and a call that was answered does not run again because another was not. The question carries a JSON schema of its
//! answer: an answer that does not fit it is refused before anything runs.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::json;
use superstep::Task;
use superstep::checkpoint::{Map, Value};
use superstep::state::{Message, ToolCall, ToolStatus};

use crate::tool::ToolSpec;

/// Which calls of a tool a person is asked about, and what the person may decide.
#[derive(Clone)]
pub struct Approval {
    decisions: Vec<DecisionKind>,
    description: Option<String>,
    when: Option<Predicate>,
}

type Predicate = Arc<dyn Fn(&Map) -> bool + Send + Sync>;

impl Default for Approval {
    /// Every call, and all decisions.
    fn default() -> Self {
        use DecisionKind::{Approve, Edit, Reject, Respond};
        Self { decisions: vec![Approve, Edit, Reject, Respond], description: None, when: None }
    }
}

impl Approval {
    /// Asks about calls whose arguments fulfil this. It is evaluated again when the answer arrives, so it must depend on
    /// the arguments alone.
    pub fn when(when: impl Fn(&Map) -> bool + Send + Sync + 'static) -> Self {
        Self { when: Some(Arc::new(when)), ..Self::default() }
    }

    /// Allows only these decisions. None is the same as all.
    #[must_use]
    pub fn allow(self, decisions: impl IntoIterator<Item = DecisionKind>) -> Self {
        let mut allowed: Vec<DecisionKind> = Vec::new();
        for decision in decisions {
            if !allowed.contains(&decision) {
                allowed.push(decision);
            }
        }
        if allowed.is_empty() { self } else { Self { decisions: allowed, ..self } }
    }

    /// The text shown to the person, in place of the name and the arguments.
    #[must_use]
    pub fn describe(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    pub(crate) fn asks(&self, args: &Map) -> bool {
        self.when.as_ref().is_none_or(|when| when(args))
    }
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval").field("decisions", &self.decisions).finish_non_exhaustive()
    }
}

/// What a person may decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DecisionKind {
    /// The call runs.
    Approve,
    /// It runs with other arguments.
    Edit,
    /// It does not run, and the model is told why.
    Reject,
    /// The person answers in place of the tool.
    Respond,
}

/// The form of questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApprovalFormat {
    /// LangChain's list of actions, with one action. What user interfaces show today.
    #[default]
    BatchOfOne,
    /// LangChain's `tool_approval`: what its `per_call` mode asks, so that a question of one engine is answered in the other.
    PerCall,
}

/// What a person decided about a call.
///
/// Give it to [`Thread::resume`](superstep::Thread::resume) as it is, whatever the format of the question.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decision {
    /// The call runs.
    Approve,
    /// It runs with other arguments.
    Edit {
        /// What runs instead.
        edited_action: Action,
    },
    /// It does not run.
    Reject {
        /// Why, for the model.
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// It does not run, and this is its result.
    Respond {
        /// What the model is told.
        message: String,
    },
}

/// A tool and its arguments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Map,
}

impl Decision {
    /// Rejects for this reason.
    pub fn reject(message: impl Into<String>) -> Self {
        Self::Reject { message: Some(message.into()) }
    }

    /// Answers in place of the tool.
    pub fn respond(message: impl Into<String>) -> Self {
        Self::Respond { message: message.into() }
    }

    /// Runs the tool with these arguments instead.
    pub fn edit(name: impl Into<String>, args: impl IntoIterator<Item = (String, Value)>) -> Self {
        let edited_action = Action { name: name.into(), args: args.into_iter().collect() };
        Self::Edit { edited_action }
    }
}

/// Also read from `{"decisions": [...]}` with one decision, the answer to a batch.
impl<'de> Deserialize<'de> for Decision {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(tag = "type", rename_all = "snake_case")]
        enum One {
            Approve,
            Edit { edited_action: Action },
            Reject { message: Option<String> },
            Respond { message: String },
        }

        #[derive(Deserialize)]
        struct Batch {
            decisions: Vec<One>,
        }

        let value = Value::deserialize(deserializer)?;
        let one = if value.get("decisions").is_some() {
            let batch: Batch =
                superstep::checkpoint::from_value(value).map_err(de::Error::custom)?;
            let count = batch.decisions.len();
            let [one] = <[One; 1]>::try_from(batch.decisions).map_err(|_| {
                de::Error::custom(format_args!("expected one decision, found {count}"))
            })?;
            one
        } else {
            superstep::checkpoint::from_value(value).map_err(de::Error::custom)?
        };
        Ok(match one {
            One::Approve => Self::Approve,
            One::Edit { edited_action } => Self::Edit { edited_action },
            One::Reject { message } => Self::Reject { message },
            One::Respond { message } => Self::Respond { message },
        })
    }
}

/// What comes of a call that a person was asked about.
pub(crate) enum Verdict {
    /// It runs. If it was edited, this says so to the model.
    Run(Box<ToolCall>, Option<String>),
    /// It does not run; this is its result.
    Answered(Box<Message>),
}

/// Asks about a call, if it has to be asked about.
pub(crate) async fn ask(
    approval: Option<&Approval>,
    spec: &ToolSpec,
    mut call: ToolCall,
    format: ApprovalFormat,
    task: &Task,
) -> Verdict {
    let Some(approval) = approval.filter(|approval| approval.asks(&call.args)) else {
        return Verdict::Run(Box::new(call), None);
    };
    let (question, schema) = approval.question(spec, &call, format);
    match task.interrupt::<Decision>(question).schema(schema).await {
        Decision::Approve => Verdict::Run(Box::new(call), None),
        Decision::Edit { edited_action } => {
            let notice = notice(&edited_action);
            call.args = edited_action.args;
            Verdict::Run(Box::new(call), Some(notice))
        }
        decision => match result_of(&call, decision) {
            Some(message) => Verdict::Answered(Box::new(message)),
            None => Verdict::Run(Box::new(call), None),
        },
    }
}

/// The message in place of the result of a call, for decisions that have one.
pub(crate) fn result_of(call: &ToolCall, decision: Decision) -> Option<Message> {
    let name = &call.name;
    match decision {
        Decision::Approve | Decision::Edit { .. } => None,
        Decision::Respond { message } => Some(answer(call, message, ToolStatus::Success)),
        Decision::Reject { message } => {
            let text = match message.filter(|message| !message.is_empty()) {
                Some(why) => format!("User rejected the tool call for `{name}` with reason: {why}"),
                None => format!(
                    "User rejected the tool call for `{name}` with id {}. The tool was not executed. Do not retry this tool call unless the user explicitly requests it.",
                    call.id.as_deref().unwrap_or_default()
                ),
            };
            Some(answer(call, text, ToolStatus::Error))
        }
    }
}

/// What the model is told of a call that a person has changed.
pub(crate) fn notice(executed: &Action) -> String {
    let (name, args) = (&executed.name, Value::Map(executed.args.clone()));
    format!("{EDITED} Executed instead: {name} with arguments {args}.")
}

/// The content with a notice before it, in the form the content has.
pub(crate) fn noted(notice: String, content: Value) -> Value {
    match content {
        Value::Str(text) if text.is_empty() => notice.into(),
        Value::Str(text) => format!("{notice}\n\nTool response:\n{text}").into(),
        Value::List(blocks) => {
            let plain = blocks.iter().all(|block| block.as_str().is_some());
            let notice = format!("{notice}\n\nTool response:");
            let block = if plain {
                Value::from(notice)
            } else {
                Value::from_iter([("type", Value::from("text")), ("text", notice.into())])
            };
            Value::List(std::iter::once(block).chain(blocks).collect())
        }
        other => format!("{notice}\n\nTool response:\n{other}").into(),
    }
}

/// LangChain's words: without them, models repeat the call that was edited.
const EDITED: &str = "Note: a human reviewer replaced this tool call before it ran. The call recorded in your message is the one you produced, not the one that executed. This was intentional and authorized. Do not re-issue your original call.";

fn answer(call: &ToolCall, text: String, status: ToolStatus) -> Message {
    let answer = Message::tool(call.id.clone().unwrap_or_default(), text);
    answer.with_name(&*call.name).with_status(status)
}

impl Approval {
    /// The question about a call, and the schema of its answer.
    fn question(
        &self,
        spec: &ToolSpec,
        call: &ToolCall,
        format: ApprovalFormat,
    ) -> (serde_json::Value, serde_json::Value) {
        let one = json!({ "oneOf": self.branches(spec) });
        match format {
            ApprovalFormat::BatchOfOne => {
                let question = json!({
                    "action_requests": [self.action_request(call)],
                    "review_configs": [self.review_config(call)],
                });
                let decisions =
                    json!({ "type": "array", "items": &one, "minItems": 1, "maxItems": 1 });
                let batch = json!({
                    "type": "object",
                    "required": ["decisions"],
                    "properties": { "decisions": decisions },
                });
                (question, json!({ "anyOf": [batch, one] }))
            }
            ApprovalFormat::PerCall => {
                let question = json!({
                    "type": "tool_approval",
                    "tool_call_id": call.id,
                    "name": call.name,
                    "args": call.args,
                    "description": self.description(call),
                });
                (question, one)
            }
        }
    }

    /// The text shown to the person.
    fn description(&self, call: &ToolCall) -> String {
        self.description.clone().unwrap_or_else(|| {
            let (name, args) = (&call.name, Value::Map(call.args.clone()));
            format!("Tool execution requires approval\n\nTool: {name}\nArgs: {args}")
        })
    }

    /// The call, as an item of LangChain's list of actions.
    pub(crate) fn action_request(&self, call: &ToolCall) -> serde_json::Value {
        json!({ "name": call.name, "args": call.args, "description": self.description(call) })
    }

    /// What may be decided about it.
    pub(crate) fn review_config(&self, call: &ToolCall) -> serde_json::Value {
        json!({ "action_name": call.name, "allowed_decisions": self.decisions })
    }

    /// # Errors
    /// The decision is not one of those that are allowed.
    pub(crate) fn check(&self, decision: &Decision) -> Result<(), String> {
        let kind = match decision {
            Decision::Approve => DecisionKind::Approve,
            Decision::Edit { .. } => DecisionKind::Edit,
            Decision::Reject { .. } => DecisionKind::Reject,
            Decision::Respond { .. } => DecisionKind::Respond,
        };
        if self.decisions.contains(&kind) {
            return Ok(());
        }
        Err(format!("the decision is not allowed; allowed are {:?}", self.decisions))
    }

    /// The schema of each decision that is allowed.
    fn branches(&self, spec: &ToolSpec) -> Vec<serde_json::Value> {
        let text = json!({ "type": ["string", "null"] });
        let branch = |kind: &DecisionKind| {
            let mut properties = json!({ "type": { "const": kind } });
            let mut required = vec!["type"];
            match kind {
                DecisionKind::Approve => {}
                DecisionKind::Edit => {
                    properties["edited_action"] = json!({
                        "type": "object",
                        "required": ["name", "args"],
                        "properties": { "name": { "const": spec.name }, "args": spec.schema },
                    });
                    required.push("edited_action");
                }
                DecisionKind::Reject => properties["message"] = text.clone(),
                DecisionKind::Respond => {
                    properties["message"] = json!({ "type": "string" });
                    required.push("message");
                }
            }
            json!({ "type": "object", "required": required, "properties": properties })
        };
        self.decisions.iter().map(branch).collect()
    }
}
