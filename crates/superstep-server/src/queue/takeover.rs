//! The events of a run whose process died, so that those who come back see each of them once.
//!
//! Checkpoints and events are stored by themselves. When a process dies, the log can be behind the checkpoints: a superstep is
//! stored, and its events are not. Then they are made again, from the checkpoints. Or the log can be ahead: a superstep was
//! not stored, and runs again. Then events that come again are not sent again. What differs, because a node did something
//! else this time, is sent.
//!
//! Where the log is can be seen from its barriers, each of which names the checkpoint whose events are before it.
//!
//! What nodes emit while they run (tokens, custom events), starts of tasks, the mode `debug`, and events of supersteps inside
//! of subgraphs cannot be made from checkpoints.

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use superstep::checkpoint::CheckpointId;
use superstep::{AnyThread, RawSnapshot, RunError};

use crate::events::{BARRIER, Feed};
use crate::store::{Run, StoreError, Stored};
use crate::wire::{Frames, Object};

/// How many supersteps the log can be behind. One that is stored later waits for the one before, so it is behind by few.
const BEHIND_MAX: usize = 64;

/// What an earlier attempt has told.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// How often each event was told that may come again.
    again: HashMap<(String, String), usize>,
    /// How many barriers of this attempt may follow until nothing comes again.
    barriers: usize,
    /// The checkpoint that this attempt begins with. Its state and its barrier come first, and were told.
    head: Option<String>,
    shows_head: bool,
}

impl Told {
    /// Whether an event has not been told yet. Each event of an earlier attempt counts once.
    pub(super) fn is_new(&mut self, event: &str, data: &Json) -> bool {
        if event == "values" && std::mem::take(&mut self.shows_head) {
            return false;
        }
        if self.again.is_empty() {
            return true;
        }
        match self.again.get_mut(&key(event, data.to_string())) {
            Some(times) if *times > 0 => {
                *times -= 1;
                false
            }
            _ => true,
        }
    }

    /// A superstep is on its way to storage. Returns whether that has not been told.
    pub(super) fn barrier(&mut self, checkpoint: &Json) -> bool {
        self.shows_head = false;
        if self.head.is_some() && checkpoint.as_str() == self.head.as_deref() {
            return false;
        }
        self.head = None;
        match self.barriers.checked_sub(1) {
            Some(left) => self.barriers = left,
            None => self.again.clear(),
        }
        true
    }

    fn add(&mut self, event: &str, data: String) {
        *self.again.entry(key(event, data)).or_default() += 1;
    }
}

/// What makes an event the same as another one: not when it was sent, and not in which attempt.
fn key(event: &str, data: String) -> (String, String) {
    let name = event.split('|').next().unwrap_or_default();
    let stripped = matches!(name, "debug" | "tasks" | "updates").then(|| {
        let mut json: Json = serde_json::from_str(&data).ok()?;
        let fields = json.as_object_mut()?;
        fields.remove("timestamp");
        // It says that a task did not have to run again.
        fields.remove("__metadata__");
        for place in ["/metadata", "/payload/metadata"] {
            if let Some(metadata) = json.pointer_mut(place).and_then(Json::as_object_mut) {
                metadata.remove("run_attempt");
            }
        }
        Some(json.to_string())
    });
    (event.to_owned(), stripped.flatten().unwrap_or(data))
}

/// The data of a barrier.
pub(super) fn barrier(id: &Json) -> Json {
    json!({ "checkpoint_id": id })
}

fn is_at(event: &Stored, checkpoint: &str) -> bool {
    let id = || {
        serde_json::from_str::<Json>(&event.data).ok()?["checkpoint_id"].as_str().map(str::to_owned)
    };
    event.event == BARRIER && id().as_deref() == Some(checkpoint)
}

