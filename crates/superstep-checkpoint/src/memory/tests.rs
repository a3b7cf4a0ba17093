mod history;
mod maintain;

use super::*;
use crate::{AnyCheckpointer, IdClock, Source, Value, Version};

const THREAD: &str = "t";

/// A thread in the making: each call stores one more checkpoint on top of the last.
struct Writer {
    checkpointer: MemorySaver,
    clock: IdClock,
    ns: &'static str,
    thread: &'static str,
    head: Option<CheckpointId>,
    step: i64,
}

impl Writer {
    fn new(checkpointer: &MemorySaver, thread: &'static str, ns: &'static str) -> Self {
        let checkpointer = checkpointer.clone();
        Self { checkpointer, clock: IdClock::new(), ns, thread, head: None, step: -1 }
    }

    /// What this writer would store next.
    fn next(&mut self) -> Put {
        let source = if self.step < 0 { Source::Input } else { Source::Loop };
        let id = self.clock.next(self.step, self.head);
        let put = Put {
            thread: self.thread.into(),
            ns: self.ns.into(),
            parent: self.head,
            head: self.head,
            writes: Vec::new(),
            checkpoint: Checkpoint {
                v: Checkpoint::FORMAT,
                id,
                ts: "2026-01-02T03:04:05+00:00".into(),
                channel_values: std::iter::once(("step".into(), blob(self.step))).collect(),
                channel_versions: std::iter::once(("step".into(), Version::after(0, 0))).collect(),
                versions_seen: crate::SharedMap::new_sync(),
                updated_channels: None,
            },
            metadata: Metadata::new(source, self.step),
            changed: vec!["step".into()],
        };
        self.step += 1;
        put
    }

    async fn put(&mut self) -> CheckpointId {
        let put = self.next();
        self.store(put).await
    }

    async fn store(&mut self, put: Put) -> CheckpointId {
        let id = put.checkpoint.id;
        self.checkpointer.put(put).await.expect("stored");
        self.head = Some(id);
        id
    }
}

fn blob(value: impl Into<Value>) -> Blob {
    Blob::from_value(&value.into()).expect("a blob")
}

fn task(number: u8) -> TaskId {
    TaskId::from_bytes([number; 16])
}

fn writes(number: u8, path: &str, writes: &[(&str, i64)]) -> Vec<TaskWrites> {
    let writes = writes.iter().map(|(channel, value)| ((*channel).into(), blob(*value))).collect();
    vec![TaskWrites::new(task(number), path, writes)]
}

/// The writes with a checkpoint, as text.
async fn written(checkpointer: &MemorySaver, id: CheckpointId) -> Vec<String> {
    let stored = checkpointer.get(THREAD, "", Some(id)).await.expect("read").expect("a checkpoint");
    let show = |write: &PendingWrite| {
        let value = write.value.to_value().expect("a value");
        let task = write.task.as_bytes()[0];
        format!("{} {task} {} {}={value}", write.path, write.index, write.channel)
    };
    stored.writes.iter().map(show).collect()
}

#[tokio::test]
async fn the_head_is_the_greatest_id_and_every_checkpoint_stays() {
    let checkpointer = MemorySaver::new();
    let mut writer = Writer::new(&checkpointer, THREAD, "");
    let ids = [writer.put().await, writer.put().await, writer.put().await];
    let any = AnyCheckpointer::new(checkpointer.clone());
    let head = any.get(THREAD, "", None).await.expect("read").expect("a checkpoint");
    assert_eq!((head.checkpoint.id, head.parent), (ids[2], Some(ids[1])));
    assert_eq!(head.checkpoint.value("step"), Some(&blob(1)));
    let first = any.get(THREAD, "", Some(ids[0])).await.expect("read").expect("a checkpoint");
    assert_eq!((first.parent, first.metadata.step), (None, -1));
    for (thread, ns, id) in
        [("other", "", None), (THREAD, "other", None), ("other", "", Some(ids[0]))]
    {
        assert!(any.get(thread, ns, id).await.expect("read").is_none(), "{thread} {ns} {id:?}");
    }
}

