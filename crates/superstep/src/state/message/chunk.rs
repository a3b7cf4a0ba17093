//! Pieces of a message that is being streamed, and how they become the message.

use superstep_checkpoint::{Map, Value};

use super::merge::{add_usage, merge_content, merge_maps, merge_values};
use super::partial::parse_partial;
use super::{Chunk, InvalidToolCall, Message, Role, ToolCall, ToolCallChunk, ToolStatus};

/// Why two pieces are not pieces of one message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MergeError(pub(super) String);

impl Message {
    /// A chunk of a model's answer.
    ///
    /// Merge chunks with [`merge`](Self::merge); [`into_message`](Self::into_message) completes the
    /// message. A `Messages` field does the latter by itself.
    ///
    /// ```
    /// use superstep::state::{Message, ToolCallChunk};
    ///
    /// let mut said = Message::ai_chunk("Let me ").with_id("m1");
    /// said.merge(Message::ai_chunk("look."))?;
    /// said.merge(Message::ai_chunk("").with_tool_call_chunks([
    ///     ToolCallChunk::new(0, r#"{"q": "Pre"#).of_call("call_1", "search"),
    /// ]))?;
    /// assert_eq!(said.tool_calls[0].args["q"].as_str(), Some("Pre"));
    /// said.merge(Message::ai_chunk("").with_tool_call_chunks([ToolCallChunk::new(0, r#"gel"}"#)]))?;
    ///
    /// let message = said.into_message();
    /// assert_eq!(message.text(), "Let me look.");
    /// assert_eq!(message.tool_calls[0].args["q"].as_str(), Some("Pregel"));
    /// # Ok::<(), superstep::state::MergeError>(())
    /// ```
    #[doc(alias = "AIMessageChunk")]
    pub fn ai_chunk(content: impl Into<Value>) -> Self {
        Self::chunk_of(Role::Ai, content)
    }

    /// A piece of a message of this role.
    pub fn chunk_of(role: impl Into<Role>, content: impl Into<Value>) -> Self {
        Self { chunk: Some(Box::default()), ..Self::new(role, content) }
    }

    /// The same piece with these pieces of tool calls.
    #[must_use]
    pub fn with_tool_call_chunks(
        mut self,
        pieces: impl IntoIterator<Item = ToolCallChunk>,
    ) -> Self {
        self.chunk_mut().tool_call_chunks = pieces.into_iter().collect();
        self.read_tool_calls();
        self
    }

    /// The same piece as the last one of its message.
    #[must_use]
    pub fn as_last_chunk(mut self) -> Self {
        self.chunk_mut().last = true;
        self.finish_blocks();
        self
    }

    pub(super) fn chunk_mut(&mut self) -> &mut Chunk {
        self.chunk.get_or_insert_default()
    }

