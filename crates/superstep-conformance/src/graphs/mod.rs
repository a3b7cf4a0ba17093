//! What shows only when a graph runs on a saver: what a long thread costs, and which of many processes goes on.

pub mod long;
pub mod messages;
pub mod race;
