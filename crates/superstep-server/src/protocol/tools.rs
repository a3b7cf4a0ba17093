//! Calls of tools, as far as tasks and messages tell of them.
//!
//! A call starts when a task starts that was dispatched for it, or whose state ends with the message that asks for it. It ends
//! with the message that answers it.

use std::collections::HashSet;

use serde_json::{Value as Json, json};

#[derive(Debug, Default)]
pub(super) struct Tools {
    started: HashSet<String>,
}

impl Tools {
    /// The calls that a task starts with.
    pub(super) fn started(&mut self, input: &Json) -> Vec<Json> {
        let asked = match input.get("messages").and_then(Json::as_array) {
            Some(messages) => messages.last().and_then(|last| last["tool_calls"].as_array()),
            None => None,
        };
        let dispatched = input.get("tool_call").unwrap_or(input);
        let calls = asked.map_or(std::slice::from_ref(dispatched), Vec::as_slice);
        let mut events = Vec::new();
        for call in calls {
            let (Some(id), Some(name)) = (call["id"].as_str(), call["name"].as_str()) else {
                continue;
            };
            if call.get("args").is_some() && self.started.insert(id.to_owned()) {
                events.push(json!({
                    "event": "tool-started", "tool_call_id": id, "tool_name": name, "input": call["args"],
                }));
            }
        }
        events
    }

    /// The end of a call, if the message is the answer to one that was started.
    pub(super) fn ended(&mut self, message: &Json) -> Option<Json> {
        let id = message["tool_call_id"].as_str().filter(|_| message["type"] == "tool")?;
        if !self.started.remove(id) {
            return None;
        }
        Some(match message["status"].as_str() {
            Some("error") => {
                let text = message["content"].as_str();
                let text = text.map_or_else(|| message["content"].to_string(), str::to_owned);
                json!({ "event": "tool-error", "tool_call_id": id, "message": text })
            }
            _ => json!({ "event": "tool-finished", "tool_call_id": id, "output": message }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_starts_once_and_ends_with_its_answer() {
        let call = json!({ "name": "find", "args": { "q": 1 }, "id": "c1", "type": "tool_call" });
        let state = json!({ "messages": [{ "type": "ai", "content": "", "tool_calls": [call] }] });
        for input in [state, json!({ "tool_call": call }), call] {
            let mut tools = Tools::default();
            let started = tools.started(&input);
            assert_eq!(started[0]["tool_name"], "find", "{input}");
            assert!(tools.started(&input).is_empty(), "it has started already");
            let answer =
                json!({ "type": "tool", "content": "no", "tool_call_id": "c1", "status": "error" });
            let ended = tools.ended(&answer).expect("an end");
            assert_eq!((&ended["event"], &ended["message"]), (&json!("tool-error"), &json!("no")));
            assert_eq!(tools.ended(&answer), None);
        }
        let mut tools = Tools::default();
        for input in [json!({ "id": "x", "name": "node" }), json!({ "messages": [] }), json!(1)] {
            assert!(tools.started(&input).is_empty(), "{input}");
        }
    }
}
