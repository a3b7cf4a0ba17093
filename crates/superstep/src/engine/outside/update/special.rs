//! Updates that are no node's: dropping what is pending, giving input, copying a checkpoint.

use std::sync::Arc;

use smallvec::smallvec;
use superstep_checkpoint::{CheckpointId, Source, Value};

use super::{Change, ChangeValue, Updater, invalid};
use crate::engine::drive::barrier::apply_error;
use crate::engine::kernel::apply::{Actor, Applied, apply};
use crate::engine::kernel::head::{StartValue, Write};
use crate::engine::kernel::layout::ControlKind;
use crate::error::RunError;
use crate::node::Target;
use crate::state::Payload;

impl Updater<'_> {
    /// Drops the tasks that are pending; finished ones keep their writes.
    pub(super) async fn clear(mut self, plain: bool) -> Result<CheckpointId, RunError> {
        if !plain {
            return Err(invalid("the end of the graph takes no values; update as a node"));
        }
        let layout = self.graph.layout.clone();
        let (_, entries) = self.planned();
        let mut tasks = Vec::new();
        for entry in entries {
            let finished = entry.finished(&self.pending)?;
            let dropped = || (entry.task.path(), Applied { actor: entry.actor(), writes: vec![] });
            tasks.extend(finished.unwrap_or_else(|| smallvec![dropped()]));
        }
        tasks.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut tasks: Vec<Applied> = tasks.into_iter().map(|(_, applied)| applied).collect();
        apply(&layout, &mut self.head, &mut tasks, false)
            .map_err(|error| apply_error(&error, &[], self.step()))?;
        self.force_snapshots();
        let (step, parent) = (self.step(), self.stored.as_ref().map(|s| s.checkpoint.id));
        self.put(Source::Update, step, parent, Vec::new()).await
    }

    pub(super) async fn given_as_input(
        mut self,
        value: ChangeValue,
    ) -> Result<CheckpointId, RunError> {
        let layout = self.graph.layout.clone();
        let start = match value {
            ChangeValue::Nothing => {
                return Err(invalid("an update as input needs a value"));
            }
            ChangeValue::Output(output)
                if output.goto.is_empty() && output.target == Target::Here =>
            {
                StartValue::Writes(output.writes)
            }
            ChangeValue::Output(_) => {
                return Err(invalid(
                    "input goes nowhere by itself; give the command to a run, or update as a node",
                ));
            }
            ChangeValue::Data(value) => StartValue::Arg(Payload::new(value)),
        };
        let control = layout.controls.iter().position(|c| matches!(c.kind, ControlKind::Start));
        let control = control.ok_or_else(|| invalid("the graph takes no input"))?;
        let task =
            Applied { actor: Actor::Input, writes: vec![Write::Start(control, Arc::new(start))] };
        apply(&layout, &mut self.head, &mut [task], false)
            .map_err(|error| apply_error(&error, &[], self.step()))?;
        let step = self.stored.as_ref().map_or(-1, |stored| stored.metadata.step + 1);
        self.force_snapshots();
        let parent = self.stored.as_ref().map(|stored| stored.checkpoint.id);
        self.put(Source::Input, step, parent, Vec::new()).await
    }

    /// A new checkpoint with the same content, beside the old one. Values are updates of the copy, each with its node.
    pub(super) async fn copy(mut self, values: ChangeValue) -> Result<CheckpointId, RunError> {
        let Some(stored) = &self.stored else {
            return Err(invalid("there is no checkpoint to copy"));
        };
        let (step, parent) = (stored.metadata.step + 1, stored.parent);
        let updates = updates_of_copy(values, self.graph.layout.lenient)?;
        let Self { graph, checkpointer, ids, thread, ns, .. } = self;
        self.force_snapshots();
        let copy = self.put(Source::Fork, step, parent, Vec::new()).await?;
        if updates.is_empty() {
            return Ok(copy);
        }
        let updater = Updater::load(graph, checkpointer, ids, thread, ns, Some(copy)).await?;
        updater.written_by_nodes(updates).await
    }
}

/// The updates that are to be made to a copy, those of one node together.
fn updates_of_copy(values: ChangeValue, lenient: bool) -> Result<Vec<Change>, RunError> {
    const SHAPE: &str = "a copy takes a list of updates, each with its node: `[[values, node], …]`";
    let items = match values {
        ChangeValue::Nothing => return Ok(Vec::new()),
        ChangeValue::Data(Value::List(items)) => items,
        _ if lenient => {
            tracing::warn!("ignored values that were given for a copy; {SHAPE}");
            return Ok(Vec::new());
        }
        _ => return Err(invalid(format!("the values say no nodes; {SHAPE}, or update the copy"))),
    };
    let mut by_node: Vec<(Arc<str>, Vec<Change>)> = Vec::new();
    for item in items {
        let pair = item.as_list().and_then(|pair| Some((pair.first()?, pair.get(1)?.as_str()?)));
        let (values, node) =
            pair.ok_or_else(|| invalid(format!("{item} is no update of a copy; {SHAPE}")))?;
        let value = match values {
            Value::Null => ChangeValue::Nothing,
            values => ChangeValue::Data(values.clone()),
        };
        let node: Arc<str> = node.into();
        let change = Change { value, as_node: Some(node.clone()) };
        match by_node.iter_mut().find(|(known, _)| *known == node) {
            Some((_, changes)) => changes.push(change),
            None => by_node.push((node, vec![change])),
        }
    }
    Ok(by_node.into_iter().flat_map(|(_, changes)| changes).collect())
}
