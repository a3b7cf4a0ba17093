//! Graphs over a list of messages.

use superstep::prelude::*;
use superstep::state::{Role, ToolCall};
use superstep::{AnyGraph, CompileError};
use uuid::Uuid;

#[derive(State, Clone, Default)]
struct Chat {
    #[channel(reduce = Messages)]
    messages: Vec<Message>,
}

/// Answers by repeating what was said, token by token.
async fn model(chat: Arc<Chat>, task: Task) -> ChatUpdate {
    let said = chat.messages.iter().rfind(|message| message.role == Role::Human);
    let answer = format!("You said: {}", said.map(Message::text).unwrap_or_default());
    let id = Uuid::new_v4().to_string();
    for token in answer.split_inclusive(' ').scan("", |space, word| {
        // A space belongs to the token after it.
        let token = format!("{space}{}", word.trim_end_matches(' '));
        *space = if word.ends_with(' ') { " " } else { "" };
        Some(token)
    }) {
        task.emit_message(Message::ai_chunk(token).with_id(id.as_str()));
        tokio::task::yield_now().await;
    }
    task.emit_message(Message::ai_chunk("").with_id(id.as_str()).as_last_chunk());
    Chat::update().messages([Message::ai(answer).with_id(id)])
}

pub(super) fn chat() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Chat>::new().add_node("model", model).add_edge(START, "model");
    Ok(graph.compile()?.into())
}

/// Looks up what was asked, and answers with what the tool found.
async fn agent_node(chat: Arc<Chat>) -> ChatUpdate {
    let last = chat.messages.last();
    let text = last.map(Message::text).unwrap_or_default();
    let message = match last {
        Some(found) if found.role == Role::Tool => Message::ai(format!("Answer: {text}")),
        _ => {
            let args = [("query".to_owned(), Value::from(&*text))];
            Message::ai("").with_tool_calls([ToolCall::new("call_1", "lookup", args)])
        }
    };
    Chat::update().messages([message])
}

async fn tools(chat: Arc<Chat>) -> ChatUpdate {
    let calls = chat.messages.last().map(|message| message.tool_calls.clone()).unwrap_or_default();
    let answers = calls.into_iter().map(|call| {
        let query = call.args.get("query").and_then(|query| query.as_str()).unwrap_or_default();
        let answer = Message::tool(call.id.unwrap_or_default(), format!("result for {query}"));
        answer.with_name(call.name)
    });
    Chat::update().messages(answers.collect::<Vec<_>>())
}

fn after_agent(chat: &Chat) -> &'static str {
    match chat.messages.last() {
        Some(message) if !message.tool_calls.is_empty() => "tools",
        _ => END,
    }
}

pub(super) fn agent() -> Result<AnyGraph, CompileError> {
    let graph = StateGraph::<Chat>::new()
        .add_node("agent", agent_node)
        .add_node("tools", tools)
        .add_edge(START, "agent")
        .add_conditional_edges("agent", ["tools", END], after_agent)
        .add_edge("tools", "agent");
    Ok(graph.compile()?.into())
}
