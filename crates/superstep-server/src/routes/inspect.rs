//! Looking into a thread without reading all of it: its supersteps without their values, values cut to a size, and what changed.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value as Json, json};
use superstep::checkpoint::Value;
use superstep::{CheckpointRef, RawSnapshot, SubgraphState, TaskSnapshot};

use super::operation::{Action, Limit, Offset, Operation, Resource, get};
use super::state::open;
use super::{Answer, State, json};
use crate::access::Caller;
use crate::error::{ApiError, ApiResult};
use crate::wire::{Id, Object, Outline, Path, Query, limit, offset, parse_checkpoint};

pub(super) fn operations() -> Vec<Operation> {
    let kind = Resource::Threads;
    vec![
        get("/threads/{thread_id}/timeline", kind, Action::Read, timeline)
            .summary("List the supersteps of a thread without values, newest first")
            .query::<Limit>("limit", "How many; 100 if nothing is said")
            .query::<Id<'static>>("before", "Only checkpoints before this one")
            .query::<String>("namespace", "The namespace of a subgraph")
            .json::<Timeline>()
            .refuses([400, 404]),
        get("/threads/{thread_id}/outline", kind, Action::Read, outline)
            .summary("Get the values of a thread, or a part of one, cut to a size")
            .query::<Id<'static>>(
                "checkpoint_id",
                "At this checkpoint; the newest if nothing is said",
            )
            .query::<String>("path", "A JSON pointer to the part; all values if nothing is said")
            .query::<Offset>("offset", "The first item, field or character of that part")
            .query::<String>("namespace", "The namespace of a subgraph")
            .json::<Outline>()
            .refuses([400, 404]),
        get("/threads/{thread_id}/changes", kind, Action::Read, changes)
            .summary("Compare the values at two checkpoints")
            .query::<Id<'static>>("checkpoint_id", "The later one; the newest if nothing is said")
            .query::<Id<'static>>("from", "The earlier one; its parent if nothing is said")
            .query::<String>("namespace", "The namespace of a subgraph")
            .json::<Changes>()
            .refuses([400, 404]),
    ]
}

/// Supersteps of a thread.
#[derive(Serialize, JsonSchema)]
struct Timeline {
    checkpoints: Vec<Moment>,
    /// Where the next page begins; null if there is none.
    before: Option<String>,
}

/// A checkpoint, and the superstep that follows it.
#[derive(Serialize, JsonSchema)]
struct Moment {
    checkpoint_id: String,
    parent_checkpoint_id: Option<String>,
    step: i64,
    source: &'static str,
    created_at: String,
    run_id: Option<String>,
    /// The nodes that run next.
    next: Vec<String>,
    tasks: Vec<TaskSeen>,
}

/// A task of a superstep, without its values.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TaskSummary")]
struct TaskSeen {
    id: String,
    name: String,
    error: Option<String>,
    /// How many questions it asked.
    questions: usize,
    /// The channels that it wrote; null if it has not finished.
    wrote: Option<Vec<String>>,
    /// Where its checkpoints are, if it is a subgraph.
    namespace: Option<String>,
}

impl TaskSeen {
    fn of(task: &TaskSnapshot) -> Self {
        Self {
            id: task.id.to_string(),
            name: task.name.to_string(),
            error: task.error.clone(),
            questions: task.interrupts.len(),
            wrote: task.result.as_ref().map(written),
            namespace: match &task.state {
                Some(SubgraphState::At(at)) => Some(at.ns.to_string()),
                _ => None,
            },
        }
    }
}

/// The channels that the result of a task names.
fn written(result: &Value) -> Vec<String> {
    match result {
        Value::Map(written) => written.iter().map(|(channel, _)| channel.clone()).collect(),
        Value::Null => Vec::new(),
        _ => vec!["__root__".to_owned()],
    }
}

fn id_of(place: &CheckpointRef) -> Option<String> {
    place.id.map(|id| id.to_string())
}

