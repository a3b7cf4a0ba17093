//! Cases that cannot fail promise nothing. Each checkpointer here breaks one promise, and a case that is about it says so.

use std::sync::Arc;

use superstep_checkpoint::{
    AnyCheckpointer, Blob, CheckpointId, Checkpointer, Error, MemorySaver, Put, Query, Stored,
    TaskWrites, reserved_index,
};
use superstep_contract::checkpointers::{self, Subject};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    TakesAnyHead,
    TakesAnyAnswer,
    OrdersByTask,
    FillsSlotsAgain,
    LosesWritesOfPut,
    KeepsWritesOfConflicts,
    GoesOnAfterRefusal,
    RecodesValues,
    ListsOldestFirst,
    IgnoresFilters,
    SharesNamespaces,
    KeepsDeleted,
    OvertakesItself,
}

struct Broken(MemorySaver, Fault);

impl Broken {
    fn spoil(&self, stored: &mut Stored) {
        match self.1 {
            Fault::OrdersByTask => stored.writes.sort_by_key(|write| write.task),
            Fault::RecodesValues => {
                let values = stored.checkpoint.channel_values.clone();
                for (name, blob) in &values {
                    let recoded = blob.to_value().map(serde_json::Value::from);
                    let text = recoded.map(|json| json.to_string()).unwrap_or_default();
                    let again = Blob::new("json".into(), text.into_bytes());
                    let again = again.to_value().and_then(|value| Blob::from_value(&value));
                    stored
                        .checkpoint
                        .channel_values
                        .insert_mut(name.clone(), again.unwrap_or_default());
                }
            }
            _ => {}
        }
    }

    fn ns(&self, ns: &str) -> Arc<str> {
        if self.1 == Fault::SharesNamespaces { "".into() } else { ns.into() }
    }
}

impl Checkpointer for Broken {
    async fn put(&self, mut put: Put) -> Result<(), Error> {
        put.ns = self.ns(&put.ns);
        let head = self.0.get(&put.thread, &put.ns, None).await?;
        let head = head.map(|head| head.checkpoint.id);
        match self.1 {
            Fault::TakesAnyHead => put.head = head,
            Fault::LosesWritesOfPut => put.writes.clear(),
            Fault::KeepsWritesOfConflicts if head != put.head => {
                if let Some(parent) = put.parent {
                    let writes = put.writes.clone();
                    self.0.put_writes(&put.thread, &put.ns, parent, writes).await?;
                }
            }
            Fault::TakesAnyAnswer => put.writes.iter_mut().for_each(|task| task.expected = None),
            Fault::OvertakesItself if put.metadata.step % 2 == 0 => tokio::task::yield_now().await,
            _ => {}
        }
        self.0.put(put).await
    }

    fn in_order(&self) -> bool {
        self.1 == Fault::OvertakesItself
    }

    async fn put_all(&self, puts: Vec<Put>) -> Result<(), Error> {
        let mut result = Ok(());
        for put in puts {
            match self.put(put).await {
                Err(error) if self.1 == Fault::GoesOnAfterRefusal => result = Err(error),
                done => done?,
            }
        }
        result
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        mut writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        let plain = |(channel, _): &(Arc<str>, Blob)| reserved_index(channel).is_none();
        for task in &mut writes {
            if self.1 == Fault::TakesAnyAnswer {
                task.expected = None;
            }
            if self.1 == Fault::FillsSlotsAgain && task.writes.iter().all(plain) {
                task.replaces = true;
            }
        }
        self.0.put_writes(thread, &self.ns(ns), checkpoint, writes).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        let mut stored = self.0.get(thread, &self.ns(ns), id).await?;
        stored.iter_mut().for_each(|stored| self.spoil(stored));
        Ok(stored)
    }

    async fn list(&self, mut query: Query) -> Result<Vec<Stored>, Error> {
        if self.1 == Fault::IgnoresFilters {
            query.filter.clear();
        }
        let mut stored = self.0.list(query).await?;
        if self.1 == Fault::ListsOldestFirst {
            stored.reverse();
        }
        Ok(stored)
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        if self.1 == Fault::KeepsDeleted { Ok(()) } else { self.0.delete_thread(thread).await }
    }
}

async fn failures(fault: Fault) -> Vec<&'static str> {
    let report = checkpointers::run(|| async {
        let checkpointer = AnyCheckpointer::new(Broken(MemorySaver::new(), fault));
        Subject { checkpointer: checkpointer.clone(), other: checkpointer }
    })
    .await;
    report.failures().map(|(name, _)| name).collect()
}

#[tokio::test]
async fn broken_checkpointers_are_found_out() {
    for (fault, case) in [
        (Fault::TakesAnyHead, "writers::a_second_writer_gets_a_conflict"),
        (Fault::TakesAnyAnswer, "writers::of_two_answers_one_is_kept"),
        (Fault::OrdersByTask, "writes::writes_are_ordered_by_path_then_task_then_slot"),
        (Fault::FillsSlotsAgain, "writes::a_filled_slot_keeps_its_first_value"),
        (Fault::LosesWritesOfPut, "writers::writes_come_with_their_checkpoint_or_not_at_all"),
        (Fault::KeepsWritesOfConflicts, "writers::a_conflict_stores_no_writes"),
        (Fault::GoesOnAfterRefusal, "writers::several_are_stored_together_or_not_at_all"),
        (Fault::RecodesValues, "put::values_come_back_with_their_tag_and_bytes"),
        (Fault::ListsOldestFirst, "list::newest_first"),
        (Fault::IgnoresFilters, "list::by_metadata"),
        (Fault::SharesNamespaces, "put::threads_and_namespaces_are_apart"),
        (Fault::KeepsDeleted, "maintain::a_deleted_thread_is_gone_with_everything"),
        (Fault::OvertakesItself, "writers::an_ordered_checkpointer_takes_operations_ahead"),
    ] {
        let failed = failures(fault).await;
        assert!(failed.contains(&case), "{fault:?}: {failed:?}");
    }
}

/// What a checkpointer does not have is not held against it, and is not counted as passed.
#[tokio::test]
async fn what_is_not_supported_is_told_apart() {
    let report = checkpointers::run(|| async {
        let checkpointer = AnyCheckpointer::new(Broken(MemorySaver::new(), Fault::OrdersByTask));
        Subject { checkpointer: checkpointer.clone(), other: checkpointer }
    })
    .await;
    let text = report.to_string();
    assert!(text.contains("not supported: maintain::a_copy_of_nothing_is_nothing"), "{text}");
    assert!(text.contains("FAILED: writes::"), "{text}");
}
