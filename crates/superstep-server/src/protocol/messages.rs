//! Messages as blocks of content that begin, grow and end.

use serde_json::{Map, Value as Json, json};

/// The messages that are being told.
#[derive(Debug, Default)]
pub(super) struct Messages {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    ns: Vec<String>,
    id: String,
    /// The namespace of the task that it comes from.
    task: String,
    /// How many blocks have begun.
    blocks: usize,
    block: Option<Block>,
    usage: Json,
}

/// A block that has begun.
#[derive(Debug)]
struct Block {
    /// Tells whether the next piece belongs to it.
    key: String,
    kind: Kind,
    /// What has come of it.
    text: String,
}

#[derive(Debug)]
enum Kind {
    Text,
    Reasoning,
    Call { id: Json, name: Json },
}

/// A piece of a message: what it adds to which block.
enum Piece {
    Grow(Block),
    /// A block that comes as a whole.
    Whole(Json),
}

impl Messages {
    /// The events of a message, or of a chunk of one, with the metadata of the engine.
    pub(super) fn of(&mut self, ns: &[String], message: &Json, metadata: &Json) -> Vec<Json> {
        let kind = message["type"].as_str().unwrap_or_default();
        let role = match kind {
            "ai" | "AIMessageChunk" => "ai",
            "human" | "HumanMessageChunk" => "human",
            "system" | "SystemMessageChunk" => "system",
            // Answers of tools are events of the channel `tools`.
            _ => return Vec::new(),
        };
        let Some(id) = message["id"].as_str() else { return Vec::new() };
        let mut events = Vec::new();
        let at = self.open.iter().position(|open| open.id == id && open.ns == ns);
        let at = at.unwrap_or_else(|| {
            events.push(json!({ "event": "message-start", "role": role, "id": id }));
            self.open.push(Open {
                ns: ns.to_vec(),
                id: id.to_owned(),
                task: metadata["langgraph_checkpoint_ns"].as_str().unwrap_or_default().to_owned(),
                blocks: 0,
                block: None,
                usage: Json::Null,
            });
            self.open.len() - 1
        });
        let open = &mut self.open[at];
        for piece in pieces(message) {
            open.add(piece, &mut events);
        }
        if !message["usage_metadata"].is_null() {
            open.usage = message["usage_metadata"].clone();
        }
        let last = message["chunk_position"] == "last" || !kind.ends_with("Chunk");
        if last {
            open.finish(&mut events);
        }
        self.name_if_several(ns, id, &mut events);
        if last {
            self.open.remove(at);
        }
        events
    }

    /// Ends the messages of a task that has ended, by its id.
    pub(super) fn end_of_task(&mut self, task: &str) -> Vec<(Vec<String>, Json)> {
        let of_task = |open: &Open| open.task.rsplit(':').next() == Some(task);
        self.end(of_task)
    }

    /// Ends all messages.
    pub(super) fn end_all(&mut self) -> Vec<(Vec<String>, Json)> {
        self.end(|_| true)
    }

    fn end(&mut self, which: impl Fn(&Open) -> bool) -> Vec<(Vec<String>, Json)> {
        let mut ended = Vec::new();
        while let Some(at) = self.open.iter().position(&which) {
            let (ns, id) = (self.open[at].ns.clone(), self.open[at].id.clone());
            let mut events = Vec::new();
            self.open[at].finish(&mut events);
            self.name_if_several(&ns, &id, &mut events);
            self.open.remove(at);
            ended.extend(events.into_iter().map(|event| (ns.clone(), event)));
        }
        ended
    }

    /// Says which message events belong to where several are told at the same time.
    fn name_if_several(&self, ns: &[String], id: &str, events: &mut [Json]) {
        if self.open.iter().filter(|open| open.ns == ns).count() < 2 {
            return;
        }
        for event in events.iter_mut().filter(|event| event["event"] != "message-start") {
            event["message_id"] = id.into();
        }
    }
}

impl Open {
    fn add(&mut self, piece: Piece, events: &mut Vec<Json>) {
        let new = match piece {
            Piece::Whole(content) => {
                self.end_block(events);
                let index = self.begin(&content, events);
                events.push(
                    json!({ "event": "content-block-finish", "index": index, "content": content }),
                );
                return;
            }
            Piece::Grow(new) => new,
        };
        if self.block.as_ref().is_none_or(|block| block.key != new.key) {
            self.end_block(events);
            let empty = Block { key: new.key.clone(), text: String::new(), kind: new.kind.same() };
            self.begin(&empty.begun(), events);
            self.block = Some(empty);
        }
        let Some(block) = &mut self.block else { return };
        if let (Kind::Call { id, name }, Kind::Call { id: new_id, name: new_name }) =
            (&mut block.kind, new.kind)
        {
            for (known, new) in [(id, new_id), (name, new_name)] {
                if known.is_null() {
                    *known = new;
                }
            }
        }
        if !new.text.is_empty() {
            block.text.push_str(&new.text);
            let delta = block.kind.delta(&new.text);
            let index = self.blocks.saturating_sub(1);
            events.push(json!({ "event": "content-block-delta", "index": index, "delta": delta }));
        }
    }

