//! The body of a request for a run.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value as Json, json};
use superstep::checkpoint::CheckpointId;

use super::{Id, Object, object, or_default};
use crate::error::{ApiError, ApiResult};
use crate::store::{Multitask, OnCompletion};
use crate::webhooks::Target;

/// What a client asks for. Fields that are not known are ignored.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct RunRequest {
    pub(crate) assistant_id: String,
    #[serde(default)]
    pub(crate) input: Option<Json>,
    #[serde(default, deserialize_with = "object")]
    pub(crate) command: Option<Command>,
    #[serde(default)]
    #[schemars(with = "Option<Id<'static>>")]
    pub(crate) checkpoint_id: Option<String>,
    #[serde(default, deserialize_with = "object")]
    pub(crate) checkpoint: Option<CheckpointArg>,
    #[serde(default, deserialize_with = "object_or_default")]
    #[schemars(with = "Option<Config>")]
    pub(crate) config: Config,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub(crate) context: Object,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub(crate) metadata: Object,
    #[serde(default)]
    pub(crate) stream_mode: Option<Words>,
    #[serde(default)]
    pub(crate) stream_subgraphs: Option<bool>,
    #[serde(default)]
    pub(crate) stream_resumable: Option<bool>,
    #[serde(default)]
    pub(crate) on_disconnect: Option<OnDisconnect>,
    #[serde(default)]
    pub(crate) multitask_strategy: Option<Multitask>,
    #[serde(default)]
    pub(crate) if_not_exists: Option<IfNotExists>,
    #[serde(default)]
    pub(crate) after_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) interrupt_before: Option<Words>,
    #[serde(default)]
    pub(crate) interrupt_after: Option<Words>,
    #[serde(default)]
    pub(crate) durability: Option<Durability>,
    #[serde(default)]
    pub(crate) checkpoint_during: Option<bool>,
    #[serde(default)]
    pub(crate) webhook: Option<String>,
    #[serde(default)]
    pub(crate) feedback_keys: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) on_completion: Option<OnCompletion>,
    /// The session of the thread is told what happens in the run. Clients do not say that.
    #[serde(skip)]
    pub(crate) session: bool,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Command {
    #[serde(default)]
    pub(crate) resume: Option<Json>,
    #[serde(default)]
    pub(crate) update: Option<Json>,
    #[serde(default)]
    pub(crate) goto: Option<Json>,
    /// Why the answer is what it is. It is recorded with the answer.
    #[serde(default)]
    pub(crate) comment: Option<String>,
}

impl Command {
    /// Whether it asks for nothing, so that it is as if it were not there.
    fn is_empty(&self) -> bool {
        let goes_nowhere = match &self.goto {
            None | Some(Json::Null) => true,
            Some(Json::Array(places)) => places.is_empty(),
            Some(_) => false,
        };
        self.resume.is_none() && self.update.is_none() && goes_nowhere
    }

    /// Finds what no type could.
    fn check(&self) -> ApiResult<()> {
        let is_place = |place: &Json| {
            place.is_string() || place.get("node").is_some_and(serde_json::Value::is_string)
        };
        let goes_well = match &self.goto {
            None | Some(Json::Null) => true,
            Some(Json::Array(places)) => places.iter().all(is_place),
            Some(place) => is_place(place),
        };
        if !goes_well {
            return Err(ApiError::invalid(
                "`command.goto` is the name of a node, `{\"node\", \"input\"}`, or a list of these",
            ));
        }
        match &self.update {
            None | Some(Json::Object(_)) => Ok(()),
            Some(pairs) if as_object(pairs).is_some() => Ok(()),
            Some(_) => Err(ApiError::invalid(
                "`command.update` is an object, or a list of pairs with each key once",
            )),
        }
    }
}

/// A list of pairs as an object, if it is one and no key is there twice.
pub(crate) fn as_object(pairs: &Json) -> Option<Object> {
    let pairs = pairs.as_array()?;
    let mut object = Object::new();
    for pair in pairs {
        let [key, value] = &pair.as_array()?[..] else { return None };
        if object.insert(key.as_str()?.to_owned(), value.clone()).is_some() {
            return None;
        }
    }
    Some(object)
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[schemars(rename = "RunConfig")]
pub(crate) struct Config {
    #[serde(default)]
    pub(crate) tags: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) recursion_limit: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub(crate) configurable: Object,
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct CheckpointArg {
    #[serde(default)]
    #[schemars(with = "Option<Id<'static>>")]
    pub(crate) checkpoint_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<String>")]
    pub(crate) checkpoint_ns: String,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub(crate) checkpoint_map: Object,
}

fn object_or_default<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Config, D::Error> {
    Ok(object(deserializer)?.unwrap_or_default())
}

/// A word, or a list of words.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Words {
    One(String),
    Many(Vec<String>),
}

