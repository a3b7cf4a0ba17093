//! What shows only when a graph runs on a checkpointer: what a long thread costs, and which of many
//! processes continues.

pub mod long;
pub mod messages;
pub mod race;
