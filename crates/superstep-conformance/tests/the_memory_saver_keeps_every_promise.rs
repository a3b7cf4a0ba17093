//! The saver everyone starts with is held to the same cases as those with a database behind them.

use superstep_checkpoint::{AnyCheckpointer, MemorySaver};
use superstep_conformance::savers::{self, Subject};

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_saver_keeps_every_promise() {
    let report = savers::run(|| async {
        let saver = MemorySaver::new();
        Subject { saver: AnyCheckpointer::new(saver.clone()), other: AnyCheckpointer::new(saver) }
    })
    .await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.passed(), savers::names().count(), "{report}");
}
