//! A limit on tokens and money.

use std::sync::Arc;

use superstep::checkpoint::{Map, Value};
use superstep::state::{Message, State, TableChannel};
use superstep::{NodeError, Task};

use super::{AtLimit, Hook, Middleware, ModelCall, ModelReply, NextModel};
use crate::model::ModelError;
use crate::state::{AgentState, AgentUpdate, JumpTo, LayerChannel};

/// Ends the agent when a thread has used so many tokens, or so much money.
///
/// What was used is in the channel `budget` and is stored with the answer it was used for, so it survives a restart. An answer for which
/// no token counts came counts as none. The limit is checked before each request, so one request may go beyond it.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    tokens_max: Option<i64>,
    millionths_max: Option<i64>,
    at_limit: AtLimit,
}

const CHANNEL: &str = "budget";

impl Budget {
    /// At most about this many tokens.
    pub fn tokens(tokens_max: u32) -> Self {
        Self { tokens_max: Some(tokens_max.into()), ..Self::default() }
    }

    /// At most this much money, in millionths. Models without a [`Price`](crate::Price) cost nothing.
    pub fn millionths(millionths_max: u32) -> Self {
        Self { millionths_max: Some(millionths_max.into()), ..Self::default() }
    }

    /// What happens when it is used up.
    #[must_use]
    pub fn at_limit(self, at_limit: AtLimit) -> Self {
        Self { at_limit, ..self }
    }
}

fn used<X: State>(state: &AgentState<X>, what: &str) -> i64 {
    state.layer(CHANNEL).and_then(|it| it.get(what)).and_then(Value::as_i64).unwrap_or(0)
}

impl<X: State> Middleware<X> for Budget {
    const HOOKS: &'static [Hook] = &[Hook::BeforeModel];

    fn name(&self) -> &str {
        "Budget"
    }

    fn channels(&self) -> Vec<LayerChannel> {
        vec![LayerChannel::new(CHANNEL, TableChannel::last())]
    }

    async fn before_model(
        &self,
        state: Arc<AgentState<X>>,
        _: Task,
    ) -> Result<AgentUpdate<X>, NodeError> {
        let over = |what, limit: Option<i64>| limit.is_some_and(|most| used(&state, what) >= most);
        if !over("tokens", self.tokens_max) && !over("millionths", self.millionths_max) {
            return Ok(AgentUpdate::default());
        }
        let text =
            format!("The budget of this thread is used up: {} tokens.", used(&state, "tokens"));
        match self.at_limit {
            AtLimit::End => {
                Ok(AgentUpdate::default().messages([Message::ai(text)]).jump_to(JumpTo::End))
            }
            AtLimit::Fail => Err(NodeError::permanent(text).named("BudgetError")),
        }
    }

    async fn wrap_model(
        &self,
        call: ModelCall<X>,
        next: NextModel<X>,
    ) -> Result<ModelReply<X>, ModelError> {
        let (state, price) = (call.state.clone(), call.model.profile().price.unwrap_or_default());
        let mut reply = next.run(call).await?;
        let usage = reply.message.usage_metadata.as_ref();
        let count = |name| usage.and_then(|it| it.get(name)).and_then(Value::as_i64).unwrap_or(0);
        let (input, output) = (count("input_tokens"), count("output_tokens"));
        let cost = input as f64 * price.input + output as f64 * price.output;
        let tokens = used(&state, "tokens").saturating_add(input).saturating_add(output);
        // A float becomes the nearest integer there is.
        let millionths = used(&state, "millionths").saturating_add(cost.ceil() as i64);
        let all = [("tokens", tokens), ("millionths", millionths)];
        let all: Map = all.map(|(name, number)| (name.to_owned(), number.into())).into();
        let set = AgentUpdate::default().set(CHANNEL, Value::Map(all)).map_err(|error| {
            ModelError::new(crate::model::Trouble::Other, "what was used cannot be stored")
                .with_source(error)
        })?;
        reply.update = reply.update.and(set);
        Ok(reply)
    }
}
