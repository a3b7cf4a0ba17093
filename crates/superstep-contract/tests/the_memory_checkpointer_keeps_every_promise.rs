//! The checkpointer everyone starts with is held to the same cases as those with a database behind them.

use superstep_checkpoint::{AnyCheckpointer, MemorySaver};
use superstep_contract::checkpointers::{self, Subject};

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_checkpointer_keeps_every_promise() {
    let report = checkpointers::run(|| async {
        let checkpointer = MemorySaver::new();
        Subject {
            checkpointer: AnyCheckpointer::new(checkpointer.clone()),
            other: AnyCheckpointer::new(checkpointer),
        }
    })
    .await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.passed(), checkpointers::names().count(), "{report}");
}
