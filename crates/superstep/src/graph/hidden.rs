//! What compiling adds to the nodes and routers of a graph: the node that takes the input, and routers that keep to their
//! targets.

use std::sync::Arc;

use super::builder::Targets;
use crate::engine::{START, StartValue, not_an_update};
use crate::error::NodeError;
use crate::node::{BoxFuture, Goto, Invocation, Node, Output, RouteContext, Router, Routes};
use crate::state::{ErasedSchema, Writes};

/// A router that may only lead where it was declared to.
pub(super) fn declared(
    router: Arc<dyn Router>,
    targets: Targets,
    lenient: bool,
) -> Arc<dyn Router> {
    match targets.0 {
        None => router,
        Some(targets) => Arc::new(Declared { router, targets, lenient }),
    }
}

struct Declared {
    router: Arc<dyn Router>,
    targets: Vec<(Arc<str>, Arc<str>)>,
    lenient: bool,
}

impl Declared {
    fn translate(&self, mut routes: Routes) -> Result<Routes, NodeError> {
        for goto in &mut routes.to {
            match goto {
                Some(Goto::Node(answer)) => *answer = self.target(answer)?,
                None if self.lenient => {
                    return Err(NodeError::bad_route(
                        "KeyError",
                        "a router gave no answer, which is none of its declared targets".to_owned(),
                    ));
                }
                Some(Goto::Dispatch(_)) | None => {}
            }
        }
        Ok(routes)
    }

    fn target(&self, answer: &str) -> Result<Arc<str>, NodeError> {
        let found = self.targets.iter().find(|(known, _)| &**known == answer);
        found.map(|(_, node)| node.clone()).ok_or_else(|| {
            let known: Vec<_> =
                self.targets.iter().map(|(known, _)| format!("`{known}`")).collect();
            let text = format!(
                "a router answered `{answer}`, which is none of its declared targets {}",
                known.join(", ")
            );
            NodeError::bad_route("KeyError", text)
        })
    }
}

impl Router for Declared {
    fn route_now(
        &self,
        state: &(dyn std::any::Any + Send + Sync),
    ) -> Option<Result<Routes, NodeError>> {
        Some(self.router.route_now(state)?.and_then(|routes| self.translate(routes)))
    }

    fn route(&self, context: RouteContext) -> BoxFuture<Result<Routes, NodeError>> {
        let answer = self.router.route(context);
        let this = Self {
            router: self.router.clone(),
            targets: self.targets.clone(),
            lenient: self.lenient,
        };
        Box::pin(async move { this.translate(answer.await?) })
    }
}

/// The node that turns the input of a run into writes.
pub(super) struct Start {
    pub(super) schema: Arc<dyn ErasedSchema>,
    /// Whether each channel may be part of the input.
    pub(super) takes: Vec<bool>,
    pub(super) lenient: bool,
}

impl Start {
    fn writes(&self, start: Option<&StartValue>) -> Result<Writes, NodeError> {
        let mut writes = match start {
            None => Writes::new(),
            Some(StartValue::Writes(writes)) => writes.clone(),
            Some(StartValue::Arg(payload)) => {
                let value = payload.to_value()?;
                if !matches!(value, superstep_checkpoint::Value::Map(_)) {
                    return Err(not_an_update(START, &value));
                }
                let (writes, problems) = self.schema.parse_map(value)?;
                if !problems.is_empty() {
                    return Err(NodeError::invalid_update(problems.join("; "), None));
                }
                writes
            }
        };
        if self.lenient {
            writes.forget_unknown();
        }
        writes.list.retain(|(at, _)| self.takes[*at]);
        Ok(writes)
    }
}

impl Node for Start {
    fn run(&self, call: Invocation<'_>) -> BoxFuture<Result<Output, NodeError>> {
        Box::pin(std::future::ready(self.writes(call.start).map(Output::writes)))
    }
}
