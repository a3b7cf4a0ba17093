//! Throw-away PostgreSQL servers for the tests of this workspace.
//!
//! [`Cluster::start`] makes a cluster in a temporary folder and starts a server for it on a free port. The server
//! really writes to disk (`fsync` is on), so what a test learns about a crash is true. When the cluster is dropped, or
//! the process that started it ends in whatever way, the server is stopped and the folder removed.
//!
//! Tests that only need *a* server ask [`server_url`] for the one that `cargo xtask test` has started.

mod binaries;
mod cluster;
mod guard;
mod schema;

pub use cluster::Cluster;
pub use schema::Schema;

/// Names the server tests use: a URL whose user may create databases.
pub const VARIABLE: &str = "SUPERSTEP_TEST_POSTGRES";

/// Adds the extension `vector` to the installed server, where that is possible, and says whether it is there.
///
/// Without it, tests of searches by meaning say that they were not run.
///
/// # Errors
/// No server is installed and none can be.
pub fn add_pgvector() -> std::io::Result<bool> {
    binaries::add_pgvector()
}

/// The server that tests are to use.
///
/// # Panics
/// There is none. A test that needs a server and has none has shown nothing, so it must not pass.
pub fn server_url() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "this test needs PostgreSQL: run `cargo xtask test`, which starts a server, or set {VARIABLE} to the URL \
             of one whose user may create databases"
        )
    })
}
