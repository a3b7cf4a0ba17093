//! A file is held to the cases every checkpointer is held to, with two checkpointers that have it open, neither of which waits for the disk: one
//! was opened so, the other is for runs that store meanwhile. So is a database in memory.

mod world;

use std::sync::Mutex;

use superstep_checkpoint::AnyCheckpointer;
use superstep_contract::checkpointers::{self, Subject};
use superstep_sqlite::{SqliteSaver, Synchronous};
use world::Dir;

#[tokio::test(flavor = "multi_thread")]
async fn a_file_keeps_every_promise() {
    let dirs = Mutex::new(Vec::new());
    let report = checkpointers::run(|| async {
        let dir = Dir::new();
        let open = |synchronous| {
            // What is tested does not depend on when the disk confirms; the tests are faster.
            let options = SqliteSaver::options().synchronous(synchronous);
            let opened = options.open(dir.file());
            async { AnyCheckpointer::new(opened.await.expect("a file")) }
        };
        let subject = Subject {
            checkpointer: open(Synchronous::Full).await.relaxed(),
            other: open(Synchronous::Normal).await,
        };
        dirs.lock().expect("not poisoned").push(dir);
        subject
    })
    .await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.passed(), checkpointers::names().count(), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_in_memory_keeps_every_promise() {
    let report = checkpointers::run(|| async {
        let checkpointer =
            AnyCheckpointer::new(SqliteSaver::in_memory().await.expect("a database"));
        Subject { checkpointer: checkpointer.clone(), other: checkpointer }
    })
    .await;
    report.assert_passed();
    assert_eq!(report.passed(), checkpointers::names().count(), "{report}");
}
