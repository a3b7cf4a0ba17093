//! Keeping personal data from the model.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use superstep::checkpoint::Value;
use superstep::state::{Message, Role, State};
use superstep::{NodeError, Task};

use super::{Hook, Middleware};
use crate::state::{AgentState, AgentUpdate};

/// Finds personal data in what people and tools say, before the model sees it.
///
/// The messages themselves are changed, so that it is not stored with later checkpoints either. One middleware is for one kind of data; give each
/// a name of its own.
#[derive(Clone)]
pub struct Pii {
    name: String,
    kind: String,
    find: Detector,
    strategy: PiiStrategy,
    tools: bool,
}

type Detector = Arc<dyn Fn(&str) -> Vec<Range<usize>> + Send + Sync>;

/// What is done with personal data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PiiStrategy {
    /// It is replaced by its kind: `[REDACTED_EMAIL]`.
    #[default]
    Redact,
    /// All but its last four letters are replaced by stars.
    Mask,
    /// The run fails.
    Block,
}

impl Pii {
    /// E-mail addresses.
    pub fn email() -> Self {
        Self::new("email", emails)
    }

    /// Numbers of payment cards.
    pub fn credit_card() -> Self {
        Self::new("credit_card", cards)
    }

    /// Data of a kind that this function finds: it returns the places in the text, in bytes, in order.
    pub fn new(
        kind: impl Into<String>,
        find: impl Fn(&str) -> Vec<Range<usize>> + Send + Sync + 'static,
    ) -> Self {
        let kind = kind.into();
        let name = format!("PIIMiddleware[{kind}]");
        Self { name, kind, find: Arc::new(find), strategy: PiiStrategy::default(), tools: false }
    }

    /// What is done with it.
    #[must_use]
    pub fn strategy(self, strategy: PiiStrategy) -> Self {
        Self { strategy, ..self }
    }

    /// Looks at the results of tools, too.
    #[must_use]
    pub fn in_tool_results(self) -> Self {
        Self { tools: true, ..self }
    }

    /// The text without what was found, if there is something.
    fn clean(&self, text: &str) -> Result<Option<String>, NodeError> {
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for place in (self.find)(text) {
            // A detector of somebody else may be wrong about the places.
            let (Some(before), Some(found)) = (text.get(end..place.start), text.get(place.clone()))
            else {
                continue;
            };
            out.push_str(before);
            match self.strategy {
                PiiStrategy::Redact => {
                    out.push_str(&format!("[REDACTED_{}]", self.kind.to_uppercase()));
                }
                PiiStrategy::Mask => {
                    let letters = found.chars().count();
                    let shown = if letters > 4 { 4 } else { 0 };
                    out.extend(std::iter::repeat_n('*', letters - shown));
                    out.extend(found.chars().skip(letters - shown));
                }
                PiiStrategy::Block => {
                    let text =
                        format!("a message contains personal data of the kind `{}`", self.kind);
                    return Err(NodeError::permanent(text).named("PIIDetectionError"));
                }
            }
            end = place.end;
        }
        Ok((end > 0).then(|| out + text.get(end..).unwrap_or_default()))
    }

    fn clean_content(&self, content: &Value) -> Result<Option<Value>, NodeError> {
        match content {
            Value::Str(text) => Ok(self.clean(text)?.map(Value::from)),
            Value::List(blocks) => {
                let (mut blocks, mut changed) = (blocks.clone(), false);
                for block in blocks.iter_mut().filter_map(Value::as_map_mut) {
                    if let Some(Value::Str(text)) = block.get_mut("text")
                        && let Some(clean) = self.clean(text)?
                    {
                        (*text, changed) = (clean, true);
                    }
                }
                Ok(changed.then_some(Value::List(blocks)))
            }
            _ => Ok(None),
        }
    }
}

impl<X: State> Middleware<X> for Pii {
    const HOOKS: &'static [Hook] = &[Hook::BeforeModel];

    fn name(&self) -> &str {
        &self.name
    }

    async fn before_model(
        &self,
        state: Arc<AgentState<X>>,
        _: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        let concerns = |message: &&Message| {
            message.role == Role::Human || (self.tools && message.role == Role::Tool)
        };
        let mut changed = Vec::new();
        // What came before the last answer has been looked at.
        let new = state.messages.iter().rev().take_while(|message| message.role != Role::Ai);
        for message in new.filter(concerns) {
            if let Some(content) = self.clean_content(&message.content)? {
                let mut clean = message.clone();
                clean.content = content;
                changed.push(clean);
            }
        }
        let update = AgentUpdate::default();
        Ok(if changed.is_empty() { update } else { update.messages(changed) })
    }
}

impl fmt::Debug for Pii {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pii").field("kind", &self.kind).finish_non_exhaustive()
    }
}

fn emails(text: &str) -> Vec<Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._%+-".contains(c);
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let before = text[..at].trim_end_matches(is_part).len();
        let host = &text[at + 1..];
        let len = host.len() - host.trim_start_matches(|c: char| is_part(c) && c != '%').len();
        let host = host[..len].trim_end_matches(['.', '-']);
        let has_end = host.rsplit_once('.').is_some_and(|(_, end)| end.len() > 1);
        if before < at && has_end && found.last().is_none_or(|last| last.end <= before) {
            found.push(before..at + 1 + host.len());
        }
    }
    found
}

/// 13 to 19 digits, perhaps with blanks or hyphens between them, whose last digit is right.
fn cards(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut digits: Vec<(usize, u32)> = Vec::new();
    let mut flush = |digits: &mut Vec<(usize, u32)>| {
        if let (13..=19, Some(first), Some(last)) = (digits.len(), digits.first(), digits.last())
            && is_card(digits)
        {
            found.push(first.0..last.0 + 1);
        }
        digits.clear();
    };
    for (at, letter) in text.char_indices() {
        match letter.to_digit(10) {
            Some(digit) => digits.push((at, digit)),
            None if matches!(letter, ' ' | '-') => {}
            None => flush(&mut digits),
        }
    }
    flush(&mut digits);
    found
}

fn is_card(digits: &[(usize, u32)]) -> bool {
    let weighed = digits.iter().rev().enumerate().map(|(nth, (_, digit))| match nth % 2 {
        0 => *digit,
        _ => digit * 2 / 10 + digit * 2 % 10,
    });
    weighed.sum::<u32>() % 10 == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_cards_are_found() {
        let clean = |pii: Pii, text: &str| pii.clean(text).expect("no block");
        let text = "Write to ada.l@example.org, or a@b.";
        assert_eq!(
            clean(Pii::email(), text).as_deref(),
            Some("Write to [REDACTED_EMAIL], or a@b.")
        );
        let card = "My card: 4111 1111 1111 1111!";
        let masked = clean(Pii::credit_card().strategy(PiiStrategy::Mask), card);
        assert_eq!(masked.as_deref(), Some("My card: ***************1111!"));
        assert_eq!(clean(Pii::credit_card(), "4111 1111 1111 1112"), None);
        assert!(Pii::email().strategy(PiiStrategy::Block).clean(text).is_err());
        let wrong = Pii::new("x", |_| vec![Range { start: 5, end: 2 }, 90..95]);
        assert_eq!(clean(wrong, "Grüße"), None);
    }
}
