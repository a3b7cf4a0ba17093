//! The storage interface: checkpoints, and the contracts of checkpointers, stores and caches.
//!
//! This crate does not depend on graphs. The engine passes encoded channel values and lists of
//! writes; a backend stores and returns them. A backend depends on this crate alone and implements
//! [`Checkpointer`] (or [`Store`], for long-term memory).
//!
//! | Need | Look at |
//! | --- | --- |
//! | a value whose type is only known at run time | [`Value`] |
//! | that value, or a typed one, as bytes | [`Blob`] |
//! | the state that is stored at a barrier | [`Checkpoint`], [`Metadata`], [`Put`] |
//! | the writes of a task before the barrier | [`TaskWrites`], [`PendingWrite`] |
//! | the contract of a checkpointer | [`Checkpointer`] |
//! | a checkpointer on top of another one | [`CheckpointerLayer`] |
//! | the list of threads, copies, pruning | [`ThreadQuery`], [`Prune`] |
//! | helpers for implementing a checkpointer | [`wire`] |
//! | a checkpointer in memory | [`MemorySaver`] |
//! | memory across threads | [`Store`], [`MemoryStore`] |
//! | cached results of nodes | [`Cache`], [`MemoryCache`] |

mod blob;
mod cache;
mod checkpoint;
mod checkpointer;
mod error;
mod id;
mod maintain;
mod memory;
mod storage;
mod store;
mod thread;
mod value;
mod version;
pub mod wire;

pub use blob::{Blob, Limits, Tag};
pub use cache::{AnyCache, Cache, CacheKey, CachedWrites, MemoryCache};
pub use checkpoint::{
    Checkpoint, Expected, Metadata, PendingWrite, Put, Query, SharedMap, Source, Stored,
    TaskWrites, reserved_index,
};
pub use checkpointer::{
    Alarm, AlarmPage, AnyCheckpointer, Checkpointer, CheckpointerLayer, DeltaHistory, Operation,
    WritePlace,
};
pub use error::Error;
pub use id::{CheckpointId, IdClock, InterruptId, TaskId};
pub use maintain::{Inventory, Keep, Prune, StoredKey};
pub use memory::MemorySaver;
pub use storage::StorageId;
pub use store::{
    AnyStore, Comparison, Condition, Distance, Expiry, Indexing, Item, MemoryStore, Namespace,
    NamespaceQuery, PutItem, Search, Store, StoreAnswer, StoreOp, VectorIndex, Vectors,
};
pub use thread::{
    Question, ThreadCursor, ThreadInfo, ThreadPage, ThreadQuery, ThreadStatus, Verdict,
};
pub use value::{
    Ext, Foreign, Interrupt, Map, Packet, Set, TimeLimits, Value, from_value, object,
    storable_time, to_value,
};
pub use version::Version;