    /// Begins the next block. Returns its index.
    fn begin(&mut self, content: &Json, events: &mut Vec<Json>) -> usize {
        let index = self.blocks;
        self.blocks += 1;
        events.push(json!({ "event": "content-block-start", "index": index, "content": content }));
        index
    }

    fn end_block(&mut self, events: &mut Vec<Json>) {
        let Some(block) = self.block.take() else { return };
        let index = self.blocks.saturating_sub(1);
        let content = block.finished();
        events.push(json!({ "event": "content-block-finish", "index": index, "content": content }));
    }

    fn finish(&mut self, events: &mut Vec<Json>) {
        self.end_block(events);
        let mut finish = json!({ "event": "message-finish" });
        if !self.usage.is_null() {
            finish["usage"] = self.usage.take();
        }
        events.push(finish);
    }
}

impl Kind {
    fn same(&self) -> Self {
        match self {
            Self::Text => Self::Text,
            Self::Reasoning => Self::Reasoning,
            Self::Call { id, name } => Self::Call { id: id.clone(), name: name.clone() },
        }
    }

    fn delta(&self, text: &str) -> Json {
        match self {
            Self::Text => json!({ "type": "text-delta", "text": text }),
            Self::Reasoning => json!({ "type": "reasoning-delta", "reasoning": text }),
            Self::Call { .. } => json!({ "type": "tool-call-delta", "args": text }),
        }
    }
}

impl Block {
    fn begun(&self) -> Json {
        match &self.kind {
            Kind::Text => json!({ "type": "text", "text": "" }),
            Kind::Reasoning => json!({ "type": "reasoning", "reasoning": "" }),
            Kind::Call { id, name } => {
                json!({ "type": "tool_call_chunk", "id": id, "name": name, "args": "" })
            }
        }
    }

    fn finished(self) -> Json {
        let Self { kind, text, .. } = self;
        match kind {
            Kind::Text => json!({ "type": "text", "text": text }),
            Kind::Reasoning => json!({ "type": "reasoning", "reasoning": text }),
            Kind::Call { id, name } => {
                let args = if text.is_empty() { "{}" } else { &text };
                match serde_json::from_str::<Map<String, Json>>(args) {
                    Ok(args) => {
                        json!({ "type": "tool_call", "id": id, "name": name, "args": args })
                    }
                    Err(error) => json!({
                        "type": "invalid_tool_call", "id": id, "name": name, "args": text,
                        "error": error.to_string(),
                    }),
                }
            }
        }
    }
}

fn grow(key: String, kind: Kind, text: &Json) -> Piece {
    Piece::Grow(Block { key, kind, text: text.as_str().unwrap_or_default().to_owned() })
}

