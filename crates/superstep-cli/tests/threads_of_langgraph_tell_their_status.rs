//! The list of threads says of threads that LangGraph wrote what a run of theirs would find, on
//! both databases: before we have added anything, after, and when LangGraph has continued with
//! them.

mod world;

use std::collections::BTreeMap;

use superstep_checkpoint::{AnyCheckpointer, ThreadQuery, ThreadStatus};
use superstep_postgres::PostgresSaver;
use superstep_sqlite::SqliteSaver;
use world::{Dir, python_script, text};

const SCRIPT: &str = "status.py";

/// What is said of each thread: its status, and how many questions are open.
type Told = BTreeMap<String, (ThreadStatus, usize)>;

fn told() -> Told {
    use ThreadStatus::{Done, Failed, Ready, Waiting};
    let told = [
        ("done", Done, 0),
        ("waits", Waiting, 1),
        ("waits beside one that ended", Waiting, 1),
        ("answered once", Waiting, 1),
        ("dispatched", Waiting, 3),
        ("stopped before a node", Ready, 0),
        ("stopped before a join", Ready, 0),
        ("joined", Done, 0),
        ("a call asks", Waiting, 1),
        ("a function ended", Done, 0),
        ("failed", Failed, 0),
        ("killed", Ready, 1),
    ];
    told.into_iter().map(|(thread, status, open)| (thread.to_owned(), (status, open))).collect()
}

/// Compares what is listed, with and without a filter.
async fn compare(checkpointer: &AnyCheckpointer, told: &Told) {
    let page = checkpointer.threads(ThreadQuery::new(100)).await.expect("a page");
    let found = page.threads.into_iter().map(|info| {
        let status = info.status.unwrap_or_else(|| panic!("`{}`: {:?}", info.thread, info.damage));
        (info.thread.to_string(), (status, info.pending.len()))
    });
    assert_eq!(&found.collect::<Told>(), told);
    for status in ThreadStatus::ALL {
        let mut found = names(checkpointer, ThreadQuery::new(100).status(status)).await;
        found.sort();
        let wanted = told.iter().filter(|(_, (wanted, _))| *wanted == status);
        assert_eq!(found, wanted.map(|(thread, _)| thread.as_str()).collect::<Vec<_>>());
    }
}

async fn names(checkpointer: &AnyCheckpointer, query: ThreadQuery) -> Vec<String> {
    let page = checkpointer.threads(query).await.expect("a page");
    page.threads.into_iter().map(|info| info.thread.to_string()).collect()
}

/// Has LangGraph make threads, looks at them as they are and as we keep them, and has LangGraph
/// continue.
async fn follow(url: &str, checkpointer: AnyCheckpointer, as_it_is: AnyCheckpointer) {
    let mut told = told();
    compare(&as_it_is, &told).await;
    compare(&checkpointer, &told).await;
    compare(&checkpointer, &told).await;
    assert_eq!(
        names(&checkpointer, ThreadQuery::new(9).metadata("user", "ada")).await,
        ["waits", "done"]
    );
    python_script(SCRIPT, url, &["go_on"]).expect("there was a Python before");
    told.insert("waits".to_owned(), (ThreadStatus::Done, 0));
    told.insert("done".to_owned(), (ThreadStatus::Waiting, 1));
    compare(&checkpointer, &told).await;
    compare(&as_it_is, &told).await;
    assert_eq!(names(&checkpointer, ThreadQuery::new(9).metadata("user", "ada")).await, ["done"]);
}

#[tokio::test]
async fn in_an_sqlite_file() {
    let dir = Dir::new();
    let file = dir.path().join("threads.db");
    for task in ["make", "kill"] {
        let Some(_) = python_script(SCRIPT, text(&file), &[task]) else { return };
    }
    let as_it_is = SqliteSaver::open_existing(&file).await.expect("a file");
    compare(&AnyCheckpointer::new(as_it_is.clone()), &told()).await;
    let checkpointer = SqliteSaver::open(&file).await.expect("a file");
    follow(text(&file), AnyCheckpointer::new(checkpointer), AnyCheckpointer::new(as_it_is)).await;
}

#[tokio::test]
async fn on_a_postgresql_server() {
    let database = world::server::Database::new("status").await;
    for task in ["make", "kill"] {
        let Some(_) = python_script(SCRIPT, &database.url, &[task]) else {
            return database.delete().await;
        };
    }
    let as_it_is = PostgresSaver::connect_existing(&*database.url).await.expect("a database");
    let checkpointer = PostgresSaver::connect(&*database.url).await.expect("a database");
    let (checkpointer, as_it_is) =
        (AnyCheckpointer::new(checkpointer), AnyCheckpointer::new(as_it_is));
    follow(&database.url, checkpointer, as_it_is).await;
    database.delete().await;
}
