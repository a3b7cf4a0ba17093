//! Random conversations with random graphs: what they are, what a naive model makes of them, and what the engine does.

pub(crate) mod model;
pub(crate) mod plan;
pub(crate) mod real;
