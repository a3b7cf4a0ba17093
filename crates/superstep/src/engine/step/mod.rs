//! Running the tasks of one superstep: attempts, time limits, output, cached results.
//!
//! What comes before a superstep and after its barrier is in `drive`. Knows nothing of looks from outside.

pub(in crate::engine) mod attempt;
pub(in crate::engine) mod cached;
pub(in crate::engine) mod entry;
pub(in crate::engine) mod futures;
pub(in crate::engine) mod output;
pub(in crate::engine) mod superstep;
pub(in crate::engine) mod tasks;
