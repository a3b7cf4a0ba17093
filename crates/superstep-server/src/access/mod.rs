//! Who asks for an operation, what kind of operation it is, and what there is for them.
//!
//! Knows the store as far as lists of objects can be narrowed, and tenants. Does not know how somebody is recognised (`auth`).

mod caller;
mod kinds;

pub(crate) use caller::Caller;
pub use kinds::{Access, Action, Filter, Identity, Resource, Role};
