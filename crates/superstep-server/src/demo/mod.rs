//! The graphs of `superstep serve`: small, without models or keys, and enough to try out every client.
//!
//! Knows the library only: a user could have written it.

mod chat;
mod plain;
mod questions;

use superstep::{AnyGraph, CompileError};

/// The graphs, by the names that they are served under.
///
/// # Errors
/// None of them has any.
pub fn graphs() -> Result<Vec<(&'static str, AnyGraph)>, CompileError> {
    Ok(vec![
        ("agent", chat::agent()?),
        ("approval", questions::approval()?),
        ("chat", chat::chat()?),
        ("configured", plain::configured()?),
        ("counter", plain::counter()?),
        ("failing", plain::failing()?),
        ("fanout", plain::fanout()?),
        ("goto", plain::goto()?),
        ("memory", plain::memory()?),
        ("nested", questions::nested()?),
        ("parallel", questions::parallel()?),
        ("progress", plain::progress()?),
        ("slow", plain::slow()?),
    ])
}
