use std::collections::BTreeMap;

use serde_json::{Map as JsonMap, Value as Json};
use superstep_checkpoint::{InterruptId, Value};

use crate::engine::Mode;
use crate::engine::{At, BreakAt};
use crate::engine::{CommandInput, Layout, Resume};
use crate::engine::{Durability, RunControl};
use crate::error::{Code, RunError};
use crate::node::{Dispatch, Goto};
use crate::run::input::{Input, InputKind};
use crate::run::options::RunOptions;
use crate::state::Writes;

/// The request for a run of an [`AnyGraph`](super::AnyGraph), in JSON.
#[derive(Clone, Debug)]
pub struct Request {
    /// The input. Unknown keys are ignored, as in LangGraph. With `None` or null the thread
    /// continues where it is.
    pub input: Option<Json>,
    /// A command: `{"resume", "update", "goto"}`, each of them optional. It takes precedence over
    /// an input.
    ///
    /// `resume` answers the open question, or, as an object whose keys are ids of questions, each of those. `goto` is the name
    /// of a node, `{"node", "input"}`, or a list of these.
    pub command: Option<Json>,
    /// Whether to continue the thread only if a question of it is due, instead of an input or a
    /// command. If nothing is due, nothing runs, and the run ends with [`RunError::NotDue`].
    pub wake: bool,
    /// The context, for graphs that read theirs from JSON.
    pub context: Json,
    /// Which events are wanted.
    pub modes: Vec<Mode>,
    /// Whether to include events of subgraphs.
    pub subgraphs: bool,
    /// When the run stores its progress.
    pub durability: Durability,
    /// Connects the run to a control that can stop it.
    pub control: RunControl,
    /// The maximum number of supersteps of the run.
    pub recursion_limit: Option<u64>,
    /// Stops before these nodes; unknown names are ignored.
    pub interrupt_before: Option<BreakAt>,
    /// Stops after these nodes; unknown names are ignored.
    pub interrupt_after: Option<BreakAt>,
    /// Stored with every checkpoint of the run.
    pub metadata: BTreeMap<String, Json>,
    /// The id of the run. Stored with every checkpoint of the run as `run_id`.
    pub run_id: Option<String>,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            input: None,
            command: None,
            wake: false,
            context: Json::Null,
            modes: vec![Mode::Values],
            subgraphs: false,
            durability: Durability::default(),
            control: RunControl::default(),
            recursion_limit: None,
            interrupt_before: None,
            interrupt_after: None,
            metadata: BTreeMap::new(),
            run_id: None,
        }
    }
}

impl Request {
    /// What the run begins with.
    ///
    /// # Errors
    /// The command is malformed.
    pub(super) fn to_input(&self, layout: &Layout) -> Result<Input, RunError> {
        if self.wake {
            return Ok(Input::wake());
        }
        if let Some(command) = self.command.as_ref().filter(|command| !command.is_null()) {
            let command = read_command(layout, command)?;
            return Ok(Input { kind: InputKind::Command(command) });
        }
        Ok(match &self.input {
            None | Some(Json::Null) => Input::nothing(),
            Some(Json::Object(input)) if !layout.single => {
                let known = |key: &str| layout.channels.iter().any(|spec| *spec.name == *key);
                let known = input.iter().filter(|(key, _)| layout.lenient || known(key));
                let known: JsonMap<_, _> =
                    known.map(|(key, value)| (key.clone(), value.clone())).collect();
                Input::value(Json::Object(known).into())
            }
            Some(input) => Input::value(input.clone().into()),
        })
    }

    pub(super) fn to_options(&self, layout: &Layout) -> RunOptions {
        let metadata = self.metadata.iter().map(|(key, value)| (key.clone(), value.clone().into()));
        let mut metadata: BTreeMap<String, Value> = metadata.collect();
        metadata.extend(self.run_id.clone().map(|id| ("run_id".to_owned(), Value::from(id))));
        let at = |at: &Option<BreakAt>| {
            at.as_ref().map(|BreakAt(at)| match at {
                At::Nodes(names) => {
                    let known = names.iter().filter(|name| layout.node(name).is_some());
                    At::Nodes(known.cloned().collect())
                }
                other => other.clone(),
            })
        };
        RunOptions {
            recursion_limit: self.recursion_limit,
            durability: self.durability,
            control: Some(self.control.clone()),
            before: at(&self.interrupt_before),
            after: at(&self.interrupt_after),
            metadata,
            ..RunOptions::default()
        }
    }
}

fn malformed(text: impl Into<String>) -> RunError {
    RunError::InvalidUpdate { message: text.into(), code: None }
}

fn read_command(layout: &Layout, command: &Json) -> Result<CommandInput, RunError> {
    let Json::Object(command) = command else {
        return Err(malformed(format!(
            "a command is an object with `resume`, `update` or `goto`, not {command}"
        )));
    };
    let given = |key: &str| command.get(key).filter(|value| !value.is_null());
    let update = match given("update") {
        None => Writes::new(),
        Some(update) => {
            let read = layout.schema.parse_map(update.clone().into());
            let (writes, problems) = read.map_err(|error| RunError::InvalidUpdate {
                message: format!("the update of the command is none: {error}"),
                code: Some(Code::InvalidGraphNodeReturnValue),
            })?;
            if !problems.is_empty() {
                return Err(malformed(problems.join("; ")));
            }
            writes
        }
    };
    let goto = given("goto").map(read_goto).transpose()?.unwrap_or_default();
    let resume = given("resume").map(read_resume).unwrap_or_default();
    Ok(CommandInput { resume, update, goto, to_parent: false })
}

/// What a command writes, and where it goes.
pub(crate) fn update_and_goto(command: &Json) -> Result<(Writes, Vec<Goto>), RunError> {
    let Json::Object(command) = command else {
        return Err(malformed(format!(
            "a command is an object with `update` or `goto`, not {command}"
        )));
    };
    let given = |key: &str| command.get(key).filter(|value| !value.is_null());
    let update = given("update").map(|update| Writes::data(update.clone().into()));
    let goto = given("goto").map(read_goto).transpose()?.unwrap_or_default();
    Ok((update.unwrap_or_default(), goto))
}

fn read_resume(answer: &Json) -> Resume {
    let is_id = |key: &String| key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    match answer {
        Json::Object(answers) if !answers.is_empty() && answers.keys().all(is_id) => {
            let by_id = answers
                .iter()
                .map(|(id, answer)| (InterruptId::new(id.clone()), Value::from(answer.clone())));
            Resume::ById(by_id.collect())
        }
        answer => Resume::One(answer.clone().into()),
    }
}

fn read_goto(goto: &Json) -> Result<Vec<Goto>, RunError> {
    match goto {
        Json::String(node) => Ok(vec![Goto::Node(node.as_str().into())]),
        Json::Array(several) => {
            let each = several.iter().map(read_goto).collect::<Result<Vec<_>, _>>()?;
            Ok(each.into_iter().flatten().collect())
        }
        Json::Object(dispatch) => {
            let Some(node) = dispatch.get("node").and_then(Json::as_str) else {
                return Err(malformed("a `goto` with an input names its `node`"));
            };
            let input = dispatch.get("input").cloned().unwrap_or(Json::Null);
            Ok(vec![Goto::Dispatch(Dispatch::new(node, Value::from(input)))])
        }
        other => Err(malformed(format!(
            "a `goto` is the name of a node, `{{\"node\", \"input\"}}`, or a list of these, not {other}"
        ))),
    }
}
