//! LangGraph's own checkpointer reads what we wrote and we read what it wrote, value by value and byte by byte.
//!
//! Needs a Python that has `langgraph==1.2.20` and `langgraph-checkpoint-sqlite`, named by `SUPERSTEP_TEST_PYTHON`. Without
//! it nothing is tested, and the output says so.

mod world;

use std::path::Path;
use std::process::Command;

use serde_json::{Value as Json, json};
use superstep_checkpoint::{
    Blob, Checkpointer, Query, Stored, TaskId, TaskWrites, ThreadQuery, Version, wire,
};
use superstep_sqlite::SqliteSaver;
use world::{Dir, Line};

fn python(task: &str, file: &Path) -> Option<String> {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python/interplay.py");
    let output = Command::new(python).arg(script).arg(task).arg(file).output().expect("Python");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(String::from_utf8(output.stdout).expect("text"))
}

fn python_dump(file: &Path) -> Option<Json> {
    python("dump", file).map(|text| serde_json::from_str(&text).expect("JSON"))
}

fn typed(blob: &Blob) -> Vec<Json> {
    let hex: String = blob.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    vec![blob.tag().as_str().into(), hex.into()]
}

/// What `interplay.py dump` prints, as we see it.
fn shown(stored: &Stored) -> Json {
    let checkpoint = &stored.checkpoint;
    let versions = |versions: &superstep_checkpoint::SharedMap<Version>| -> Json {
        let entry = |(name, version): (&std::sync::Arc<str>, &Version)| {
            (name.to_string(), Json::from(version.as_str()))
        };
        Json::Object(versions.iter().map(entry).collect())
    };
    let values = checkpoint.channel_values.iter();
    let values = values.map(|(name, blob)| (name.to_string(), Json::from(typed(blob))));
    let seen = checkpoint.versions_seen.iter();
    let seen = seen.map(|(node, seen)| (node.to_string(), versions(seen)));
    let metadata = wire::metadata_to_json(&stored.metadata).expect("JSON");
    let writes = stored.writes.iter().map(|write| {
        let mut row = vec![Json::from(write.task.to_string()), Json::from(&*write.channel)];
        row.extend(typed(&write.value));
        Json::from(row)
    });
    let updated = checkpoint.updated_channels.as_ref();
    json!({
        "thread": &*stored.thread,
        "ns": &*stored.ns,
        "id": checkpoint.id.to_string(),
        "parent": stored.parent.map(|parent| parent.to_string()),
        "v": checkpoint.v,
        "ts": checkpoint.ts,
        "values": Json::Object(values.collect()),
        "versions": versions(&checkpoint.channel_versions),
        "seen": Json::Object(seen.collect()),
        "updated": updated.map(|names| names.iter().map(|name| &**name).collect::<Vec<_>>()),
        "metadata": serde_json::from_str::<Json>(&metadata).expect("JSON"),
        "writes": writes.collect::<Vec<_>>(),
    })
}

async fn our_dump(checkpointer: &SqliteSaver) -> Json {
    checkpointer.list(Query::default()).await.expect("a list").iter().map(shown).collect()
}

/// Compares one by one, so that a difference can be found in the message.
fn same(ours: &Json, theirs: &Json) {
    // Copies have the ids of what they were copied from, and only the order of ids is agreed upon.
    let sorted = |list: &Json| {
        let mut list = list.as_array().expect("a list").clone();
        list.sort_by_key(|entry| format!("{} {} {}", entry["id"], entry["thread"], entry["ns"]));
        list
    };
    let (a, b) = (sorted(ours), sorted(theirs));
    assert_eq!(a.len(), b.len());
    assert!(!a.is_empty(), "nothing was compared");
    for (ours, theirs) in a.iter().zip(&b) {
        for key in ours.as_object().expect("an object").keys() {
            assert_eq!(ours[key], theirs[key], "{key} of {} on {}", ours["id"], ours["thread"]);
        }
    }
}

#[tokio::test]
async fn rust_reads_what_python_wrote() {
    let dir = Dir::new();
    if python("write", &dir.file()).is_none() {
        return;
    }
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file of LangGraph");
    let ours = our_dump(&checkpointer).await;
    same(&ours, &python_dump(&dir.file()).expect("a dump"));
    let page = checkpointer.threads(ThreadQuery::new(9)).await.expect("a page");
    assert_eq!(page.threads.len(), 2);
    assert!(page.threads.iter().all(|info| info.damage.is_none()), "{page:?}");
    // The value of every kind goes through our hands and back.
    checkpointer.copy_thread("py", "copied").await.expect("copied");
    for stored in checkpointer.list(Query::default()).await.expect("a list") {
        if &*stored.thread == "py" && stored.ns.is_empty() {
            let put = superstep_checkpoint::Put {
                thread: "through".into(),
                ns: "".into(),
                parent: None,
                head: None,
                writes: Vec::new(),
                changed: Vec::new(),
                checkpoint: stored.checkpoint,
                metadata: stored.metadata,
            };
            checkpointer.put(put).await.expect("stored");
            break;
        }
    }
    same(&our_dump(&checkpointer).await, &python_dump(&dir.file()).expect("a dump"));
    // LangGraph continues writing to the file that has our list of heads, and the list follows.
    python("write", &dir.file()).expect("Python");
    let page = checkpointer.threads(ThreadQuery::new(9)).await.expect("a page");
    for info in &page.threads {
        let head = checkpointer.get(&info.thread, "", None).await.expect("read").expect("a head");
        assert_eq!(info.head, head.checkpoint.id);
    }
}

#[tokio::test]
async fn python_reads_what_rust_wrote() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    for thread in ["rust", "it's \"rust\""] {
        let mut line = Line::new(thread);
        for step in 0..4 {
            let mut put = line.next();
            put.metadata.extra.insert("user".into(), "Zo\u{eb}".into());
            put.checkpoint.updated_channels = (step > 0).then(|| vec!["n".into()]);
            let id = put.checkpoint.id;
            let values = superstep_checkpoint::to_value(&(step, "text", [1.5])).expect("a value");
            let value = Blob::from_value(&values).expect("a blob");
            put.checkpoint.channel_values.insert_mut("list".into(), value.clone());
            checkpointer.put(put).await.expect("stored");
            line.head = Some(id);
            let all = vec![
                ("b".into(), value),
                ("__resume__".into(), Blob::encode(&["yes"]).expect("a blob")),
                ("c".into(), Blob::null()),
            ];
            let tasks = [2, 1].map(|n| {
                TaskWrites::new(TaskId::from_bytes([n; 16]), format!("~{n}"), all.clone())
            });
            checkpointer.put_writes(thread, "", id, tasks.into()).await.expect("stored");
        }
    }
    if let Some(theirs) = python_dump(&dir.file()) {
        same(&our_dump(&checkpointer).await, &theirs);
    }
}
