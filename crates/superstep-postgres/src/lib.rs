//! Checkpoints and long-term memory in PostgreSQL.
//!
//! The tables are those of LangGraph's `PostgresSaver`, so that superstep and LangGraph continue
//! each other's threads in one database. [`PostgresSaver::connect`] creates or migrates them.
//!
//! ```no_run
//! # async fn example() -> Result<(), superstep_checkpoint::Error> {
//! use superstep_postgres::PostgresSaver;
//!
//! let checkpointer = PostgresSaver::connect("postgres://app:secret@localhost/agents").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Next to them is a small table of superstep, kept up to date by triggers, that records when each
//! thread was last changed, so that the cost of
//! [`threads`](superstep_checkpoint::Checkpointer::threads) depends on the size of the page.
//! LangGraph is not affected. If the role may not create tables, it is missing, and a page reads
//! every thread.
//!
//! [`PostgresStore`] stores items across threads, in the tables of LangGraph's `PostgresStore`.
//!
//! # How it behaves
//!
//! - **One round trip.** A checkpoint, the writes that led to it, and the comparison with the head
//!   are one transaction and one round trip. Claiming an answer takes two, so that its outcome can
//!   be determined after a lost connection.
//! - **Two writers.** Writers of a namespace wait for each other for the time of a transaction, and the second one gets
//!   [`Conflict`](superstep_checkpoint::Error::Conflict). Python writers take no lock: while one engine runs a thread, the other
//!   should not.
//! - **Poolers.** No state stays in a session, so a pooler may give each transaction another
//!   session (PgBouncer's `transaction` mode): statements are unnamed, locks and settings end with
//!   their transaction.
//! - **Reconnects.** Calls retry for [`Options::reconnect_max`] when the server is unreachable.
//!   Reads are repeated. For writes, the checkpointer finds out whether they were stored. A server
//!   that does not answer within [`Options::answer_max`] counts as unreachable.
//! - **Text.** PostgreSQL text cannot contain NUL: a thread, namespace, channel or key with NUL is
//!   refused. Values may contain it.
//! - **Rows that cannot be read** return an error that names thread and checkpoint, and do not
//!   affect other threads.
//!
//! # Where values are
//!
//! Short text, numbers, booleans and null are stored in the checkpoint's JSON, everything else in
//! `checkpoint_blobs`, once per version. Text of more than 1 KiB and numbers that JSON would change
//! also have a row. LangGraph does not write such rows, but reads them.

// Stored data is untrusted.
#![cfg_attr(
    not(test),
    warn(clippy::arithmetic_side_effects, clippy::disallowed_methods, clippy::indexing_slicing)
)]

mod checkpointer;
mod db;
mod failure;
mod migrate;
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "it runs in the compiler, which reports what goes wrong"
)]
mod named;
mod options;
mod store;
mod text;
mod tls;

pub use checkpointer::PostgresSaver;
pub use options::Options;
pub use store::PostgresStore;
