//! The thread protocol: commands to a thread, and one stream of events over all of its runs.
//!
//! Each thread has a [`Session`]: a log of events with numbers from 1, which continues from run to run. A run of a thread that is
//! followed this way has a [`Publisher`] that writes to the log what happens in it, in the protocol's own words. Readers filter
//! the log ([`Filter`]); what a filter hides has a number too, so a client continues after any number it has seen.
//!
//! Events are stored before they are shown. They survive a restart, and are kept for an hour after the last one, at most the
//! newest 10,000 of a thread. In memory are the newest 512 of each thread that has readers or a run.
//!
//! Knows the queue, which its commands go to, and the forms on the wire. The endpoints that serve it are in `routes`.

mod command;
mod entry;
mod messages;
mod publish;
mod session;
mod subscription;
mod tools;

pub(crate) use command::{CommandError, Envelope, follow, run as run_command};
pub(crate) use publish::{MODES, Publisher, publish_failure};
pub(crate) use session::{Next, Session, SessionReader};
pub(crate) use subscription::Filter;