    /// Appends the next chunk of the same message.
    ///
    /// As LangChain does it: texts are joined, content blocks and pieces of tool calls with the
    /// same `index` are merged, maps are merged, token counts are added up. What has come of the
    /// tool calls so far is in `tool_calls`, and in `invalid_tool_calls` what is not JSON even if
    /// it is completed. An id that a provider gave is kept before one that LangChain made. Other
    /// than there, the name and the extra fields of this piece stay.
    ///
    /// # Errors
    /// One of the two is not a chunk, their roles differ, or they contradict each other; this
    /// message may then be partly changed.
    pub fn merge(&mut self, piece: Self) -> Result<(), MergeError> {
        self.check_merge(&piece)?;
        let Self { content, additional_kwargs, response_metadata, chunk, .. } = piece;
        merge_content(&mut self.content, content)?;
        merge_maps(&mut self.additional_kwargs, additional_kwargs)?;
        merge_maps(&mut self.response_metadata, response_metadata)?;
        self.name = self.name.take().or(piece.name);
        for (name, value) in piece.extra {
            self.extra.entry(name).or_insert(value);
        }
        match self.role {
            Role::Ai => {
                self.usage_metadata =
                    merge_usage(self.usage_metadata.take(), piece.usage_metadata)?;
                self.id = better_id(self.id.take(), piece.id);
                let calls = (piece.tool_calls, piece.invalid_tool_calls);
                self.merge_tool_calls(chunk.map(|chunk| *chunk).unwrap_or_default(), calls);
            }
            Role::Tool => {
                merge_values("artifact", &mut self.artifact, piece.artifact)?;
                if piece.status == ToolStatus::Error {
                    self.status = ToolStatus::Error;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_merge(&self, piece: &Self) -> Result<(), MergeError> {
        if !self.is_chunk() || !piece.is_chunk() {
            let text = "only pieces of a message are merged; make one with `Message::ai_chunk`";
            return Err(MergeError(text.to_owned()));
        }
        if self.role != piece.role {
            let (one, other) = (&self.role, &piece.role);
            return Err(MergeError(format!(
                "a piece of a message of `{one:?}` and one of `{other:?}` are not pieces of one message"
            )));
        }
        let same = match self.role {
            Role::Tool => self.tool_call_id == piece.tool_call_id,
            Role::Function => self.name == piece.name,
            _ => true,
        };
        let what = if self.role == Role::Tool { "calls" } else { "functions" };
        same.then_some(()).ok_or_else(|| {
            MergeError(format!("the answers to two {what} are not pieces of one message"))
        })
    }

    fn merge_tool_calls(&mut self, piece: Chunk, calls: (Vec<ToolCall>, Vec<InvalidToolCall>)) {
        let Chunk { tool_call_chunks, last } = piece;
        let new = as_chunks(tool_call_chunks, calls);
        let before = std::mem::take(&mut self.chunk_mut().tool_call_chunks);
        let whole = if new.is_empty() {
            (Vec::new(), Vec::new())
        } else {
            (std::mem::take(&mut self.tool_calls), std::mem::take(&mut self.invalid_tool_calls))
        };
        let mut all = as_chunks(before, whole);
        let changed = !new.is_empty();
        new.into_iter().for_each(|piece| add_piece(&mut all, piece));
        let chunk = self.chunk_mut();
        chunk.tool_call_chunks = all;
        chunk.last |= last;
        if changed {
            self.read_tool_calls();
        }
        self.finish_blocks();
    }

    /// Reads the tool calls from the pieces there are.
    fn read_tool_calls(&mut self) {
        let Some(chunk) = &self.chunk else { return };
        let (mut valid, mut invalid) = (Vec::new(), Vec::new());
        for ToolCallChunk { name, args, id, .. } in &chunk.tool_call_chunks {
            let read = match args.as_deref() {
                None | Some("") => Some(Value::Map(Map::new())),
                Some(args) => parse_partial(args),
            };
            let (name, id) = (name.clone(), id.clone());
            match read {
                Some(Value::Map(args)) => {
                    valid.push(ToolCall {
                        name: name.unwrap_or_default(),
                        args,
                        id,
                        extra: Map::new(),
                    });
                }
                _ => {
                    let call =
                        InvalidToolCall { name, args: args.clone(), id, ..Default::default() };
                    invalid.push(call);
                }
            }
        }
        (self.tool_calls, self.invalid_tool_calls) = (valid, invalid);
    }

    /// With the last piece, blocks of the content that were pieces of calls become calls, if the content is of version 1.
    fn finish_blocks(&mut self) {
        let last = self.chunk.as_ref().is_some_and(|chunk| chunk.last);
        let version = self.response_metadata.get("output_version").and_then(Value::as_str);
        let (true, Some("v1"), Value::List(blocks)) = (last, version, &mut self.content) else {
            return;
        };
        for block in blocks.iter_mut().filter_map(Value::as_map_mut) {
            let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
            match kind {
                "tool_call_chunk" => {
                    let id = block.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
                    // Of several with one id the last counts.
                    let call = self
                        .tool_calls
                        .iter()
                        .rfind(|call| id.is_some() && call.id.as_deref() == id);
                    let Some(call) = call else { continue };
                    let extras = block.shift_remove("extras").map(|extras| ("extras", extras));
                    let fields: [(&str, Value); 4] = [
                        ("type", "tool_call".into()),
                        ("name", call.name.clone().into()),
                        ("args", call.args.clone().into()),
                        ("id", call.id.clone().into()),
                    ];
                    let fields = fields.into_iter().chain(extras);
                    *block = fields.map(|(name, value)| (name.to_owned(), value)).collect();
                }
                "server_tool_call" | "server_tool_call_chunk" => {
                    let args = match block.get("args") {
                        None | Some(Value::Null) => "{}",
                        Some(Value::Str(args)) if args.is_empty() => "{}",
                        Some(Value::Str(args)) => args,
                        Some(_) => continue,
                    };
                    if let Ok(Value::Map(args)) = serde_json::from_str(args) {
                        block.insert("type".to_owned(), "server_tool_call".into());
                        block.insert("args".to_owned(), args.into());
                    }
                }
                _ => {}
            }
        }
    }

    /// Converts the merged chunks to a message. A message that is not a chunk is returned
    /// unchanged.
    #[must_use]
    #[doc(alias = "message_chunk_to_message")]
    pub fn into_message(mut self) -> Self {
        if self.chunk.take().is_some() {
            self.class = None;
        }
        self
    }
}

/// The pieces, or what was given as whole calls as pieces.
fn as_chunks(
    pieces: Vec<ToolCallChunk>,
    (calls, invalid): (Vec<ToolCall>, Vec<InvalidToolCall>),
) -> Vec<ToolCallChunk> {
    if !pieces.is_empty() {
        return pieces;
    }
    let calls = calls.into_iter().map(|call| ToolCallChunk {
        name: Some(call.name),
        args: Some(Value::Map(call.args).to_string()),
        id: call.id,
        ..ToolCallChunk::default()
    });
    let invalid = invalid.into_iter().map(|call| ToolCallChunk {
        name: call.name,
        args: call.args,
        id: call.id,
        ..ToolCallChunk::default()
    });
    calls.chain(invalid).collect()
}

/// Adds a piece of a tool call to the call it belongs to, if that has begun.
fn add_piece(all: &mut Vec<ToolCallChunk>, piece: ToolCallChunk) {
    let open = |id: &Option<String>| id.as_deref().is_none_or(str::is_empty);
    let begun = all.iter_mut().find(|begun| {
        let same_id = open(&begun.id) || open(&piece.id) || begun.id == piece.id;
        piece.index.is_some() && begun.index == piece.index && same_id
    });
    let Some(begun) = begun else { return all.push(piece) };
    join(&mut begun.name, piece.name);
    join(&mut begun.args, piece.args);
    if open(&begun.id) {
        begun.id = piece.id.or(begun.id.take());
    }
}

fn join(text: &mut Option<String>, more: Option<String>) {
    match (text, more) {
        (Some(text), Some(more)) => text.push_str(&more),
        (text @ None, more) => *text = more,
        (Some(_), None) => {}
    }
}

fn merge_usage(left: Option<Map>, right: Option<Map>) -> Result<Option<Map>, MergeError> {
    match (left, right) {
        (None, None) => Ok(None),
        (Some(left), None) if left.is_empty() => Ok(None),
        (left, right) => {
            let given = [left, right].into_iter().flatten().filter(|usage| !usage.is_empty());
            let mut given = given;
            let Some(mut sum) = given.next() else {
                let zero = ["input_tokens", "output_tokens", "total_tokens"];
                return Ok(Some(
                    zero.map(|name| (name.to_owned(), 0.into())).into_iter().collect(),
                ));
            };
            if let Some(more) = given.next() {
                add_usage(&mut sum, more)?;
            }
            Ok(Some(sum))
        }
    }
}

/// The id that names the message best: one that a provider gave, then that of a run, then any other.
fn better_id(left: Option<String>, right: Option<String>) -> Option<String> {
    let rank = |id: &Option<String>| match id.as_deref() {
        None | Some("") => 0,
        Some(id) if id.starts_with("lc_run-") => 2,
        Some(id) if id.starts_with("lc_") => 1,
        Some(_) => 3,
    };
    let best = if rank(&right) > rank(&left) { right } else { left };
    best.filter(|id| !id.is_empty())
}
