//! Runs, from the request to their end.

mod answers;
mod drive;
mod execute;
mod submit;
mod takeover;
mod worker;

pub(crate) use execute::{graph_of, open_questions};
pub(crate) use submit::{admission, cancel, settle_admission, submit};
pub(crate) use worker::Workers;
