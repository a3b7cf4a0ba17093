//! How a run begins: where the thread is, and what the input means there.

use std::sync::Arc;

use superstep_checkpoint::{AnyCheckpointer, CheckpointId, Query, Source, Stored};

use crate::engine::drive::barrier::apply_error;
use crate::engine::drive::driver::Driver;
use crate::engine::drive::opening::{Input, Resume};
use crate::engine::kernel::apply::apply;
use crate::engine::kernel::head::{StartValue, Write};
use crate::engine::kernel::layout::ControlKind;
use crate::engine::kernel::plan::{plan, plan_each};
use crate::engine::step::superstep::lock;
use crate::engine::stored::ids;
use crate::engine::stored::pending::Pending;
use crate::engine::stored::slots;
use crate::error::RunError;

/// Where a run begins.
pub(in crate::engine) struct Start {
    /// A branch begins here: what the run does is not stored beside the checkpoint, which may have other children.
    pub(in crate::engine) branches: bool,
    /// The run goes back in time: what had finished runs again, and what was answered is asked again.
    time_travel: bool,
    /// The caller goes back in time, so this graph gets its input again, whatever it did afterwards.
    rewound: bool,
}

/// The checkpoint that a graph begins from, and how it was found.
struct Found {
    stored: Option<Stored>,
    way: Way,
}

enum Way {
    /// It is where the graph is.
    Latest,
    /// It was asked for. `superseded`: the thread has continued since.
    Asked { superseded: bool },
    /// It is where the graph was when the graph around it was where that begins.
    Bounded,
}

impl Driver {
    /// Loads the thread and applies the input to it.
    pub(in crate::engine) async fn load_and_begin(
        &mut self,
        at: Option<CheckpointId>,
        input: Input,
    ) -> Result<(), RunError> {
        let Found { stored, way } = self.find(at).await?;
        match stored {
            Some(stored) => self.load(&stored).await?,
            None => {
                let id = self.next_id(-2, None);
                self.position.start_at(id);
            }
        }
        let start = self.start(&way, &input);
        if !self.is_nested() {
            self.bound_replay(&start, &input);
        }
        self.position.allow(self.asked.limit());
        self.begin(input, &start).await
    }

    fn start(&self, way: &Way, input: &Input) -> Start {
        let answers = matches!(input, Input::Command(command) if !command.resume.is_nothing());
        let (branches, time_travel) = match *way {
            Way::Latest | Way::Bounded => (false, false),
            // Naming the head is not going back in time, unless it is for the sake of a graph inside.
            Way::Asked { superseded } if !self.is_nested() && !self.goes_inside() => {
                (superseded, superseded && !answers)
            }
            // An update from outside is a branch of its own until the thread has continued from it.
            Way::Asked { superseded } => (superseded || !self.position.is_from_outside(), true),
        };
        Start { branches, time_travel, rewound: matches!(way, Way::Bounded) }
    }

    fn goes_inside(&self) -> bool {
        self.setting.run.replay.as_ref().is_some_and(|replay| replay.goes_inside)
    }

    /// Lets graphs inside find where they were when the thread was at the checkpoint that the run begins from.
    ///
    /// What was made from outside came later than what the graphs inside did before it, so its parent counts.
    fn bound_replay(&self, start: &Start, input: &Input) {
        let Some(replay) = &self.setting.run.replay else { return };
        let parent = self.position.before().filter(|_| self.position.is_from_outside());
        let fresh = parent.is_some() && self.pending.is_clear();
        if matches!(input, Input::Value(_)) || !(start.time_travel || fresh) {
            return;
        }
        // Set here and nowhere else.
        let _ = replay.before.set(parent.unwrap_or(self.position.id()));
    }

