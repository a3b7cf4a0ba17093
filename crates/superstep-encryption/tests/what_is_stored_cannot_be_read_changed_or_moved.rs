//! Encrypted checkpointers keep every promise of a checkpointer, and nothing that can be read, changed or moved.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use superstep_checkpoint::{
    AnyCheckpointer, Blob, Checkpoint, CheckpointId, Checkpointer, Error, IdClock, MemorySaver,
    Metadata, Put, Query, SharedMap, Source, TaskId, TaskWrites, Version,
};
use superstep_contract::checkpointers::{self, Subject};
use superstep_encryption::{Encrypted, Keys};
use superstep_postgres::PostgresSaver;
use superstep_sqlite::SqliteSaver;
use tokio_postgres::NoTls;

const SECRET: &str = "the secret of the channel";

fn keys() -> Keys {
    Keys::new("one", &[1; 32]).expect("keys")
}

struct File(PathBuf);

impl File {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let nth = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("superstep-encryption-{}-{nth}.db", std::process::id());
        Self(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    fn parts(&self) -> [PathBuf; 3] {
        ["", "-wal", "-shm"].map(|end| PathBuf::from(format!("{}{end}", self.0.display())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.parts().iter().for_each(|part| drop(std::fs::remove_file(part)));
    }
}

/// A schema of its own on the server of the tests; its URL and its name.
async fn schema() -> (String, String) {
    let url = superstep_testdb::server_url();
    let name = format!("encryption_{}", uuid::Uuid::new_v4().simple());
    client(&url).await.batch_execute(&format!("CREATE SCHEMA {name}")).await.expect("a schema");
    let mark = if url.contains('?') { '&' } else { '?' };
    (format!("{url}{mark}options=-csearch_path%3D{name}"), name)
}

async fn client(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("a server");
    tokio::spawn(connection);
    client
}

async fn drop_schema(name: &str) {
    let client = client(&superstep_testdb::server_url()).await;
    client.batch_execute(&format!("DROP SCHEMA {name} CASCADE")).await.expect("dropped");
}

fn subject<C: Checkpointer>(checkpointer: C, other: C) -> Subject {
    Subject {
        checkpointer: AnyCheckpointer::new(Encrypted::new(checkpointer, keys())),
        other: AnyCheckpointer::new(Encrypted::new(other, keys())),
    }
}

#[tokio::test]
async fn every_promise_is_kept_in_memory() {
    let report = checkpointers::run(|| async {
        let checkpointer = MemorySaver::new();
        subject(checkpointer.clone(), checkpointer)
    });
    report.await.assert_passed();
}

#[tokio::test]
async fn every_promise_is_kept_in_sqlite() {
    let files = Mutex::new(Vec::new());
    let report = checkpointers::run(|| async {
        let file = File::new();
        let checkpointer = SqliteSaver::open(&file.0).await.expect("a file");
        let other = SqliteSaver::open(&file.0).await.expect("the same file");
        files.lock().expect("the list").push(file);
        subject(checkpointer, other)
    });
    report.await.assert_passed();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_promise_is_kept_in_postgresql() {
    let made = Mutex::new(Vec::new());
    let report = checkpointers::run(|| async {
        let (url, name) = schema().await;
        made.lock().expect("the list").push(name);
        let checkpointer = PostgresSaver::connect(&url).await.expect("a checkpointer");
        subject(checkpointer, PostgresSaver::connect(&url).await.expect("another"))
    });
    report.await.assert_passed();
    let made = made.into_inner().expect("the list");
    for name in made {
        drop_schema(&name).await;
    }
}

/// A checkpoint of a thread with secrets in every kind of value, and another after it.
async fn fill(checkpointer: &impl Checkpointer, thread: &str) -> [CheckpointId; 2] {
    let clock = IdClock::new();
    let mut head = None;
    let ids = [0, 1].map(|step| {
        let id = clock.next(step, head);
        head = Some(id);
        id
    });
    for (step, id) in (0..).zip(ids) {
        let version = Version::after(step as u64, id.as_uuid().as_u128() as u64);
        let blob = |value: &str| Blob::encode(value).expect("a blob");
        let values = [
            ("text", blob(SECRET)),
            ("list", Blob::encode(&[SECRET]).expect("a blob")),
            ("long", blob(&SECRET.repeat(100))),
            ("bytes", Blob::new("bytes".into(), SECRET.as_bytes())),
        ];
        let names: Vec<Arc<str>> = values.iter().map(|(name, _)| (*name).into()).collect();
        let put = Put {
            thread: thread.into(),
            ns: "".into(),
            parent: (step > 0).then_some(ids[0]),
            head: (step > 0).then_some(ids[0]),
            writes: Vec::new(),
            checkpoint: Checkpoint {
                v: Checkpoint::FORMAT,
                id,
                ts: "2026-01-02T03:04:05+00:00".into(),
                channel_values: values
                    .map(|(name, blob)| (name.into(), blob))
                    .into_iter()
                    .collect(),
                channel_versions: names.iter().map(|n| (n.clone(), version.clone())).collect(),
                versions_seen: SharedMap::new_sync(),
                updated_channels: None,
            },
            metadata: Metadata::new(Source::Loop, step),
            changed: names,
        };
        checkpointer.put(put).await.expect("stored");
        let writes = vec![("text".into(), blob(SECRET)), ("__resume__".into(), blob(SECRET))];
        let writes = TaskWrites::new(TaskId::from_bytes([7; 16]), "p", writes);
        checkpointer.put_writes(thread, "", id, vec![writes]).await.expect("stored");
    }
    ids
}

async fn reads(checkpointer: &impl Checkpointer, thread: &str) -> Result<(), Error> {
    let all = checkpointer.list(Query { thread: Some(thread.into()), ..Query::default() }).await?;
    assert_eq!(all.len(), 2);
    for stored in all {
        let text = stored.checkpoint.value("text").expect("a value");
        assert_eq!(text.decode::<String>()?, SECRET);
        assert_eq!(stored.writes.len(), 2);
        assert_eq!(stored.writes[1].value.decode::<String>()?, SECRET);
    }
    Ok(())
}

fn refused<T: std::fmt::Debug>(result: Result<T, Error>, why: &str) {
    let message = result.expect_err("refused").to_string();
    assert!(message.contains(why), "{message}");
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn an_sqlite_file_has_no_plain_text_and_nothing_in_it_can_be_moved() {
    let file = File::new();
    let inner = SqliteSaver::open(&file.0).await.expect("a file");
    let checkpointer = Encrypted::new(inner.clone(), keys());
    fill(&checkpointer, "a").await;
    fill(&checkpointer.relaxed().expect("a checkpointer that does not wait for the disk"), "b")
        .await;
    reads(&checkpointer, "a").await.expect("what was stored");
    for part in file.parts() {
        let bytes = std::fs::read(&part).unwrap_or_default();
        assert!(!contains(&bytes, b"the secret"), "{}", part.display());
    }
    let db = rusqlite::Connection::open(&file.0).expect("the file");
    let change = |sql: &str| db.execute(sql, []).expect("changed");
    // Everything of a thread under the name of another one, a write in another slot, a changed byte.
    assert_eq!(change("UPDATE checkpoints SET thread_id = 'c' WHERE thread_id = 'a'"), 2);
    assert_eq!(change("UPDATE writes SET thread_id = 'c' WHERE thread_id = 'a'"), 4);
    refused(reads(&checkpointer, "c").await, "moved");
    let move_writes =
        "UPDATE writes SET idx = -3, channel = '__interrupt__' WHERE thread_id = 'b' AND idx = -4";
    assert_eq!(change(move_writes), 2);
    refused(reads(&checkpointer, "b").await, "moved");
    change("UPDATE writes SET idx = -4, channel = '__resume__' WHERE thread_id = 'b' AND idx = -3");
    reads(&checkpointer, "b").await.expect("what was moved back");
    change(
        "UPDATE writes SET value = substr(value, 1, length(value) - 1) || x'00' WHERE thread_id = 'b'",
    );
    refused(reads(&checkpointer, "b").await, "changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_of_postgresql_have_no_plain_text_and_nothing_in_them_can_be_moved() {
    let (url, name) = schema().await;
    let checkpointer =
        Encrypted::new(PostgresSaver::connect(&url).await.expect("a checkpointer"), keys());
    fill(&checkpointer, "a").await;
    reads(&checkpointer, "a").await.expect("what was stored");
    let client = client(&url).await;
    let hex: String = SECRET.bytes().take(10).map(|byte| format!("{byte:02x}")).collect();
    for table in ["checkpoints", "checkpoint_blobs", "checkpoint_writes"] {
        let sql = format!("SELECT t::text FROM {table} t");
        let rows = client.query(&sql, &[]).await.expect("rows");
        assert!(!rows.is_empty(), "{table}");
        for row in rows {
            let text: String = row.get(0);
            assert!(!text.contains("the secret") && !text.contains(&hex), "{table}: {text}");
        }
    }
    let other = "UPDATE checkpoint_blobs b SET blob = (SELECT c.blob FROM checkpoint_blobs c \
                 WHERE c.channel = 'text' AND c.version <> b.version) WHERE b.channel = 'text'";
    assert_eq!(client.execute(other, &[]).await.expect("changed"), 2);
    refused(reads(&checkpointer, "a").await, "moved");
    drop_schema(&name).await;
}

#[tokio::test]
async fn keys_are_named_and_replaced() {
    let inner = MemorySaver::new();
    let old = Encrypted::new(inner.clone(), keys());
    fill(&old, "a").await;
    let wrong = Encrypted::new(inner.clone(), Keys::new("one", &[9; 32]).expect("keys"));
    refused(reads(&wrong, "a").await, "cannot be decrypted with key `one`");
    let two = Keys::new("two", &[2; 32]).expect("keys");
    let unknown = Encrypted::new(inner.clone(), two.clone());
    refused(reads(&unknown, "a").await, "key `one`, which is not known here");
    let both = Encrypted::new(inner.clone(), two.and("one", &[1; 32]).expect("keys"));
    reads(&both, "a").await.expect("what the old key encrypted");
    fill(&both, "b").await;
    reads(&both, "b").await.expect("what the new key encrypted");
    refused(reads(&old, "b").await, "key `two`, which is not known here");
    assert!(keys().and("one", &[2; 32]).is_err(), "two keys of one name");
    assert!(Keys::new("", &[2; 32]).is_err(), "a key without a name");
    assert!(!format!("{:?}", keys()).contains('1'), "the key is shown");
}

#[tokio::test]
async fn what_is_not_encrypted_is_refused() {
    let inner = MemorySaver::new();
    fill(&inner, "a").await;
    refused(reads(&Encrypted::new(inner, keys()), "a").await, "is not encrypted");
}
