//! The store in memory is what the others are measured by, so it comes first. Its clock is that of the runtime, which stands
//! still and is moved by hand.

use superstep_checkpoint::{AnyStore, MemoryStore};
use superstep_contract::stores::{self, Subject};

#[tokio::test(start_paused = true)]
async fn the_memory_store_keeps_every_promise() {
    let report = stores::run(|| async {
        let store = MemoryStore::new();
        let indexed = store.clone();
        Subject::new(AnyStore::new(store.clone()), AnyStore::new(store))
            .passing(tokio::time::advance)
            .indexed(move |index| {
                let store = AnyStore::new(indexed.clone().with_index(index));
                async move { store }
            })
    })
    .await;
    report.assert_passed();
    assert_eq!(report.passed(), report.cases.len(), "{report}");
}