impl Words {
    pub(crate) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(word) => vec![word],
            Self::Many(words) => words,
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Self::One(word) => word.as_str().into(),
            Self::Many(words) => words.clone().into(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnDisconnect {
    Continue,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IfNotExists {
    Reject,
    Create,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Durability {
    Sync,
    Async,
    Exit,
}

const MODES: [&str; 9] = [
    "values",
    "updates",
    "messages",
    "messages-tuple",
    "custom",
    "tasks",
    "checkpoints",
    "debug",
    "events",
];

impl RunRequest {
    /// Finds out whether its webhook may go where it is to go.
    pub(crate) fn check_webhook(&self, allow_private: bool) -> ApiResult<()> {
        let target = self.webhook.as_deref().map(|url| Target::read(url, allow_private));
        target.transpose().map(drop)
    }

    /// Finds what no type could.
    pub(crate) fn check(&self, stateless: bool) -> ApiResult<()> {
        for mode in self.modes() {
            if !MODES.contains(&&*mode) {
                let known = MODES.join(", ");
                return Err(ApiError::invalid(format!(
                    "unknown stream mode `{mode}`; known are {known}"
                )));
            }
        }
        if !self.context.is_empty() && !self.config.configurable.is_empty() {
            return Err(ApiError::bad_request(
                "`context` and `config.configurable` cannot both be given; use `context`",
            ));
        }
        let resumes = self.command.as_ref().is_some_and(|command| command.resume.is_some());
        if stateless && resumes {
            return Err(ApiError::bad_request(
                "`command.resume` needs a thread; use POST /threads/{thread_id}/runs",
            ));
        }
        if let Some(command) = &self.command {
            command.check()?;
        }
        for (name, nodes) in [
            ("interrupt_before", &self.interrupt_before),
            ("interrupt_after", &self.interrupt_after),
        ] {
            if let Some(Words::One(word)) = nodes
                && word != "*"
            {
                return Err(ApiError::invalid(format!(
                    "`{name}` is `{word}`; it can be a list of nodes, or `*` for all"
                )));
            }
        }
        if self.after_seconds.is_some_and(|seconds| !(0.0..=1e9).contains(&seconds)) {
            return Err(ApiError::invalid(
                "`after_seconds` must be a number of seconds from now on",
            ));
        }
        if let Some(id) = &self.checkpoint_id {
            parse_checkpoint(id)?;
        }
        self.checkpoint.as_ref().map_or(Ok(()), CheckpointArg::check)
    }

    pub(crate) fn modes(&self) -> Vec<String> {
        let modes = self.stream_mode.clone().map(Words::into_vec);
        modes.filter(|modes| !modes.is_empty()).unwrap_or_else(|| vec!["values".to_owned()])
    }

    /// What is kept of the request, as clients see it in `kwargs`.
    pub(crate) fn kwargs(&self, context: &Object, configurable: &Object) -> Map<String, Json> {
        let given = self.command.as_ref().filter(|command| !command.is_empty());
        let command = given.map(|command| {
            let comment = command.comment.as_deref().map(Json::from);
            let parts = [
                ("resume", &command.resume),
                ("update", &command.update),
                ("goto", &command.goto),
                ("comment", &comment),
            ];
            let given = parts.into_iter().filter_map(|(name, part)| Some((name, part.clone()?)));
            given.map(|(name, part)| (name.to_owned(), part)).collect::<Object>()
        });
        let durability = match (self.durability, self.checkpoint_during) {
            (Some(Durability::Sync), _) => "sync",
            (Some(Durability::Exit), _) | (None, Some(false)) => "exit",
            (Some(Durability::Async), _) | (None, _) => "async",
        };
        let mut config = json!({ "configurable": configurable });
        if let Some(tags) = &self.config.tags {
            config["tags"] = tags.clone().into();
        }
        if let Some(limit) = self.config.recursion_limit {
            config["recursion_limit"] = limit.into();
        }
        let mut kwargs = json!({
            "input": self.input,
            "command": command,
            "config": config,
            "context": context,
            "stream_mode": self.modes(),
            "interrupt_before": self.interrupt_before.as_ref().map(Words::to_json),
            "interrupt_after": self.interrupt_after.as_ref().map(Words::to_json),
            "webhook": self.webhook,
            "feedback_keys": self.feedback_keys,
            "temporary": false,
            "subgraphs": self.stream_subgraphs.unwrap_or(false),
            "resumable": self.stream_resumable.unwrap_or(false),
            "checkpoint_during": durability != "exit",
            "durability": durability,
        });
        let at = self.checkpoint.clone().or_else(|| {
            let checkpoint_id = Some(self.checkpoint_id.clone()?);
            Some(CheckpointArg { checkpoint_id, ..CheckpointArg::default() })
        });
        if let Some(at) = at.filter(|at| at.checkpoint_id.is_some() || !at.checkpoint_ns.is_empty())
        {
            kwargs["checkpoint"] = json!({
                "checkpoint_id": at.checkpoint_id,
                "checkpoint_ns": at.checkpoint_ns,
                "checkpoint_map": at.checkpoint_map,
            });
        }
        match kwargs {
            Json::Object(kwargs) => kwargs,
            _ => Map::new(),
        }
    }
}

pub(crate) fn parse_checkpoint(id: &str) -> ApiResult<CheckpointId> {
    id.parse().map_err(|_| ApiError::invalid(format!("the checkpoint id `{id}` is not a UUID")))
}

impl CheckpointArg {
    fn check(&self) -> ApiResult<()> {
        self.to_ref("").map(drop)
    }

    /// The place on a thread.
    pub(crate) fn to_ref(&self, thread: &str) -> ApiResult<superstep::CheckpointRef> {
        let mut at = superstep::CheckpointRef::latest(thread);
        if !self.checkpoint_ns.is_empty() {
            at = at.in_namespace(self.checkpoint_ns.as_str());
        }
        if let Some(id) = &self.checkpoint_id {
            at = at.at(parse_checkpoint(id)?);
        }
        let mut parents = std::collections::BTreeMap::new();
        for (ns, id) in &self.checkpoint_map {
            let id = id.as_str().ok_or_else(|| {
                ApiError::invalid("`checkpoint_map` maps namespaces to checkpoint ids")
            })?;
            parents.insert(ns.clone(), parse_checkpoint(id)?);
        }
        Ok(at.inside(parents))
    }
}
