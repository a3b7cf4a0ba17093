//! Messages that LangGraph has written are, after a step of a graph here, the messages they were, and so are values of all
//! other types.

mod world;

use superstep_checkpoint::AnyCheckpointer;
use superstep_contract::graphs::messages;
use superstep_sqlite::SqliteSaver;
use world::Dir;

#[tokio::test]
async fn nothing_is_lost_in_a_file() {
    for seed in 0..3 {
        let dir = Dir::new();
        let file = dir.file();
        let open =
            || async { AnyCheckpointer::new(SqliteSaver::open(&file).await.expect("the file")) };
        messages::assert_nothing_is_lost(["sqlite", &file.display().to_string()], seed, open).await;
    }
}
