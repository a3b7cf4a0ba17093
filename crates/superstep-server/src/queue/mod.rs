//! Runs, from the request to their end.

mod execute;
mod submit;
mod worker;

pub(crate) use execute::{graph_of, open_questions};
pub(crate) use submit::{Submitted, admission, cancel, settle_admission, submit, submit_all};
pub(crate) use worker::Workers;
