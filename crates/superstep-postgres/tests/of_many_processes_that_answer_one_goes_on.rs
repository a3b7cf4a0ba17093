//! Sixty-four processes race to answer one question, round after round. One of them continues, the
//! others are told, and no node of theirs has run.
//!
//! Fifty rounds, or as many as `SUPERSTEP_TEST_ROUNDS` says (a thousand for the full count).

mod common;

use common::Database;
use superstep_contract::graphs::race;
use superstep_postgres::{Options, PostgresSaver};

async fn checkpointer(url: &str) -> PostgresSaver {
    PostgresSaver::connect(Options::new(url).pool_size(1)).await.expect("the server")
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_processes_that_answer_one_goes_on() {
    if let Some(url) = race::place() {
        return race::take_part(checkpointer(&url).await).await;
    }
    let database = Database::new().await;
    let url = database.url();
    let test = "of_many_processes_that_answer_one_goes_on";
    race::run(test, &url, checkpointer(&url).await, race::rounds(50)).await;
}
