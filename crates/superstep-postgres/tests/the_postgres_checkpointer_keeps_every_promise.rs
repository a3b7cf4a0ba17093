//! A database is held to the cases every checkpointer is held to, with two checkpointers that have connections of their own.

mod common;

use common::Database;
use superstep_checkpoint::AnyCheckpointer;
use superstep_contract::checkpointers::{self, Subject};
use superstep_postgres::{Options, PostgresSaver};

#[tokio::test(flavor = "multi_thread")]
async fn a_database_keeps_every_promise() {
    keeps_every_promise(Options::new).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn also_with_statements_that_are_planned_once() {
    keeps_every_promise(|url| Options::new(url).prepared()).await;
}

async fn keeps_every_promise(options: fn(String) -> Options) {
    let database = Database::new().await;
    let report = checkpointers::run(|| async {
        let url = database.schema().await;
        let connect = || async {
            AnyCheckpointer::new(
                PostgresSaver::connect(options(url.clone())).await.expect("a database"),
            )
        };
        Subject { checkpointer: connect().await, other: connect().await }
    })
    .await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.passed(), checkpointers::names().count(), "{report}");
}
