//! Serves graphs over HTTP, with the API of the LangGraph server: its clients work unchanged.
//!
//! [`Server`] holds graphs by name and the database that everything is kept in. A run is stored before it is acknowledged, and
//! continues at the next start if the process dies.
//!
//! The way of a request for a run: `routes` reads it (`wire`), `queue` stores it and wakes a worker, the worker drives the graph
//! and puts its events into a feed (`events`), from which any number of readers are served. `store` is the one place that knows
//! the database.

mod access;
mod app;
mod auth;
mod crons;
#[cfg(feature = "demo")]
pub mod demo;
mod due;
mod error;
mod events;
mod key_ring;
mod metrics;
mod protocol;
mod queue;
mod routes;
mod server;
mod settings;
mod settings_file;
mod store;
mod tenant;
mod threads;
mod time;
mod timers;
mod webhooks;
mod wire;

/// The head of a request.
pub use axum::http::request::Parts;

pub use access::{Access, Action, Filter, Identity, Resource, Role};
pub use auth::{Auth, Denied, by_role};
#[cfg(feature = "jwt")]
pub use auth::{BadTokenKey, Jwt};
pub use key_ring::{KeyInfo, KeyRing};
pub use server::{Database, Running, Server, ServerError};
pub use settings::Settings;