#[tokio::test]
async fn a_second_writer_gets_a_conflict_and_changes_nothing() {
    let checkpointer = MemorySaver::new();
    let mut first = Writer::new(&checkpointer, THREAD, "");
    let old = first.put().await;
    let mut second = Writer { head: Some(old), step: 0, ..Writer::new(&checkpointer, THREAD, "") };
    let new = first.put().await;

    let mut late = second.next();
    late.writes = writes(1, "p", &[("a", 1)]);
    let error = checkpointer.put(late).await.expect_err("a conflict");
    let Error::Conflict { expected, found, .. } = error else { panic!("{error}") };
    assert_eq!((expected, found), (Some(old), Some(new)));
    assert!(written(&checkpointer, old).await.is_empty());
    assert_eq!(checkpointer.list(Query::default()).await.expect("a list").len(), 2);

    let mut stranger = Writer::new(&checkpointer, THREAD, "").next();
    stranger.head = None;
    assert!(matches!(checkpointer.put(stranger).await, Err(Error::Conflict { .. })));
    let mut early = Writer::new(&checkpointer, "empty", "").next();
    early.head = Some(old);
    assert!(matches!(checkpointer.put(early).await, Err(Error::Conflict { found: None, .. })));
}

// A branch from an older checkpoint names that one as its parent and still has to know the head.
#[tokio::test]
async fn a_branch_is_no_conflict() {
    let checkpointer = MemorySaver::new();
    let mut writer = Writer::new(&checkpointer, THREAD, "");
    let root = writer.put().await;
    writer.put().await;
    let mut branch = writer.next();
    branch.parent = Some(root);
    let id = writer.store(branch).await;
    let head = checkpointer.get(THREAD, "", None).await.expect("read").expect("a checkpoint");
    assert_eq!((head.checkpoint.id, head.parent), (id, Some(root)));
}

#[tokio::test]
async fn a_checkpoint_put_again_is_replaced_and_keeps_its_writes() {
    let checkpointer = MemorySaver::new();
    let mut writer = Writer::new(&checkpointer, THREAD, "");
    let put = writer.next();
    let id = writer.store(put.clone()).await;
    checkpointer.put_writes(THREAD, "", id, writes(1, "p", &[("a", 1)])).await.expect("stored");
    writer.put().await;
    let mut again = put;
    again.checkpoint.ts = "later".into();
    checkpointer.put(again).await.expect("stored, though the head moved on");
    let stored = checkpointer.get(THREAD, "", Some(id)).await.expect("read").expect("a checkpoint");
    assert_eq!((stored.checkpoint.ts.as_str(), stored.writes.len()), ("later", 1));
}

#[tokio::test]
async fn a_checkpoint_and_its_writes_are_stored_together_or_not_at_all() {
    let checkpointer = MemorySaver::new();
    let mut writer = Writer::new(&checkpointer, THREAD, "");
    let parent = writer.put().await;
    let mut put = writer.next();
    put.writes = writes(1, "p", &[("a", 1)]);

    let mut lost = put.clone();
    lost.parent = Some(CheckpointId::from_bytes([9; 16]));
    assert!(matches!(checkpointer.put(lost).await, Err(Error::Unknown { .. })));
    let mut orphan = put.clone();
    orphan.parent = None;
    assert!(matches!(checkpointer.put(orphan).await, Err(Error::Invalid(_))));
    assert_eq!(checkpointer.list(Query::default()).await.expect("a list").len(), 1);

    writer.store(put).await;
    assert_eq!(written(&checkpointer, parent).await, ["p 1 0 a=1"]);

    let nowhere = CheckpointId::from_bytes([9; 16]);
    let error = checkpointer.put_writes(THREAD, "", nowhere, writes(1, "p", &[("a", 1)])).await;
    assert!(matches!(error, Err(Error::Unknown { id, .. }) if id == nowhere));
}

#[tokio::test]
async fn slots_are_filled_once_and_reserved_ones_replaced() {
    let checkpointer = MemorySaver::new();
    let id = Writer::new(&checkpointer, THREAD, "").put().await;
    for call in [
        writes(1, "p", &[("a", 1), ("b", 1)]),
        writes(1, "p", &[("a", 2), ("x", 2), ("c", 2)]),
        writes(1, "p", &[("__interrupt__", 1)]),
        writes(1, "p", &[("d", 3), ("__interrupt__", 2), ("__error__", 3)]),
    ] {
        checkpointer.put_writes(THREAD, "", id, call).await.expect("stored");
    }
    let expected =
        ["p 1 -3 __interrupt__=2", "p 1 -1 __error__=3", "p 1 0 a=1", "p 1 1 b=1", "p 1 2 c=2"];
    assert_eq!(written(&checkpointer, id).await, expected);
}