impl Moment {
    fn of(snapshot: &RawSnapshot) -> Option<Self> {
        let metadata = snapshot.metadata.as_ref()?;
        let run = metadata.extra.get("run_id").and_then(|run| run.as_str());
        Some(Self {
            checkpoint_id: id_of(&snapshot.config)?,
            parent_checkpoint_id: snapshot.parent.as_ref().and_then(id_of),
            step: metadata.step,
            source: metadata.source.as_str(),
            created_at: snapshot.created_at.clone().unwrap_or_default(),
            run_id: run.map(str::to_owned),
            next: snapshot.next.iter().map(ToString::to_string).collect(),
            tasks: snapshot.tasks.iter().map(TaskSeen::of).collect(),
        })
    }
}

/// The checkpoint that a parameter of the query names.
fn checkpoint_in(
    query: &Query,
    name: &str,
) -> ApiResult<Option<superstep::checkpoint::CheckpointId>> {
    query.get(name).filter(|id| !id.is_empty()).map(parse_checkpoint).transpose()
}

/// The thread, in the namespace that the query names.
fn place(thread: &str, query: &Query) -> CheckpointRef {
    CheckpointRef::latest(thread).in_namespace(query.get("namespace").unwrap_or_default())
}

pub(super) async fn timeline(
    state: State,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Answer {
    let (known, thread) = open(&state, &caller, &id).await?;
    let limit = limit(query.number("limit")?, 100)?;
    let before = checkpoint_in(&query, "before")?;
    let found = match thread {
        Some(thread) => {
            let thread = thread.at(place(known.id(), &query));
            thread.history(limit, before, Object::new()).await?
        }
        None => Vec::new(),
    };
    let last = found.last().and_then(|snapshot| id_of(&snapshot.config));
    let before = last.filter(|_| found.len() == limit);
    let checkpoints = found.iter().filter_map(Moment::of).collect();
    Ok(json(json!(Timeline { checkpoints, before })))
}

/// The state of a thread at a checkpoint that must be there.
async fn snapshot(
    state: &State,
    caller: &Caller,
    id: &str,
    query: &Query,
    at: Option<superstep::checkpoint::CheckpointId>,
) -> ApiResult<RawSnapshot> {
    let (known, thread) = open(state, caller, id).await?;
    let place = place(known.id(), query);
    let place = match at {
        Some(at) => place.at(at),
        None => place,
    };
    let missing = || ApiError::not_found(format!("the thread `{}` has no checkpoint", known.id()));
    let found = thread.ok_or_else(missing)?.at(place).state(false).await?;
    if found.is_new() { Err(missing()) } else { Ok(found) }
}

pub(super) async fn outline(
    state: State,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Answer {
    let offset = offset(query.number("offset")?)?;
    let at = checkpoint_in(&query, "checkpoint_id")?;
    let found = snapshot(&state, &caller, &id, &query, at).await?;
    let values = Json::from(found.values.clone());
    let path = query.get("path").unwrap_or_default();
    let part = values
        .pointer(path)
        .ok_or_else(|| ApiError::not_found(format!("the values have nothing at `{path}`")))?;
    Ok(json(json!(Outline::of(part, offset))))
}

/// What differs between two checkpoints.
#[derive(Serialize, JsonSchema)]
struct Changes {
    /// Null if the later one is the first of its thread.
    from: Option<String>,
    to: Option<String>,
    changes: Vec<Change>,
}

/// The change of a channel.
#[derive(Serialize, JsonSchema)]
struct Change {
    channel: String,
    kind: ChangeKind,
    before: Option<Outline>,
    /// Of a list that only grew, the items that were added.
    after: Option<Outline>,
    /// The tasks that wrote the channel, if the earlier checkpoint is the parent of the later one.
    writers: Vec<Writer>,
}

#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ChangeKind {
    Added,
    Removed,
    Changed,
    /// Items were added to the end of a list.
    Appended,
}

/// A task that wrote a channel.
#[derive(Serialize, JsonSchema)]
struct Writer {
    task: String,
    node: String,
}

pub(super) async fn changes(
    state: State,
    caller: Caller,
    Path(id): Path<String>,
    query: Query,
) -> Answer {
    let to =
        snapshot(&state, &caller, &id, &query, checkpoint_in(&query, "checkpoint_id")?).await?;
    let parent = to.parent.as_ref().and_then(|parent| parent.id);
    let from = match checkpoint_in(&query, "from")?.or(parent) {
        Some(from) => Some(snapshot(&state, &caller, &id, &query, Some(from)).await?),
        None => None,
    };
    let direct = from.as_ref().filter(|from| from.config.id == parent);
    let tasks = direct.map(|from| from.tasks.as_slice()).unwrap_or_default();
    let writers = |channel: &str| {
        let wrote = |task: &&TaskSnapshot| {
            task.result
                .as_ref()
                .is_some_and(|result| written(result).iter().any(|one| one == channel))
        };
        let writer =
            |task: &TaskSnapshot| Writer { task: task.id.to_string(), node: task.name.to_string() };
        tasks.iter().filter(wrote).map(writer).collect()
    };
    let before = from.as_ref().map_or(Json::Null, |from| Json::from(from.values.clone()));
    let after = Json::from(to.values.clone());
    let changes = Changes {
        from: from.as_ref().and_then(|from| id_of(&from.config)),
        to: id_of(&to.config),
        changes: differences(&before, &after, writers),
    };
    Ok(json(json!(changes)))
}

fn differences(before: &Json, after: &Json, writers: impl Fn(&str) -> Vec<Writer>) -> Vec<Change> {
    let names = |values: &Json| -> BTreeSet<String> {
        // A state that is one value has one channel, without a name of the user's.
        match values {
            Json::Object(values) => values.keys().cloned().collect(),
            Json::Null => BTreeSet::new(),
            _ => ["__root__".to_owned()].into(),
        }
    };
    let value = |values: &'_ Json, name: &str| -> Option<Json> {
        match values {
            Json::Object(values) => values.get(name).cloned(),
            Json::Null => None,
            other => Some(other.clone()),
        }
    };
    let all = names(before).into_iter().chain(names(after)).collect::<BTreeSet<_>>();
    let mut found = Vec::new();
    for channel in all {
        let (old, new) = (value(before, &channel), value(after, &channel));
        if old == new {
            continue;
        }
        let grew = match (&old, &new) {
            (Some(Json::Array(old)), Some(Json::Array(new))) if !old.is_empty() => {
                new.starts_with(old).then_some(old.len())
            }
            _ => None,
        };
        let kind = match (&old, &new, grew) {
            (_, _, Some(_)) => ChangeKind::Appended,
            (None, ..) => ChangeKind::Added,
            (_, None, _) => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        };
        found.push(Change {
            writers: writers(&channel),
            channel,
            kind,
            before: old.as_ref().map(|old| Outline::of(old, 0)),
            after: new.as_ref().map(|new| Outline::of(new, grew.unwrap_or(0))),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_only_grew_shows_what_was_added() {
        let before = json!({ "log": ["a"], "same": 1, "old": 1, "topic": "x" });
        let after = json!({ "log": ["a", "b"], "same": 1, "new": 2, "topic": "y" });
        let found = json!(differences(&before, &after, |_| Vec::new()));
        let kinds: Vec<_> = found
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| (&one["channel"], &one["kind"]))
            .collect();
        assert_eq!(
            json!(kinds),
            json!([
                ["log", "appended"],
                ["new", "added"],
                ["old", "removed"],
                ["topic", "changed"]
            ])
        );
        let added = json!([{ "type": "string", "value": "b", "length": 1 }]);
        assert_eq!(found[0]["after"]["items"], added);
        assert_eq!(found[0]["after"]["offset"], 1);
    }
}
