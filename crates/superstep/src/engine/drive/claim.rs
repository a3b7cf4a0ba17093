//! The claim on a thread: which run has taken it, and the answers that are stored there, by this run or without the graph.

use superstep_checkpoint::{
    Alarm, Blob, Error, Ext, Interrupt, InterruptId, Map, Stored, TaskId, TaskWrites, Value,
};

use crate::engine::drive::control::Durability;
use crate::engine::drive::driver::Driver;
use crate::engine::kernel::layout::TASKS;
use crate::engine::step::superstep::lock;
use crate::engine::stored::ids;
use crate::engine::stored::pending::{Claim, Pending};
use crate::engine::stored::record::RESUME;
use crate::error::RunError;

impl Driver {
    /// Takes the thread for this run, and stores what the run was told in the same step.
    ///
    /// Another run that read the thread at the same time finds that it was taken, and runs nothing.
    pub(in crate::engine) async fn claim(
        &mut self,
        mut writes: Vec<TaskWrites>,
    ) -> Result<(), RunError> {
        let claim = &mut self.pending.claim;
        let known = claim.stored.take();
        claim.run = Some(uuid::Uuid::new_v4().to_string());
        claim.left.clear();
        let blob = claim_of(claim)?;
        let writer = TaskWrites::new(TaskId::CLAIM, "", vec![(RESUME.into(), blob.clone())]);
        writes.push(writer.expecting(RESUME, known));
        claim.stored = Some(blob);
        self.put_writes(writes).await?;
        self.outbox.took_thread();
        Ok(())
    }

    /// Stores the last writes of a superstep that stops, if this run still has the thread.
    ///
    /// Another process may have taken the thread meanwhile, and answered what this run is about to report as open. An answer
    /// may also have been stored without running anything; then this run still has the thread.
    pub(in crate::engine) async fn put_last_writes(
        &mut self,
        writes: Vec<TaskWrites>,
    ) -> Result<(), RunError> {
        let (Some(checkpointer), Some(thread), false) =
            (self.setting.checkpointer.clone(), self.setting.run.thread.clone(), self.is_nested())
        else {
            return Ok(self.put_writes(writes).await?);
        };
        let drained = self.setting.run.control.drain_reason().is_some();
        loop {
            let claim = &mut self.pending.claim;
            let known = claim.stored.clone();
            let mut claimed = TaskWrites::new(TaskId::CLAIM, "", Vec::new());
            if !claim.left.is_empty() || claim.again.is_some() && !drained {
                // This run takes them now, so that no answer is replaced that a task may have seen. And what the clock has
                // answered has come to its end.
                claim.left.clear();
                claim.again = claim.again.filter(|_| drained);
                let blob = claim_of(claim)?;
                claimed.writes.push((RESUME.into(), blob.clone()));
                claim.stored = Some(blob);
            }
            let mut writes = writes.clone();
            writes.push(claimed.expecting(RESUME, known));
            let overtaken = match self.put_writes(writes).await {
                Err(error @ Error::Overtaken { .. }) => error,
                stored => return Ok(stored?),
            };
            let head = checkpointer.get(&thread, "", None).await?;
            let Some(head) = head.filter(|head| head.checkpoint.id == self.position.id()) else {
                return Err(overtaken.into());
            };
            let now = Pending::from_stored(&head.writes)?.claim;
            if now.run != self.pending.claim.run || now.stored == self.pending.claim.stored {
                return Err(overtaken.into());
            }
            self.pending.claim = now;
            self.pending.answered_meanwhile = true;
        }
    }

    /// Goes on with answers that were left while the superstep ran, if there are any. Returns whether there are.
    pub(in crate::engine) async fn take_up_answers(&mut self) -> Result<bool, RunError> {
        let left = std::mem::take(&mut self.pending.answered_meanwhile);
        let (Some(checkpointer), Some(thread)) =
            (&self.setting.checkpointer, &self.setting.run.thread)
        else {
            return Ok(false);
        };
        if !left || self.setting.run.durability == Durability::Exit {
            return Ok(false);
        }
        let Some(stored) =
            checkpointer.get(thread, &self.setting.ns, Some(self.position.id())).await?
        else {
            return Ok(false);
        };
        self.pending = Pending::from_stored(&stored.writes)?;
        self.asked.resume(Some(true));
        self.asked.replay(false);
        self.head.seen_interrupt = Some(self.head.versions.clone().into());
        self.head.news.interrupt = true;
        self.carry_answers();
        self.share_due();
        Ok(true)
    }

    /// Keeps answers under the ids that their questions have here.
    pub(in crate::engine) async fn rename_answers(&mut self) -> Result<(), RunError> {
        if self.is_nested() {
            return Ok(());
        }
        let renamed = std::mem::take(&mut *lock(&self.setting.run.renamed));
        if renamed.is_empty() {
            return Ok(());
        }
        for (before, now) in renamed {
            if let Some(answer) = self.pending.claim.answers.swap_remove(before.as_str()) {
                self.pending.claim.answers.insert(now.to_string(), answer);
            }
        }
        self.claim(Vec::new()).await
    }

