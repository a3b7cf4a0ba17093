//! Runs, from the request to their end.
//!
//! Knows the store, the events, and the protocol that publishes them; starts the background tasks of crons and webhooks. Knows
//! nothing of endpoints.

mod answers;
mod drive;
mod execute;
mod follow;
mod submit;
mod takeover;
mod worker;

pub(crate) use execute::{graph_of, open_questions};
pub(crate) use follow::{follow_run, stop_elsewhere, wait_for_end};
pub(crate) use submit::{Submitted, admission, cancel, settle_admission, submit, submit_all};
pub(crate) use worker::Workers;
