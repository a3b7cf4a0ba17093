//! Shows that a layer that changes nothing keeps every promise of the checkpointer below it, and that every operation goes
//! through `around`.
//!
//! It could break with every method that `Checkpointer` gains: a layer that does not forward it has its default, which for
//! most of them is "not supported".

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use superstep_checkpoint::{
    AnyCheckpointer, CheckpointerLayer, Error, MemorySaver, Operation, StorageId,
};
use superstep_contract::checkpointers::{self, Subject};

type Seen = Arc<Mutex<HashSet<Operation>>>;

/// Notes which operations there were.
struct Noted {
    inner: AnyCheckpointer,
    seen: Seen,
}

impl CheckpointerLayer for Noted {
    fn inner(&self) -> &AnyCheckpointer {
        &self.inner
    }

    async fn around<T: Send>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<T, Error> {
        self.seen.lock().expect("not poisoned").insert(operation);
        work.await
    }
}

fn layer(inner: &AnyCheckpointer, seen: &Seen) -> AnyCheckpointer {
    AnyCheckpointer::new(Noted { inner: inner.clone(), seen: seen.clone() })
}

#[tokio::test]
async fn a_layer_does_what_the_checkpointer_below_does() {
    let seen = Seen::default();
    let below = checkpointers::run(|| async {
        let checkpointer = AnyCheckpointer::default();
        Subject { checkpointer: checkpointer.clone(), other: checkpointer }
    });
    let above = checkpointers::run(|| async {
        let inner = AnyCheckpointer::default();
        Subject { checkpointer: layer(&inner, &seen), other: layer(&inner, &seen) }
    });
    let (below, above) = (below.await.to_string(), above.await.to_string());
    assert_eq!(above, below);
    assert!(!above.contains("FAILED") && !above.contains("not supported"), "{above}");

    let seen = seen.lock().expect("not poisoned");
    use Operation::*;
    for operation in [
        Put,
        PutAll,
        PutWrites,
        Get,
        List,
        DeleteThread,
        DeltaHistory,
        CopyThread,
        DeleteForRuns,
        Prune,
        Threads,
        Alarms,
        Inventory,
    ] {
        assert!(seen.contains(&operation), "{operation:?} did not go through `around`");
    }
    assert_eq!(seen.len(), 13, "an operation is missing in this test: {seen:?}");
}

#[test]
fn a_layer_keeps_threads_where_the_checkpointer_below_does() {
    let storage = StorageId::unique();
    let saver = MemorySaver::new();
    let inner = AnyCheckpointer::from(&saver);
    let above = layer(&inner, &Seen::default());
    assert_eq!(above.storage(), inner.storage());
    assert_ne!(above.storage(), storage);
    assert_eq!(above.in_order(), inner.in_order());
}
