//! The contract of the store as test cases. Each of them runs on each implementation.

mod keyed;
mod lists;
mod once;
mod processes;
mod queue;
mod wakes;

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::records::ThreadEnd;
use super::{
    Admission, Admitted, Ended, Multitask, PostgresStore, Run, RunStatus, SqliteStore, Store,
    Stored, Thread, ThreadStatus,
};
use crate::time::Micros;

/// A database of its own for a test. Dropping it removes it.
pub(super) trait Place {
    async fn new() -> Self;
    /// A store on the database, as a process of its own would have it. In memory there is only one.
    async fn open(&self) -> Arc<dyn Store>;
    /// Whether several processes can use the database.
    const SHARED: bool = true;
}

macro_rules! cases {
    ($place:ty: $($file:ident: $($case:ident),+;)+) => {
        $($(#[tokio::test]
        async fn $case() {
            $file::$case::<$place>().await;
        })+)+
    };
}

macro_rules! places {
    ($($module:ident: $place:ty;)+) => {
        $(mod $module {
            use super::*;

            cases! { $place:
                queue: a_thread_has_one_running_run_and_runs_come_in_order,
                    a_second_run_waits_is_refused_or_takes_the_place_of_the_first,
                    runs_of_graphs_that_nobody_has_wait,
                    what_is_cancelled_or_deleted_does_not_run,
                    a_thread_goes_with_all_that_is_kept_for_it;
                processes: what_a_dead_process_left_is_taken_back_and_ends_after_three_attempts,
                    a_process_that_lives_keeps_its_runs,
                    a_superseded_worker_can_neither_write_nor_end_its_run,
                    of_many_workers_one_gets_each_run;
                lists: lists_filter_by_what_is_contained_and_have_pages,
                    threads_that_expire_are_found,
                    any_text_can_be_kept,
                    assistants_have_versions,
                    an_assistant_is_found_by_a_part_of_its_name;
                keyed: something_is_made_once_for_each_key,
                    of_many_requests_with_a_key_one_is_carried_out,
                    several_runs_are_admitted_together_or_not_at_all,
                    a_key_works_until_it_is_revoked,
                    a_question_is_listed_and_answered_once;
                wakes: threads_are_due_in_the_order_of_their_times,
                    of_many_who_wake_a_thread_one_does,
                    a_thread_that_cannot_be_woken_stays_as_it_is;
                once: a_cron_fires_once,
                    a_webhook_is_taken_once,
                    events_are_stored_once_and_in_order,
                    events_of_a_thread_go_on_after_they_were_forgotten;
            }
        })+
    };
}

places! {
    memory: Memory;
    sqlite: File;
    postgres: Server;
}

/// In memory.
pub(super) struct Memory(Arc<SqliteStore>);

impl Place for Memory {
    const SHARED: bool = false;

    async fn new() -> Self {
        Self(Arc::new(SqliteStore::open(None).await.expect("a store")))
    }

    async fn open(&self) -> Arc<dyn Store> {
        self.0.clone()
    }
}

/// In a file.
pub(super) struct File(std::path::PathBuf);

impl Place for File {
    async fn new() -> Self {
        let dir = std::env::temp_dir().join(format!("superstep-server-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir_all(&dir).expect("a directory");
        Self(dir)
    }

    async fn open(&self) -> Arc<dyn Store> {
        Arc::new(SqliteStore::open(Some(&self.0.join("server.db"))).await.expect("a store"))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// In PostgreSQL.
pub(super) struct Server(superstep_testdb::Schema);

impl Place for Server {
    async fn new() -> Self {
        Self(superstep_testdb::Schema::new())
    }

    async fn open(&self) -> Arc<dyn Store> {
        let options = superstep_postgres::Options::new(self.0.url()).pool_size(8);
        let saver = superstep_postgres::PostgresSaver::connect(options).await.expect("a server");
        Arc::new(PostgresStore::beside(&saver).await.expect("a store"))
    }
}

/// A run of the graph `g`.
fn run(thread: &str, id: &str, multitask: Multitask, due: i64) -> Run {
    Run {
        run_id: id.to_owned(),
        thread_id: thread.to_owned(),
        assistant_id: "a".to_owned(),
        graph_id: "g".to_owned(),
        created_at: Micros(due),
        updated_at: Micros(due),
        status: RunStatus::Pending,
        metadata: Map::new(),
        kwargs: Map::new(),
        multitask,
        attempt: 0,
        begun: false,
        worker: None,
        epoch: 0,
        admitted_by: None,
        followed: false,
        cancel: None,
        stateless: None,
        result: None,
        session: false,
        origin: Default::default(),
    }
}

fn asked(run: Run) -> Admission {
    Admission {
        new_thread: Some(Thread::new(run.thread_id.clone(), Map::new(), Micros(0))),
        run,
        thread_metadata: Map::new(),
        thread_config: json!({}),
        pending_max: 10_000,
    }
}

async fn admit(store: &dyn Store, run: Run) -> Admitted {
    store.admit(asked(run)).await.expect("an answer")
}

async fn enqueue(store: &dyn Store, thread: &str, id: &str, due: i64) {
    let admitted = admit(store, run(thread, id, Multitask::Enqueue, due)).await;
    assert!(matches!(admitted, Admitted::Stored { .. }), "{admitted:?}");
}

async fn claim_run(store: &dyn Store) -> Option<Run> {
    let claimed = store.claim(Micros(1_000), vec!["g".to_owned()]).await.expect("an answer");
    claimed.ok().map(|claimed| claimed.run)
}

async fn claim(store: &dyn Store) -> Option<String> {
    claim_run(store).await.map(|run| run.run_id)
}

fn over() -> Ended {
    let thread = ThreadEnd {
        status: ThreadStatus::Idle,
        values: Some(json!({ "x": 1 })),
        interrupts: Map::new(),
        error: json!(null),
        due: None,
    };
    Ended::Over { status: RunStatus::Success, result: json!({ "x": 1 }), thread: Box::new(thread) }
}

fn event(seq: u64) -> Stored {
    Stored { seq, event: "values".to_owned(), data: json!({ "n": seq }).to_string() }
}

fn events(numbers: std::ops::RangeInclusive<u64>) -> Vec<Stored> {
    numbers.map(event).collect()
}

fn object(json: Json) -> Map<String, Json> {
    json.as_object().expect("an object").clone()
}
