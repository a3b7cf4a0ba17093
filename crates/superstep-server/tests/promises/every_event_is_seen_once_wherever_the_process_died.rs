//! Shows that a reader that comes back sees each event of a run once and in order, wherever its process died. Checkpoints and
//! events are stored one after the other, so a crash can leave the log behind the checkpoints or ahead of them. Here every
//! such state is made from the database of a run that ended, by taking away what was stored last.

use std::path::Path;

use rusqlite::{Connection, params};
use serde_json::{Value as Json, json};

use crate::world::{Dir, World};

/// What a crash has left: how many of the newest were not stored.
#[derive(Clone, Copy, Debug)]
struct Lost {
    events: usize,
    checkpoints: usize,
    /// What tasks had written beside the newest checkpoint that is left.
    writes: bool,
}

/// Makes the database that the crash of a process would have left.
fn crash(whole: &Path, file: &Path, run: &str, lost: Lost) {
    let connection = Connection::open(whole).expect("the database");
    connection.execute("VACUUM INTO ?", [file.to_str().expect("text")]).expect("a copy");
    let connection = Connection::open(file).expect("the copy");
    let execute = |sql: &str, values: &[&dyn rusqlite::ToSql]| {
        connection.execute(sql, values).unwrap_or_else(|error| panic!("{sql}: {error}"))
    };
    execute(
        "DELETE FROM server_events WHERE seq IN
            (SELECT seq FROM server_events WHERE run_id = ?1 ORDER BY seq DESC LIMIT ?2)",
        params![run, lost.events as i64],
    );
    let newest = "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id DESC LIMIT ?";
    for table in ["writes", "checkpoints"] {
        let sql = format!("DELETE FROM {table} WHERE checkpoint_id IN ({newest})");
        execute(&sql, params![lost.checkpoints as i64]);
    }
    if lost.writes {
        let sql = format!("DELETE FROM writes WHERE checkpoint_id IN ({newest})");
        execute(&sql, params![1_i64]);
    }
    let body = "json_set(body, '$.status', 'running', '$.result', NULL)";
    let sql = format!("UPDATE server_runs SET status = 'running', body = {body} WHERE run_id = ?");
    execute(&sql, params![run]);
    let sql =
        "UPDATE server_threads SET status = 'busy', body = json_set(body, '$.status', 'busy')";
    execute(sql, params![]);
}

fn count(file: &Path, sql: &str, values: &[&dyn rusqlite::ToSql]) -> usize {
    let connection = Connection::open(file).expect("the database");
    let count: i64 = connection.query_row(sql, values, |row| row.get(0)).expect("a number");
    usize::try_from(count).expect("a count")
}

/// The events of a run, without those that say that an attempt or a task begins: a task can begin twice.
async fn events(world: &World, thread: &str, run: &str) -> Vec<(String, Json)> {
    let path = format!("/threads/{thread}/runs/{run}/stream");
    let all = world.send("GET", &path, &[("last-event-id", "-1")], "").await.events();
    let ids: Vec<u64> = (all.iter())
        .map(|(id, ..)| id.split_once('-').expect("an id").1.parse().expect("a number"))
        .collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
    let is_start = |event: &str, data: &Json| event == "metadata" || data.get("triggers").is_some();
    let shown = all.into_iter().filter(|(_, event, data)| !is_start(event, data));
    shown.map(|(_, event, data)| (event, data)).collect()
}

async fn after_every_crash(graph: &str, input: Json, modes: &[&str], lost_max: usize) {
    let dir = Dir::new();
    let whole = dir.file("whole.db");
    let world = World::on(&whole).await;
    let thread = world.thread().await;
    let body = json!({
        "assistant_id": graph, "input": input, "stream_mode": modes, "stream_resumable": true,
    });
    let run = world.run(&thread, body).await;
    let result = world.get(&format!("/threads/{thread}/runs/{run}/join")).await.json();
    let expected = events(&world, &thread, &run).await;
    drop(world);
    let logged = count(&whole, "SELECT count(*) FROM server_events WHERE run_id = ?", &[&run]);
    let stored = count(&whole, "SELECT count(*) FROM checkpoints", &[]);
    for checkpoints in 0..=stored.min(lost_max) {
        for lost_events in 0..=logged {
            for writes in [false, true] {
                let lost = Lost { events: lost_events, checkpoints, writes };
                let file = dir.file(&format!("{checkpoints}-{lost_events}-{writes}.db"));
                crash(&whole, &file, &run, lost);
                let world = World::on(&file).await;
                let again = world.get(&format!("/threads/{thread}/runs/{run}/join")).await.json();
                assert_eq!(again, result, "{graph}: {lost:?}");
                let seen = events(&world, &thread, &run).await;
                assert_eq!(
                    seen, expected,
                    "{graph}: {lost:?} of {logged} events, {stored} checkpoints"
                );
                drop(world);
                std::fs::remove_file(&file).expect("it can be removed");
            }
        }
    }
}

/// A superstep that runs again makes another checkpoint, after which its tasks and questions are named.
#[tokio::test]
async fn of_a_run_that_ends() {
    let input = json!({ "count": 10, "log": ["in"] });
    after_every_crash("counter", input.clone(), &["values", "updates"], usize::MAX).await;
    after_every_crash("counter", input, &["values", "updates", "tasks"], 1).await;
}

#[tokio::test]
async fn of_a_run_that_asks() {
    let input = json!({ "topic": "cats" });
    after_every_crash("approval", input, &["values", "updates", "tasks"], 0).await;
}