    /// The checkpoint to begin from.
    async fn find(&mut self, at: Option<CheckpointId>) -> Result<Found, RunError> {
        let latest = |stored| Found { stored, way: Way::Latest };
        let (Some(checkpointer), Some(thread)) =
            (self.setting.checkpointer.clone(), self.setting.run.thread.clone())
        else {
            return Ok(latest(None));
        };
        if self.caller.as_ref().is_some_and(|caller| caller.first) {
            return Ok(latest(None));
        }
        if let Some(id) = at {
            return self.find_asked(&checkpointer, thread, id).await;
        }
        let stored = checkpointer.get(&thread, &self.setting.ns, None).await?;
        self.outbox.knows_head(stored.as_ref().map(|stored| stored.checkpoint.id));
        let run = self.setting.run.clone();
        let Some((replay, before)) = run.replay().filter(|_| self.is_nested()) else {
            return Ok(latest(stored));
        };
        if !lock(&replay.visited).insert(ids::without_task_ids(&self.setting.ns)) {
            return Ok(Found { stored, way: Way::Bounded });
        }
        if let Some(id) = replay.addressed.get(&*self.setting.ns) {
            return self.find_asked(&checkpointer, thread, *id).await;
        }
        let query = Query {
            thread: Some(thread),
            ns: Some(self.setting.ns.clone()),
            before: Some(before),
            limit: Some(1),
            ..Query::default()
        };
        let older = checkpointer.list(query).await?.into_iter().next();
        Ok(Found { stored: older, way: Way::Bounded })
    }

    async fn find_asked(
        &mut self,
        checkpointer: &AnyCheckpointer,
        thread: Arc<str>,
        id: CheckpointId,
    ) -> Result<Found, RunError> {
        let stored = checkpointer.get(&thread, &self.setting.ns, Some(id)).await?;
        let stored = stored.ok_or(RunError::UnknownCheckpoint { thread: thread.clone(), id })?;
        let head = checkpointer.get(&thread, &self.setting.ns, None).await?;
        let head = head.map(|head| head.checkpoint.id);
        self.outbox.knows_head(head);
        let superseded = head != Some(id);
        Ok(Found { stored: Some(stored), way: Way::Asked { superseded } })
    }

    async fn load(&mut self, stored: &Stored) -> Result<(), RunError> {
        if let Some(checkpointer) = &self.setting.checkpointer {
            self.head = self.recorder.load(&self.setting.layout, stored, checkpointer).await?;
        }
        self.pending = Pending::from_stored(&stored.writes)?;
        self.position.load(stored);
        self.outbox.continues(stored.checkpoint.id);
        Ok(())
    }

    async fn begin(&mut self, input: Input, start: &Start) -> Result<(), RunError> {
        let begun = self.head.newest > 0;
        let told = self.caller.as_ref().and_then(|caller| caller.resuming);
        let told = told.filter(|_| !start.rewound && !start.time_travel);
        // A graph with a memory may have its history from another call. This one has not come to it yet.
        let told = told.map(|told| told && !(begun && self.is_from_another_call()));
        let continues = matches!(input, Input::Nothing | Input::Wake | Input::Command(_));
        let resuming =
            begun && (start.time_travel && self.is_nested() || told.unwrap_or(continues));
        if resuming {
            self.check_fits(start)?;
        }
        self.asked.replay(start.branches || start.time_travel);
        if start.time_travel {
            self.pending.forget_answers();
        }
        let mut writes = self.stored_commands()?;
        let mut commanded = matches!(input, Input::Command(_));
        let answers = matches!(&input, Input::Command(command) if !command.resume.is_nothing());
        let takes_up =
            resuming && !start.branches && !self.is_nested() && self.setting.checkpointer.is_some();
        self.share_due();
        let due = if takes_up { self.due_answers(start) } else { Vec::new() };
        if matches!(input, Input::Wake) {
            self.check_due(&due)?;
        }
        let for_clock = !due.is_empty() || matches!(input, Input::Wake) && self.is_left_behind();
        self.pending.claim.again = if for_clock { self.again() } else { None };
        let input = match input {
            Input::Command(command) => {
                self.command(command, begun, start, due, &mut writes).await?
            }
            Input::Nothing | Input::Wake if !due.is_empty() => {
                let bound = self.bind(Resume::Nothing, due, false, start)?;
                self.store_command(&[], None, bound).await?;
                commanded = true;
                Input::Nothing
            }
            other => other,
        };
        // Where a command leads on a thread that has not begun is taken in with its update.
        let beside = if begun { Vec::new() } else { std::mem::take(&mut writes) };
        if !writes.is_empty() {
            let mut tasks = vec![self.input_writes(writes)];
            let before = self.head.updated.take();
            apply(&self.setting.layout, &mut self.head, &mut tasks, false)
                .map_err(|error| apply_error(&error, &[], self.position.step()))?;
            // What was to run before the command is still to run.
            self.head.updated = before.map(|mut updated| {
                updated.extend(self.head.updated.take().unwrap_or_default());
                updated
            });
        }
        if takes_up {
            if !commanded && !plan(&self.setting.layout, &self.head).is_empty() {
                self.claim(Vec::new()).await?;
            }
            self.carry_answers();
            if !answers {
                self.carry_unbound_answer(start).await?;
            }
        }
        if resuming {
            self.head.seen_interrupt = Some(self.head.versions.clone().into());
            self.head.news.interrupt = true;
            if start.branches {
                self.fork().await?;
            }
            self.setting.emitter.values(&self.head, Vec::new());
        } else if let Input::Value(value) = input {
            self.accept(value, beside).await?;
        } else if told.is_none() {
            return Err(RunError::EmptyInput(if begun {
                "there was no input".to_owned()
            } else {
                "there was no input, and the thread has not begun; give the run an input".to_owned()
            }));
        }
        self.asked.resume(if self.is_nested() { told } else { Some(resuming) });
        Ok(())
    }

