//! Sixty-four processes race to answer one question, round after round. One of them continues, the
//! others are told, and no node of theirs has run.
//!
//! A thousand rounds, or as many as `SUPERSTEP_TEST_ROUNDS` says.

mod world;

use std::time::Duration;

use superstep_contract::graphs::race;
use superstep_sqlite::{SqliteSaver, Synchronous};
use world::Dir;

async fn checkpointer(file: &str) -> SqliteSaver {
    let options = SqliteSaver::options().synchronous(Synchronous::Normal).readers(1);
    options.busy_timeout(Duration::from_secs(60)).open(file).await.expect("the file")
}

#[tokio::test]
async fn of_many_processes_that_answer_one_goes_on() {
    if let Some(file) = race::place() {
        return race::take_part(checkpointer(&file).await).await;
    }
    let dir = Dir::new();
    let file = dir.file().display().to_string();
    let test = "of_many_processes_that_answer_one_goes_on";
    race::run(test, &file, checkpointer(&file).await, race::rounds(1000)).await;
}
