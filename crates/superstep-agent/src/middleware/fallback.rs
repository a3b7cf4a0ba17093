//! Asking another model when one cannot answer.

use std::fmt;
use std::sync::Arc;

use superstep::state::State;

use super::{Middleware, ModelCall, ModelReply, NextModel};
use crate::model::{ChatModel, ModelError};

/// Asks the next of these models if the one before has failed, for whatever reason.
///
/// The request stays as it is: an [answer of a type](crate::Agent::answer_as) is asked for as the first model's profile says.
#[derive(Clone, Default)]
pub struct ModelFallback {
    models: Vec<Arc<dyn ChatModel>>,
}

impl ModelFallback {
    /// First this model.
    pub fn to(model: impl ChatModel) -> Self {
        Self::default().then(model)
    }

    /// And after those before, this one.
    #[must_use]
    pub fn then(mut self, model: impl ChatModel) -> Self {
        self.models.push(Arc::new(model));
        self
    }
}

impl<X: State> Middleware<X> for ModelFallback {
    fn name(&self) -> &str {
        "ModelFallbackMiddleware"
    }

    async fn wrap_model(
        &self,
        mut call: ModelCall<X>,
        next: NextModel<X>,
    ) -> Result<ModelReply<X>, ModelError> {
        let mut ended = next.run(call.clone()).await;
        for model in &self.models {
            let Err(error) = &ended else { return ended };
            tracing::warn!(%error, model = model.profile().name, "asks another model");
            call.model = model.clone();
            ended = next.run(call.clone()).await;
        }
        ended
    }
}

impl fmt::Debug for ModelFallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.models.iter().map(|model| model.profile().name).collect();
        f.debug_tuple("ModelFallback").field(&names).finish()
    }
}