    /// Whether what a nested graph has stored is of an earlier call.
    ///
    /// A change from outside leaves the graphs inside where they are, though their checkpoints name the one before it.
    fn is_from_another_call(&self) -> bool {
        let (Some(caller), Some(metadata)) = (&self.caller, self.position.metadata()) else {
            return false;
        };
        // Either engine may name more places around a graph than the other: where it was called from, or how the run got
        // there. Those that both name tell.
        let named = |(ns, id): (&String, &CheckpointId)| {
            metadata.parents.get(ns).is_some_and(|parent| parent != id)
        };
        self.setting.run.replay().is_none()
            && self.setting.around.iter().any(named)
            && (!caller.touched || plan(&self.setting.layout, &self.head).is_empty())
    }

    /// Writes of earlier commands that no superstep has taken up yet.
    fn stored_commands(&self) -> Result<Vec<Write>, RunError> {
        Ok(slots::decode_writes(&self.setting.layout, &self.pending.commands)?)
    }

    /// Begins a branch at the checkpoint that was addressed.
    async fn fork(&mut self) -> Result<(), RunError> {
        // Writes stored beside the old checkpoint belong to the other branch.
        self.force_dropped_deltas();
        self.recorder.forced.extend(0..self.setting.layout.channels.len());
        self.pending.forget_tasks();
        // As after any change from outside, every node is looked at when the fork is loaded; this run plans as the
        // checkpoint says.
        let updated = self.head.updated.take();
        self.save(Source::Fork).await?;
        self.head.updated = updated;
        Ok(())
    }

    /// Takes new input: what was planned is dropped, and the first node gets it.
    async fn accept(&mut self, value: StartValue, mut beside: Vec<Write>) -> Result<(), RunError> {
        let mut tasks = vec![];
        let start =
            self.setting.layout.controls.iter().position(|c| matches!(c.kind, ControlKind::Start));
        if let Some(control) = start {
            beside.insert(0, Write::Start(control, Arc::new(value)));
            tasks.push(self.input_writes(beside));
        }
        tasks.extend(self.discarded());
        apply(&self.setting.layout, &mut self.head, &mut tasks, false)
            .map_err(|error| apply_error(&error, &[], self.position.step()))?;
        self.force_dropped_deltas();
        self.pending.clear();
        self.recorder.drop_unknown_triggers(&self.setting.layout);
        match self.advance(Source::Input) {
            true if self.only_takes_input() => self.hold(),
            true => self.put().await,
            false => Ok(()),
        }
    }

    /// Whether in the next superstep only the hidden node runs that takes the input, and no stream shows its checkpoint.
    fn only_takes_input(&self) -> bool {
        let mut unseen = !self.setting.emitter.wants_checkpoints();
        let nodes = &self.setting.layout.nodes;
        plan_each(&self.setting.layout, &self.head, |next| unseen &= nodes[next.node].hidden);
        unseen
    }
}
