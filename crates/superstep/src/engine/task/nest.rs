//! Running a subgraph of another graph.

use std::sync::Arc;

use crate::engine::drive::driver::{Finish, How, drive};
use crate::engine::drive::opening::{Caller, Input, Opening};
use crate::engine::kernel::compiled::{Compiled, Memory};
use crate::engine::kernel::head::StartValue;
use crate::engine::step::superstep::Superstep;
use crate::engine::stored::ids;
use crate::engine::task::handle::{Refusal, Suspension, Task};
use crate::error::RunError;
use crate::node::Target;

impl Task {
    /// Runs a graph as part of this task and returns its final state.
    ///
    /// If the graph stops early (interrupted, at a breakpoint, drained, or with a command for its
    /// parent), this task stops with it, and the future never completes.
    pub(crate) async fn run_graph(
        &self,
        graph: Arc<Compiled>,
        input: StartValue,
    ) -> Result<Finish, RunError> {
        self.note_progress();
        let superstep = &self.inner.superstep;
        // A graph that is a node was looked at when the run began; one that is called from a node was not known then.
        superstep.setting.run.context.check(&graph.layout)?;
        let (inside, called_before) = self.next_subgraph(&input);
        let inherited = superstep.setting.inside.clone();
        let own = || graph.checkpointer.clone().filter(|_| superstep.setting.run.thread.is_some());
        let (ns, checkpointer) = match graph.memory {
            Memory::PerCall => (inside, inherited.or_else(own)),
            Memory::PerThread => (ids::without_task_ids(&inside).into(), inherited.or_else(own)),
            Memory::Nothing => (inside, None),
        };
        // A further attempt of the task continues with the graph where the failed one left it.
        let resuming = if called_before {
            Some(true)
        } else if self.attempt() > 1 {
            Some(false)
        } else {
            superstep.resuming
        };
        let opening = Opening {
            run: superstep.setting.run.clone(),
            checkpointer,
            ns,
            shown: None,
            parents: Arc::new(self.parents()),
            at: None,
            input: Input::Value(input),
            breakpoints: graph.breakpoints.clone(),
            caller: Some(Caller {
                resuming,
                first: graph.memory == Memory::PerCall && self.is_first(),
                touched: superstep.touched,
                superstep: superstep.clone(),
            }),
            keys: graph.layout.output.clone().into(),
            graph,
        };
        let inflight = self.enter();
        let finish = match drive(opening).await {
            Ok(finish) => finish,
            // Neither is for the node to make something of.
            Err(RunError::Resume { message, pending }) => {
                drop(inflight);
                let refused = Some(Refusal::Answer(message));
                self.suspend_with(Suspension {
                    refused,
                    questions: pending,
                    ..Suspension::default()
                });
                return std::future::pending().await;
            }
            Err(error @ (RunError::Checkpoint(_) | RunError::Conflict { .. })) => {
                superstep.fail_run(error);
                return std::future::pending().await;
            }
            Err(error) => return Err(error),
        };
        let suspension = match finish.how {
            How::Done => return Ok(finish),
            How::Interrupted => Suspension { questions: finish.questions, ..Suspension::default() },
            How::Drained(reason) => {
                Suspension { drained: Some(reason.to_string()), ..Suspension::default() }
            }
            How::ForParent(mut output) => {
                output.target = Target::Here;
                Suspension { command: Some(output), ..Suspension::default() }
            }
        };
        drop(inflight);
        self.suspend_with(suspension);
        std::future::pending().await
    }

    /// Whether no run has executed this task before.
    ///
    /// Its id comes from the checkpoint its superstep began from. If this run made and stored that checkpoint, no other run
    /// was here before. If another run has taken the thread since and comes here first, this one fails when it stores.
    fn is_first(&self) -> bool {
        let Superstep { setting, resuming, .. } = &*self.inner.superstep;
        let mut callers = std::iter::successors(Some(self), |task| task.inner.caller.as_ref());
        // A graph that is not stored has checkpoints of the same names each time it runs.
        setting.checkpointer.is_some()
            && setting.run.replay().is_none()
            && *resuming != Some(true)
            && callers.all(|task| task.attempt() == 1)
    }
}