#[tokio::test]
async fn writes_come_back_by_path_then_task_then_slot() {
    let checkpointer = MemorySaver::new();
    let id = Writer::new(&checkpointer, THREAD, "").put().await;
    let calls = [(3, "b", "x"), (1, "b", "x"), (2, "a", "x"), (2, "a", "__resume__")];
    for (number, path, channel) in calls {
        let call = writes(number, path, &[(channel, 0)]);
        checkpointer.put_writes(THREAD, "", id, call).await.expect("stored");
    }
    let expected = ["a 2 -4 __resume__=0", "a 2 0 x=0", "b 1 0 x=0", "b 3 0 x=0"];
    assert_eq!(written(&checkpointer, id).await, expected);
}

#[tokio::test]
async fn list_gives_what_matches_newest_first() {
    let checkpointer = MemorySaver::new();
    let mut root = Writer::new(&checkpointer, THREAD, "");
    let mut nested = Writer { ns: "n:1", ..Writer::new(&checkpointer, THREAD, "") };
    let mut other = Writer::new(&checkpointer, "u", "");
    let (a, b) = (root.put().await, root.put().await);
    let mut tagged = root.next();
    tagged.metadata.extra.insert("user".into(), "ann".into());
    let c = root.store(tagged).await;
    let (d, e) = (nested.put().await, other.put().await);
    // One id in two places, to see ties broken by thread and namespace.
    let mut twin = Writer::new(&checkpointer, "s", "").next();
    twin.checkpoint.id = e;
    checkpointer.put(twin).await.expect("stored");

    let all = Query::default();
    let thread = || Query { thread: Some(THREAD.into()), ..Query::default() };
    let filter =
        |key: &str, value: Value| Query { filter: [(key.into(), value)].into(), ..thread() };
    let mut newest = [a, b, c, d, e, e];
    newest.sort_by_key(|id| Reverse(*id));
    let mut of_thread = [a, b, c, d];
    of_thread.sort_by_key(|id| Reverse(*id));
    let both = Query {
        filter: [("step".into(), 1.into()), ("user".into(), "bob".into())].into(),
        ..thread()
    };
    let cases = [
        (all.clone(), newest.to_vec()),
        (Query { limit: Some(2), ..all }, newest[..2].to_vec()),
        (thread(), of_thread.to_vec()),
        (Query { ns: Some("".into()), ..thread() }, vec![c, b, a]),
        (Query { ns: Some("n:1".into()), ..thread() }, vec![d]),
        (Query { id: Some(b), ..thread() }, vec![b]),
        (Query { ns: Some("".into()), before: Some(c), ..thread() }, vec![b, a]),
        (Query { before: Some(c), limit: Some(1), ns: Some("".into()), ..thread() }, vec![b]),
        (Query { limit: Some(0), ..thread() }, vec![]),
        (filter("user", "ann".into()), vec![c]),
        (filter("step", 0.into()), vec![b]),
        (filter("step", 0.0.into()), vec![]),
        (filter("source", "loop".into()), vec![c, b]),
        (filter("parents", Value::Null), vec![]),
        (both, vec![]),
    ];
    for (query, expected) in cases {
        let found = checkpointer.list(query.clone()).await.expect("a list");
        let ids: Vec<_> = found.iter().map(|stored| stored.checkpoint.id).collect();
        assert_eq!(ids, expected, "{query:?}");
    }
    let twins = checkpointer.list(Query { id: Some(e), ..Query::default() }).await.expect("a list");
    assert_eq!(twins.iter().map(|stored| &*stored.thread).collect::<Vec<_>>(), ["s", "u"]);
}

#[tokio::test]
async fn a_deleted_thread_is_gone_with_all_its_namespaces() {
    let checkpointer = MemorySaver::new();
    for (thread, ns) in [(THREAD, ""), (THREAD, "n:1"), ("u", "")] {
        Writer::new(&checkpointer, thread, ns).put().await;
    }
    checkpointer.delete_thread(THREAD).await.expect("deleted");
    checkpointer.delete_thread("unknown").await.expect("nothing to delete");
    let left = checkpointer.list(Query::default()).await.expect("a list");
    assert_eq!(left.iter().map(|stored| &*stored.thread).collect::<Vec<_>>(), ["u"]);
}

// A thread of a program that panics while it holds the lock must not take the checkpointer with it.
#[tokio::test]
async fn a_panic_elsewhere_leaves_the_checkpointer_usable() {
    let checkpointer = MemorySaver::new();
    let id = Writer::new(&checkpointer, THREAD, "").put().await;
    let holder = checkpointer.clone();
    let panicked = std::thread::spawn(move || {
        let _held = holder.lock();
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    let head = checkpointer.get(THREAD, "", None).await.expect("read").expect("a checkpoint");
    assert_eq!(head.checkpoint.id, id);
}