/// What a message, or a chunk of one, adds.
fn pieces(message: &Json) -> Vec<Piece> {
    let mut pieces = Vec::new();
    match &message["content"] {
        Json::String(text) if !text.is_empty() => {
            pieces.push(grow("text".to_owned(), Kind::Text, &message["content"]));
        }
        Json::Array(blocks) => {
            for block in blocks {
                let kind = block["type"].as_str().unwrap_or_default();
                let key = format!("{kind} {}", block["index"]);
                match kind {
                    "text" => pieces.push(grow(key, Kind::Text, &block["text"])),
                    "reasoning" => pieces.push(grow(key, Kind::Reasoning, &block["reasoning"])),
                    // Calls of tools are told from the fields of the message.
                    "tool_use" | "tool_call" | "tool_call_chunk" | "input_json_delta" => {}
                    _ if block.is_string() => {
                        pieces.push(grow("text".to_owned(), Kind::Text, block));
                    }
                    _ => pieces.push(Piece::Whole(block.clone())),
                }
            }
        }
        _ => {}
    }
    let each = |name: &str| message[name].as_array().into_iter().flatten();
    let call = |call: &Json| Kind::Call { id: call["id"].clone(), name: call["name"].clone() };
    if message["type"].as_str().is_some_and(|kind| kind.ends_with("Chunk")) {
        for chunk in each("tool_call_chunks") {
            let key = if chunk["index"].is_null() { &chunk["id"] } else { &chunk["index"] };
            pieces.push(grow(format!("call {key}"), call(chunk), &chunk["args"]));
        }
    } else {
        for (nth, whole) in each("tool_calls").enumerate() {
            let args = whole["args"].to_string();
            pieces.push(grow(format!("call {nth}"), call(whole), &args.into()));
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of keys depends on a feature of serde_json that other crates may turn on.
    fn sorted(json: &Json) -> String {
        match json.as_object() {
            Some(object) => json!(object.iter().collect::<std::collections::BTreeMap<_, _>>()),
            None => json.clone(),
        }
        .to_string()
    }

    fn told(chunks: &[Json]) -> Vec<String> {
        let mut messages = Messages::default();
        let short = |event: &Json| {
            let what = ["content", "delta", "usage", "role"].iter().find_map(|key| event.get(key));
            let index = event.get("index").map_or(String::new(), |index| format!(" {index}"));
            let what = what.map_or(String::new(), |what| format!(" {}", sorted(what)));
            format!("{}{index}{what}", event["event"].as_str().unwrap_or_default())
        };
        let each = chunks.iter().flat_map(|chunk| messages.of(&[], chunk, &Json::Null));
        let all: Vec<_> = each.map(|event| short(&event)).collect();
        assert!(messages.open.is_empty(), "{all:?}");
        all
    }

    #[test]
    fn a_whole_message_is_told_like_a_streamed_one() {
        let whole = json!({
            "type": "ai", "id": "m", "content": [{ "type": "reasoning", "reasoning": "hm" }, { "type": "text", "text": "hi" }],
            "tool_calls": [{ "name": "f", "id": "c", "args": { "x": 1 } }], "usage_metadata": { "total_tokens": 3 },
        });
        let chunk = |content: Json, calls: Json, position: Json| {
            json!({
                "type": "AIMessageChunk", "id": "m", "content": content, "tool_call_chunks": calls,
                "usage_metadata": if position.is_null() { Json::Null } else { json!({ "total_tokens": 3 }) },
                "chunk_position": position,
            })
        };
        let streamed = [
            chunk(
                json!([{ "type": "reasoning", "reasoning": "hm", "index": 0 }]),
                json!([]),
                Json::Null,
            ),
            chunk(json!([{ "type": "text", "text": "hi", "index": 1 }]), json!([]), Json::Null),
            chunk(
                json!(""),
                json!([{ "name": "f", "id": "c", "args": "{\"x\":1}", "index": 0 }]),
                Json::Null,
            ),
            chunk(json!(""), json!([]), json!("last")),
        ];
        let expected = told(&[whole]);
        assert_eq!(told(&streamed), expected);
        assert_eq!(
            expected,
            [
                r#"message-start "ai""#,
                r#"content-block-start 0 {"reasoning":"","type":"reasoning"}"#,
                r#"content-block-delta 0 {"reasoning":"hm","type":"reasoning-delta"}"#,
                r#"content-block-finish 0 {"reasoning":"hm","type":"reasoning"}"#,
                r#"content-block-start 1 {"text":"","type":"text"}"#,
                r#"content-block-delta 1 {"text":"hi","type":"text-delta"}"#,
                r#"content-block-finish 1 {"text":"hi","type":"text"}"#,
                r#"content-block-start 2 {"args":"","id":"c","name":"f","type":"tool_call_chunk"}"#,
                r#"content-block-delta 2 {"args":"{\"x\":1}","type":"tool-call-delta"}"#,
                r#"content-block-finish 2 {"args":{"x":1},"id":"c","name":"f","type":"tool_call"}"#,
                r#"message-finish {"total_tokens":3}"#,
            ]
        );
    }

    #[test]
    fn events_of_messages_at_the_same_time_name_their_message() {
        let mut messages = Messages::default();
        let piece = |id: &str| json!({ "type": "AIMessageChunk", "id": id, "content": "x" });
        let at = |task: &str| json!({ "langgraph_checkpoint_ns": format!("model:{task}") });
        let alone = messages.of(&[], &piece("a"), &at("1"));
        assert!(alone.iter().all(|event| event.get("message_id").is_none()));
        let beside = messages.of(&[], &piece("b"), &at("2"));
        assert_eq!(beside[1]["message_id"], "b");
        assert_eq!(messages.of(&[], &piece("a"), &at("1"))[0]["message_id"], "a");
        let ended = messages.end_of_task("1");
        assert_eq!(
            ended.last().map(|(_, event)| event["event"].clone()),
            Some("message-finish".into())
        );
        assert_eq!(messages.open.len(), 1);
        assert_eq!(messages.end_all().len(), 2);
    }
}
