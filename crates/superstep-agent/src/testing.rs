//! A model that says what it was told to, for tests and for programs that run without a key.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use superstep::state::{Message, Role, ToolCallChunk};

use crate::model::{ChatModel, ModelError, ModelRequest, ModelStream, Profile, Trouble};

/// A model that gives prepared answers, and remembers what it was asked.
///
/// Its answers come from a list, in order, or from a function of the request. Clones share the list and the memory. It keeps no state that a
/// thread would need: one made by [`following`](Self::following) chooses the answer by the number of its messages in the conversation, so that
/// another process goes on at the same place.
///
/// ```
/// use superstep::prelude::*;
/// use superstep_agent::testing::ScriptedModel;
/// use superstep_agent::{ModelError, Trouble};
///
/// let model = ScriptedModel::new([
///     ScriptedModel::says("Good morning."),
///     Err(ModelError::new(Trouble::RateLimited, "too fast")),
/// ]);
/// # let _ = model;
/// ```
#[derive(Clone)]
pub struct ScriptedModel {
    answers: Answers,
    profile: Profile,
    streams: bool,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
}

type Scripted = Result<Message, ModelError>;
type Function = dyn Fn(&ModelRequest) -> Vec<Scripted> + Send + Sync;

#[derive(Clone)]
enum Answers {
    List(Arc<Mutex<std::vec::IntoIter<Scripted>>>),
    By(Arc<Function>),
}

impl ScriptedModel {
    /// A model that gives these answers, one after the other, and then fails.
    pub fn new<T: IntoScripted>(answers: impl IntoIterator<Item = T>) -> Self {
        let answers: Vec<_> = answers.into_iter().map(IntoScripted::into_scripted).collect();
        Self::of(Answers::List(Arc::new(Mutex::new(answers.into_iter()))))
    }

    /// A model that chooses the answer by how many messages of a model the conversation has. The last one is given again and again.
    pub fn following(answers: impl IntoIterator<Item = Message>) -> Self {
        let answers: Vec<_> = answers.into_iter().collect();
        Self::answering(move |request| {
            let said = request.messages.iter().filter(|message| message.role == Role::Ai).count();
            answers.get(said).or(answers.last()).cloned().unwrap_or_default()
        })
    }

    /// A model that answers what the function returns.
    pub fn answering<T: IntoScripted>(
        answer: impl Fn(&ModelRequest) -> T + Send + Sync + 'static,
    ) -> Self {
        Self::in_pieces(move |request| vec![answer(request).into_scripted()])
    }

    /// A model whose stream yields what the function returns: chunks, and perhaps an error among them.
    pub fn in_pieces(
        answer: impl Fn(&ModelRequest) -> Vec<Result<Message, ModelError>> + Send + Sync + 'static,
    ) -> Self {
        Self::of(Answers::By(Arc::new(answer)))
    }

    fn of(answers: Answers) -> Self {
        let profile = Profile::new("scripted");
        Self { answers, profile, streams: false, requests: Arc::default() }
    }

    /// An answer in words.
    pub fn says(text: &str) -> Result<Message, ModelError> {
        Ok(Message::ai(text))
    }

    /// The same model that streams its answers word by word.
    #[must_use]
    pub fn streaming(self) -> Self {
        Self { streams: true, ..self }
    }

    /// The same model with another profile.
    #[must_use]
    pub fn with_profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// What it was asked, in order.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next(&self, request: &ModelRequest) -> Vec<Scripted> {
        match &self.answers {
            Answers::List(list) => {
                let next = list.lock().unwrap_or_else(PoisonError::into_inner).next();
                vec![next.unwrap_or_else(|| {
                    Err(ModelError::new(Trouble::Other, "the script of the model has ended"))
                })]
            }
            Answers::By(function) => function(request),
        }
    }
}

/// What a scripted model can be given as an answer.
pub trait IntoScripted {
    /// The answer.
    fn into_scripted(self) -> Result<Message, ModelError>;
}

impl IntoScripted for Message {
    fn into_scripted(self) -> Result<Message, ModelError> {
        Ok(self)
    }
}

impl IntoScripted for &str {
    fn into_scripted(self) -> Result<Message, ModelError> {
        Ok(Message::ai(self))
    }
}

impl IntoScripted for Result<Message, ModelError> {
    fn into_scripted(self) -> Self {
        self
    }
}

impl ChatModel for ScriptedModel {
    fn profile(&self) -> Profile {
        self.profile.clone()
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let answers = self.next(&request);
        let mut request = request;
        // It is kept, so it must not keep the state.
        request.messages.to_mut();
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        if !self.streams {
            return Box::pin(stream::iter(answers));
        }
        let pieces = answers.into_iter().flat_map(|answer| match answer {
            Ok(message) if !message.is_chunk() => in_words(&message),
            other => vec![other],
        });
        Box::pin(stream::iter(pieces.collect::<Vec<_>>()))
    }
}

/// The message in pieces: its words, then its calls, each in two pieces.
fn in_words(message: &Message) -> Vec<Scripted> {
    let text = message.text();
    let words = text.split_inclusive(' ').map(Message::ai_chunk);
    let mut pieces: Vec<_> = words.map(Ok).collect();
    for (index, call) in (0..).zip(&message.tool_calls) {
        let args = superstep::checkpoint::Value::Map(call.args.clone()).to_string();
        let (begin, rest) = args.split_at(args.len().min(1));
        let first = ToolCallChunk::new(index, begin)
            .of_call(call.id.clone().unwrap_or_default(), call.name.clone());
        for piece in [first, ToolCallChunk::new(index, rest)] {
            pieces.push(Ok(Message::ai_chunk("").with_tool_call_chunks([piece])));
        }
    }
    let mut last = Message::ai_chunk("").as_last_chunk();
    last.usage_metadata = message.usage_metadata.clone();
    pieces.push(Ok(last));
    pieces
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptedModel").field("profile", &self.profile).finish_non_exhaustive()
    }
}
