//! How long a conversation is, roughly.

use superstep::checkpoint::Value;
use superstep::state::Message;

/// About how many tokens these messages are: a token is about four letters, and each message costs a few.
pub(super) fn estimate(messages: &[Message]) -> u64 {
    let letters: usize = messages.iter().map(letters).sum();
    let all = letters.div_ceil(4).saturating_add(messages.len().saturating_mul(3));
    u64::try_from(all).unwrap_or(u64::MAX)
}

fn letters(message: &Message) -> usize {
    let calls = message.tool_calls.iter();
    let calls = calls.map(|call| call.name.len() + size(&Value::Map(call.args.clone())));
    size(&message.content) + calls.sum::<usize>()
}

fn size(value: &Value) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::List(items) => items.iter().map(size).sum(),
        Value::Map(map) => map.iter().map(|(key, value)| key.len() + size(value)).sum(),
        _ => 4,
    }
}

/// A message as a line of a transcript.
pub(super) fn line(message: &Message) -> String {
    let mut line = format!("{}: {}", message.role, message.text());
    for call in &message.tool_calls {
        line.push_str(&format!(" [calls {} with {}]", call.name, Value::Map(call.args.clone())));
    }
    line
}
