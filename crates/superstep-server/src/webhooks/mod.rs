//! Webhooks: the end of a run is told to an address that its request names.
//!
//! What is to be told is stored with the end of the run, in one transaction, and sent by a background task until it is received
//! (a status from 200 to 299) or was refused [`deliver::ATTEMPTS_MAX`] times. It may be received twice: the header
//! `superstep-webhook-id` is the same then. With a secret, `superstep-signature` is `t=<unix seconds>,v1=<hex>`, where the
//! second part is the HMAC-SHA256 of `<unix seconds>.<body>`.
//!
//! Knows the store, and what a webhook looks like on the wire. Knows nothing of the queue, whose store call adds webhooks.

mod client;
mod deliver;
mod target;

pub(crate) use client::Client;
pub(crate) use deliver::run as run_webhooks;
pub(crate) use target::Target;

/// How webhooks are sent.
#[derive(Clone, Default)]
pub(crate) struct Policy {
    /// Signs what is sent.
    pub(crate) secret: Option<String>,
    /// Whether they may go to this machine and to private networks.
    pub(crate) allow_private: bool,
}
