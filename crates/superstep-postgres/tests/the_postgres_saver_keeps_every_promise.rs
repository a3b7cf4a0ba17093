//! A database is held to the cases every saver is held to, with two savers that have connections of their own.

mod common;

use std::sync::Mutex;

use common::Database;
use superstep_checkpoint::AnyCheckpointer;
use superstep_conformance::savers::{self, Subject};

#[tokio::test(flavor = "multi_thread")]
async fn a_database_keeps_every_promise() {
    let databases = Mutex::new(Vec::new());
    let report = savers::run(|| async {
        let database = Database::new().await;
        let subject = Subject {
            saver: AnyCheckpointer::new(database.saver().await),
            other: AnyCheckpointer::new(database.saver().await),
        };
        databases.lock().expect("not poisoned").push(database);
        subject
    })
    .await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.passed(), savers::names().count(), "{report}");
}