/// Brings the log of a run to where its thread is, and returns what has been told of the superstep that is run next.
///
/// `head` is the state of the thread, if the run has stored one.
pub(super) async fn catch_up(
    feed: &Feed,
    run: &Run,
    thread: &AnyThread,
    head: Option<&RawSnapshot>,
    frames: &Frames,
) -> Result<Told, StoreError> {
    let mut told = Told::default();
    if !run.resumable() {
        return Ok(told);
    }
    let log = feed.stored().await?;
    let Some(head) = head else {
        told.extend(&log);
        return Ok(told);
    };
    let behind = match behind(run, thread, &log).await {
        Ok(behind) => behind,
        Err(error) => {
            tracing::warn!(run = run.run_id, %error, "the events of a run could not be made again");
            Vec::new()
        }
    };
    let synced = behind.first().map_or(Some(head), |(before, _)| before.as_ref());
    let synced = synced.and_then(|state| state.config.id).map(|id| id.to_string());
    let from = synced.and_then(|id| log.iter().rposition(|event| is_at(event, &id)));
    told.extend(&log[from.map_or(0, |at| at + 1)..]);
    for (before, after) in &behind {
        for (event, data) in frames.of_superstep(before.as_ref(), after) {
            if told.is_new(&event, &data) {
                feed.push(&event, &data).await?;
            }
        }
        feed.push(BARRIER, &barrier(&json!(after.config.id.map(|id| id.to_string())))).await?;
    }
    // Tasks of the open superstep that have finished do not run again, so their events do not come again.
    for (event, data) in frames.of_finished(head) {
        if told.is_new(&event, &data) {
            feed.push(&event, &data).await?;
        }
        told.add(&event, data.to_string());
    }
    told.head = head.config.id.map(|id| id.to_string());
    told.shows_head = true;
    feed.flush().await?;
    Ok(told)
}

impl Told {
    fn extend(&mut self, log: &[Stored]) {
        for event in log {
            match &*event.event {
                "metadata" => {}
                BARRIER => self.barriers += 1,
                name => self.add(name, event.data.clone()),
            }
        }
    }
}

/// The checkpoints of a run that have no barrier in its log, oldest first, each with the one before.
async fn behind(
    run: &Run,
    thread: &AnyThread,
    log: &[Stored],
) -> Result<Vec<(Option<RawSnapshot>, RawSnapshot)>, RunError> {
    let is_known = |id: Option<CheckpointId>| {
        let id = id.map(|id| id.to_string()).unwrap_or_default();
        log.iter().rev().any(|event| is_at(event, &id))
    };
    let is_own = |state: &RawSnapshot| {
        let by = state.metadata.as_ref().and_then(|metadata| metadata.extra.get("run_id"));
        by.and_then(|id| id.as_str()) == Some(&*run.run_id)
    };
    let history = thread.history(BEHIND_MAX, None, Object::new()).await?;
    let mut found = Vec::new();
    let mut newest_first = history.into_iter().peekable();
    while let Some(state) = newest_first.next() {
        if !is_own(&state) || is_known(state.config.id) {
            break;
        }
        found.push((newest_first.peek().cloned(), state));
    }
    found.reverse();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_is_not_told_again_and_what_is_new_is() {
        let mut told = Told::default();
        let log = [
            ("metadata", "{}"),
            ("values", "1"),
            ("custom", "2"),
            ("custom", "2"),
            (BARRIER, "{}"),
        ];
        let log = log.map(|(event, data)| Stored {
            seq: 1,
            event: event.to_owned(),
            data: data.to_owned(),
        });
        told.extend(&log);
        assert!(told.is_new("metadata", &json!({})), "each attempt says that it begins");
        assert!(!told.is_new("values", &json!(1)));
        assert!(told.is_new("values", &json!(1)), "it was told once");
        assert!(!told.is_new("custom", &json!(2)));
        assert!(told.barrier(&json!("a")));
        assert!(
            !told.is_new("custom", &json!(2)),
            "nor was the superstep after the barrier stored"
        );
        told.barrier(&json!("b"));
        told.add("values", "3".to_owned());
        told.barrier(&json!("c"));
        assert!(told.is_new("values", &json!(3)), "nothing comes again after that");
    }

    /// A run that goes on shows the state that it begins with, and its checkpoint.
    #[test]
    fn what_an_attempt_begins_with_was_told() {
        let mut told = Told { head: Some("a".to_owned()), shows_head: true, ..Told::default() };
        assert!(!told.is_new("values", &json!(1)));
        assert!(!told.barrier(&json!("a")));
        assert!(told.is_new("values", &json!(1)) && told.barrier(&json!("b")));
    }

    #[test]
    fn neither_the_time_nor_the_attempt_make_an_event_another() {
        let at = |time: &str| json!({ "step": 1, "timestamp": time, "payload": { "metadata": { "run_attempt": time } } });
        let mut told = Told::default();
        told.add("debug", at("a").to_string());
        assert!(!told.is_new("debug", &at("b")));
    }
}
