use super::*;

/// The same checkpointer without its own walk.
struct Plain(MemorySaver);

impl Checkpointer for Plain {
    async fn put(&self, put: Put) -> Result<(), Error> {
        self.0.put(put).await
    }

    async fn put_writes(
        &self,
        thread: &str,
        ns: &str,
        checkpoint: CheckpointId,
        writes: Vec<TaskWrites>,
    ) -> Result<(), Error> {
        self.0.put_writes(thread, ns, checkpoint, writes).await
    }

    async fn get(
        &self,
        thread: &str,
        ns: &str,
        id: Option<CheckpointId>,
    ) -> Result<Option<Stored>, Error> {
        self.0.get(thread, ns, id).await
    }

    async fn list(&self, query: Query) -> Result<Vec<Stored>, Error> {
        self.0.list(query).await
    }

    async fn delete_thread(&self, thread: &str) -> Result<(), Error> {
        self.0.delete_thread(thread).await
    }
}

#[tokio::test]
async fn the_history_of_a_channel_goes_back_to_its_last_whole_value() {
    let checkpointer = MemorySaver::new();
    let mut writer = Writer::new(&checkpointer, THREAD, "");
    let mut head = None;
    for step in 0..4 {
        let mut put = writer.next();
        put.checkpoint.channel_values = crate::SharedMap::new_sync();
        if step == 1 {
            put.checkpoint.channel_values.insert_mut("seeded".into(), blob("whole"));
        }
        let id = writer.store(put).await;
        let both = writes(1, "p", &[("seeded", step), ("bare", step), ("seeded", step + 10)]);
        checkpointer.put_writes(THREAD, "", id, both).await.expect("stored");
        head = Some(id);
    }
    let head = head.expect("a head");
    let channels: Vec<Arc<str>> = ["seeded", "bare", "none"].map(Into::into).into();
    let history = checkpointer.delta_history(THREAD, "", head, &channels).await.expect("a history");
    let numbers = |numbers: &[i64]| numbers.iter().map(|number| blob(*number)).collect();
    let expected = BTreeMap::from([
        ("none".into(), DeltaHistory::default()),
        ("bare".into(), DeltaHistory { writes: numbers(&[0, 1, 2]), ..DeltaHistory::default() }),
        (
            "seeded".into(),
            DeltaHistory {
                seed: Some(blob("whole")),
                writes: numbers(&[1, 11, 2, 12]),
                ..DeltaHistory::default()
            },
        ),
    ]);
    assert_eq!(history, expected);
    let plain = Plain(checkpointer.clone());
    assert_eq!(
        plain.delta_history(THREAD, "", head, &channels).await.expect("a history"),
        expected
    );
    let nowhere = checkpointer.delta_history("u", "", head, &[]).await.expect("a history");
    assert!(nowhere.is_empty());
}

#[tokio::test]
async fn a_checkpoint_that_is_its_own_parent_does_not_stop_the_walk_from_ending() {
    let checkpointer = MemorySaver::new();
    let mut writer = Writer::new(&checkpointer, THREAD, "");
    let mut put = writer.next();
    let id = put.checkpoint.id;
    put.parent = Some(id);
    writer.store(put).await;
    let history =
        checkpointer.delta_history(THREAD, "", id, &["bare".into()]).await.expect("a history");
    assert_eq!(history["bare"], DeltaHistory::default());
}
