//! Messages that LangGraph has written are, after a step of a graph here, the messages they were, and so are values of all
//! other types.

mod common;

use common::Database;
use superstep_checkpoint::AnyCheckpointer;
use superstep_contract::graphs::messages;

#[tokio::test]
async fn nothing_is_lost_on_a_server() {
    for seed in 10..12 {
        let database = Database::new().await;
        let open = || async { AnyCheckpointer::new(database.checkpointer().await) };
        messages::assert_nothing_is_lost(["postgres", &database.url()], seed, open).await;
    }
}
