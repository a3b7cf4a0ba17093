//! Keeps checkpoints and long-term memory in PostgreSQL.
//!
//! The tables are those of LangGraph's `PostgresSaver`, so either engine goes on with threads of the other, in one
//! database and at one time. [`PostgresSaver::connect`] makes them or brings them up to date.
//!
//! ```no_run
//! # async fn example() -> Result<(), superstep_checkpoint::Error> {
//! use superstep_postgres::PostgresSaver;
//!
//! let saver = PostgresSaver::connect("postgres://app:secret@localhost/agents").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Beside them stands a small table of ours, kept up to date by triggers whoever writes, that says about when each thread was
//! changed last, so that a page of [`threads`](superstep_checkpoint::Checkpointer::threads) costs a page. LangGraph does not
//! notice it. Where a role may not add anything, there is none, and a page costs a look at every thread.
//!
//! [`PostgresStore`] keeps items across threads, in the tables of LangGraph's `PostgresStore`.
//!
//! # How it behaves
//!
//! - **One round trip.** A checkpoint, the writes that led to it, and the comparison with the head are one transaction that
//!   is sent in one go. Claiming an answer takes two, so that its outcome can be found out.
//! - **Two writers.** Writers of a namespace wait for each other for the time of a transaction, and the second one gets
//!   [`Conflict`](superstep_checkpoint::Error::Conflict). Python writers take no lock: while one engine runs a thread, the other
//!   should not.
//! - **Poolers.** Nothing stays in a session, so a pooler may give each transaction to another one (PgBouncer's
//!   `transaction` mode): statements are unnamed, locks and settings end with their transaction.
//! - **A server that goes away.** Calls go on when it is back, for as long as [`Options::reconnect_max`] says. What was being
//!   read is read again. For what was being stored, it is found out whether it was. A server that does not answer within
//!   [`Options::answer_max`] has gone away.
//! - **Text.** PostgreSQL has no NUL in text: a thread, namespace, channel or key with one is refused with an error. Values may
//!   contain anything.
//! - **Rows that cannot be read** give an error that names thread and checkpoint, and harm no other thread.
//!
//! # Where values are
//!
//! Short text, numbers, booleans and nothing stand in the checkpoint's JSON, everything else in `checkpoint_blobs`, once for each
//! version. Text of more than 1 KiB and numbers that JSON would change have a row as well, unlike in the other engine, which
//! reads them all the same.

mod db;
mod failure;
mod migrate;
mod options;
mod saver;
mod store;
mod text;
mod tls;

pub use options::Options;
pub use saver::PostgresSaver;
pub use store::PostgresStore;