    /// Forgets answers to questions that are asked again, because the answers did not fit.
    pub(in crate::engine) async fn disclaim(
        &mut self,
        asked: &[Interrupt],
    ) -> Result<(), RunError> {
        let claim = &mut self.pending.claim;
        let before = claim.answers.len();
        claim.answers.retain(|id, _| !asked.iter().any(|question| question.id.as_str() == id));
        let mut writes = Vec::new();
        if self.pending.unbound_answer.take().is_some() {
            // In LangGraph, too, a null is no answer.
            let nothing = vec![(RESUME.into(), Blob::null())];
            writes.push(TaskWrites::new(TaskId::NULL, "", nothing));
        }
        if self.pending.claim.answers.len() < before || !writes.is_empty() {
            self.claim(writes).await?;
        }
        Ok(())
    }
}

/// What says that a run has taken the thread, and what was answered. No two runs say the same.
fn claim_of(claim: &Claim) -> Result<Blob, superstep_checkpoint::Error> {
    let mut fields = Map::new();
    if let Some(run) = &claim.run {
        fields.insert("run".into(), Value::from(run.as_str()));
    }
    fields.insert("answers".into(), Value::Map(claim.answers.clone()));
    if !claim.left.is_empty() {
        let left = claim.left.iter().map(|id| Value::from(id.as_str())).collect();
        fields.insert("left".into(), Value::List(left));
    }
    if let Some(again) = claim.again {
        fields.insert("again".into(), Alarm::path(again).into());
    }
    Blob::from_value(&Value::Map(fields))
}

/// The open superstep of a thread, seen without its graph.
pub(crate) struct OpenThread<'a> {
    pending: Pending,
    head: &'a Stored,
    /// What was dispatched to nodes of this superstep.
    packets: Option<Value>,
}

/// A task of the outermost graph that asks a question itself.
pub(crate) struct OwnAnswers {
    pub(crate) task: TaskId,
    pub(crate) path: String,
    /// The answers it has, and how they are stored.
    pub(crate) answers: Vec<Value>,
    pub(crate) stored: Option<Blob>,
}

impl<'a> OpenThread<'a> {
    pub(crate) fn new(head: &'a Stored) -> Result<Self, superstep_checkpoint::Error> {
        let packets = head.checkpoint.value(TASKS).map(Blob::to_value).transpose()?;
        Ok(Self { pending: Pending::from_stored(&head.writes)?, head, packets })
    }

    /// The task whose own question this is; nothing if it was asked by a graph or a call inside one, or if that cannot be told.
    pub(crate) fn own(&self, id: &InterruptId) -> Option<OwnAnswers> {
        let (task, record) = self.pending.asking(id).find(|(task, record)| {
            let ns = self.namespace(*task, &record.path);
            ns.is_some_and(|ns| ids::interrupt_id(&ns, record.answers().len()) == *id)
        })?;
        let mut writes = self.head.writes.iter();
        let stored = writes.find(|write| write.task == task && &*write.channel == RESUME);
        Some(OwnAnswers {
            task,
            path: record.path.clone(),
            answers: record.answers().to_vec(),
            stored: stored.map(|write| write.value.clone()),
        })
    }

    /// Whether an answer to this question was left, and no run has taken the thread since.
    pub(crate) fn is_left(&self, id: &InterruptId) -> bool {
        self.pending.claim.left.iter().any(|left| left == id.as_str())
    }

    /// The claim on the thread, with one more answer. A run that takes up the thread at the same time finds it changed. A run
    /// that already has the thread keeps it, and finds the answer when its superstep stops.
    pub(crate) fn claim_with(
        &self,
        id: &InterruptId,
        answer: &Value,
    ) -> Result<TaskWrites, superstep_checkpoint::Error> {
        let mut claim = self.pending.claim.clone();
        claim.answers.insert(id.to_string(), answer.clone());
        if !self.is_left(id) {
            claim.left.push(id.to_string());
        }
        let claimed = claim_of(&claim)?;
        let writer = TaskWrites::new(TaskId::CLAIM, "", vec![(RESUME.into(), claimed)]);
        Ok(writer.expecting(RESUME, claim.stored.clone()))
    }

    /// The namespace of a triggered task. The name of a dispatched node does not stand in its path.
    fn namespace(&self, task: TaskId, path: &str) -> Option<String> {
        let node = match ids::pulled(path) {
            Some(node) => node.to_owned(),
            None => self.dispatched(ids::pushed(path)?)?,
        };
        Some(ids::task_ns(&ids::place("", &node), task))
    }

    fn dispatched(&self, nth: usize) -> Option<String> {
        match self.packets.as_ref()?.as_list()?.get(nth)? {
            Value::Ext(ext) => match &**ext {
                Ext::Send(packet) => Some(packet.node.clone()),
                _ => None,
            },
            _ => None,
        }
    }
}
