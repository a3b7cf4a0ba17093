//! A random graph, a deliberately naive engine that says what it does, and the real engine run on it.

pub(crate) mod behave;
pub(crate) mod channel;
pub(crate) mod compare;
pub(crate) mod graph;
pub(crate) mod join;
pub(crate) mod model;
pub(crate) mod real;
pub(crate) mod run;
pub(crate) mod trace;
