//! Conversations that a provider would refuse.
//!
//! Providers want a result for each tool call, right after the message that asks for it. A run that was cancelled, or a person who
//! wrote on instead of answering, leaves calls without; so does a model whose arguments are not JSON.

use std::collections::HashSet;

use superstep::state::{Message, Role, ToolStatus};

/// The messages with a result for each call, if some have none.
pub(super) fn repaired(messages: &[Message]) -> Option<Vec<Message>> {
    let asks = |message: &&Message| {
        !message.tool_calls.is_empty() || !message.invalid_tool_calls.is_empty()
    };
    if !messages.iter().any(|message| asks(&message)) {
        return None;
    }
    let tools = messages.iter().filter(|message| message.role == Role::Tool);
    let answered: HashSet<_> = tools.filter_map(|it| it.tool_call_id.as_deref()).collect();
    let mut whole: Vec<Message> = Vec::with_capacity(messages.len());
    let mut at = 0;
    while let Some(message) = messages.get(at) {
        whole.push(message.clone());
        at += 1;
        if message.role != Role::Ai {
            continue;
        }
        let missing = missing(message, &answered);
        if missing.is_empty() {
            continue;
        }
        // The results that there are come first.
        while let Some(result) = messages.get(at).filter(|next| next.role == Role::Tool) {
            whole.push(result.clone());
            at += 1;
        }
        whole.extend(missing);
    }
    (whole.len() > messages.len()).then_some(whole)
}

fn missing(message: &Message, answered: &HashSet<&str>) -> Vec<Message> {
    let is_missing = |id: &str| !answered.contains(id);
    let calls = message.tool_calls.iter().filter_map(|call| {
        let id = call.id.as_deref().filter(|id| is_missing(id))?;
        let name = &call.name;
        let text = format!("Tool call `{name}` with id {id} was cancelled before it had a result.");
        Some((id, Some(name.clone()), text))
    });
    let invalid = message.invalid_tool_calls.iter().filter_map(|call| {
        let id = call.id.as_deref().filter(|id| is_missing(id))?;
        let name = call.name.clone().unwrap_or_default();
        let why = call.error.as_deref().unwrap_or("the arguments are not a JSON object");
        let args = call.args.as_deref().unwrap_or_default();
        let text = format!(
            "Error: the call of `{name}` could not be made: {why}. The arguments were: {args}\n Please fix the error and try again."
        );
        Some((id, call.name.clone(), text))
    });
    let result = |(id, name, text): (&str, Option<String>, String)| {
        let result = Message::tool(id, text).with_status(ToolStatus::Error);
        Message::with_name(result, name.unwrap_or_default())
    };
    calls.chain(invalid).map(result).collect()
}

#[cfg(test)]
mod tests {
    use superstep::state::ToolCall;

    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall::new(id, "look", [("at", 1)])
    }

    #[test]
    fn a_call_without_a_result_gets_one_beside_the_others() {
        let asked = Message::ai("").with_tool_calls([call("1"), call("2")]);
        let messages = [Message::human("a"), asked, Message::tool("2", "b"), Message::human("c")];
        let whole = repaired(&messages).expect("a repair");
        let ids: Vec<_> = whole.iter().map(|message| message.tool_call_id.as_deref()).collect();
        assert_eq!(ids, [None, None, Some("2"), Some("1"), None]);
        assert_eq!(whole[3].status, ToolStatus::Error);
        assert!(repaired(&whole).is_none());
    }

    #[test]
    fn what_is_whole_is_left_alone() {
        let asked = Message::ai("").with_tool_calls([call("1")]);
        assert!(repaired(&[Message::human("a"), Message::ai("b")]).is_none());
        assert!(repaired(&[asked, Message::tool("1", "b")]).is_none());
    }
}
