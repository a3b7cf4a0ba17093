//! Limits on the time and the output of tools.

use std::time::Duration;

use superstep::checkpoint::Value;
use superstep::state::State;

use super::{Middleware, NextTool, ToolRun};
use crate::tool::{ToolError, ToolOutput};

/// Tells the model when a tool takes too long or says too much, instead of waiting for ever or sending it all.
///
/// The time counts while the tool runs, not while a person is asked: approvals are asked before. A question that the tool itself asks is
/// stored when it is asked.
#[derive(Clone, Debug, Default)]
pub struct ToolBounds {
    time: Option<Duration>,
    bytes: Option<usize>,
}

impl ToolBounds {
    /// At most this long for a call.
    pub fn time(limit: Duration) -> Self {
        Self { time: Some(limit), bytes: None }
    }

    /// At most this many bytes of a result that is text; the rest is cut off, and the result says so.
    #[must_use]
    pub fn bytes(self, limit: usize) -> Self {
        Self { bytes: Some(limit), ..self }
    }
}

impl<X: State> Middleware<X> for ToolBounds {
    fn name(&self) -> &str {
        "ToolBounds"
    }

    async fn wrap_tool(&self, call: ToolRun, next: NextTool) -> Result<ToolOutput, ToolError> {
        let name = call.tool.name.clone();
        let mut output = match self.time {
            None => next.run(call).await?,
            Some(limit) => match tokio::time::timeout(limit, next.run(call)).await {
                Ok(ended) => ended?,
                Err(_) => {
                    let text = format!("Error: tool `{name}` had no result within {limit:?}.");
                    return Err(ToolError::tell(text));
                }
            },
        };
        if let (Some(limit), Value::Str(text)) = (self.bytes, &mut output.content)
            && text.len() > limit
        {
            let cut = text.floor_char_boundary(limit);
            let left = text.len() - cut;
            text.truncate(cut);
            text.push_str(&format!("\n[{left} more bytes were cut off]"));
        }
        Ok(output)
    }
}
