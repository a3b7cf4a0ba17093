//! The door to storage: what a checkpoint is, and what whoever keeps checkpoints promises.
//!
//! This crate knows nothing of graphs. The engine hands it rows of encoded channel values and lists of
//! writes; a backend stores them and gives them back. Someone who writes a backend depends on this crate
//! alone and implements [`Checkpointer`] (or [`Store`], for long-term memory).
//!
//! | Need | Look at |
//! | --- | --- |
//! | a value whose type is only known at run time | [`Value`] |
//! | that value, or a typed one, as bytes | [`Blob`] |
//! | what is stored at a barrier | [`Checkpoint`], [`Metadata`], [`Put`] |
//! | what a task wrote before the barrier | [`TaskWrites`], [`PendingWrite`] |
//! | the contract of a saver | [`Checkpointer`] |
//! | the list of threads, copies, thinning out | [`ThreadQuery`], [`Prune`] |
//! | helpers for whoever writes a saver | [`wire`] |
//! | a saver that lives in memory | [`MemorySaver`] |
//! | memory across threads | [`Store`], [`MemoryStore`] |
//! | results of nodes kept by key | [`Cache`], [`MemoryCache`] |

mod blob;
mod cache;
mod checkpoint;
mod error;
mod id;
mod maintain;
mod memory;
mod saver;
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
pub use error::Error;
pub use id::{CheckpointId, IdClock, InterruptId, TaskId};
pub use maintain::{Inventory, Keep, Prune, StoredKey};
pub use memory::MemorySaver;
pub use saver::{AnyCheckpointer, Checkpointer, DeltaHistory, WritePlace};
pub use storage::StorageId;
pub use store::{
    AnyStore, Comparison, Condition, Distance, Expiry, Indexing, Item, MemoryStore, Namespace,
    NamespaceQuery, PutItem, Search, Store, StoreAnswer, StoreOp, VectorIndex, Vectors,
};
pub use thread::{
    Question, ThreadCursor, ThreadInfo, ThreadPage, ThreadQuery, ThreadStatus, Verdict,
};
pub use value::{
    Ext, Foreign, Interrupt, Map, Packet, Set, TimeLimits, Value, from_value, object, to_value,
};
pub use version::Version;
