use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use superstep::state::{Message, State};

use crate::state::AgentState;

/// The messages of a request.
///
/// They are those of the state, which is not copied to be read, until somebody [changes](Self::to_mut) them.
///
/// A model should not keep them beyond its answer: as long as it does, the next superstep copies the state to change it.
#[derive(Clone)]
pub struct Conversation(Messages);

#[derive(Clone)]
enum Messages {
    Own(Vec<Message>),
    Of(Arc<dyn AsRef<[Message]> + Send + Sync>),
}

impl Conversation {
    pub(crate) fn of<X: State>(state: Arc<AgentState<X>>) -> Self {
        Self(Messages::Of(state))
    }

    /// The messages, to be changed.
    pub fn to_mut(&mut self) -> &mut Vec<Message> {
        if let Messages::Of(state) = &self.0 {
            self.0 = Messages::Own((**state).as_ref().to_vec());
        }
        match &mut self.0 {
            Messages::Own(messages) => messages,
            Messages::Of(_) => unreachable!("it was made an own one"),
        }
    }
}

impl Default for Conversation {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl From<Vec<Message>> for Conversation {
    fn from(messages: Vec<Message>) -> Self {
        Self(Messages::Own(messages))
    }
}

impl Deref for Conversation {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        match &self.0 {
            Messages::Own(messages) => messages,
            Messages::Of(state) => (**state).as_ref(),
        }
    }
}

impl<X: State> AsRef<[Message]> for AgentState<X> {
    fn as_ref(&self) -> &[Message] {
        &self.messages
    }
}

impl fmt::Debug for Conversation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
