//! Graceful shutdown on SIGTERM and ctrl-c.
//!
//! Deploys, autoscalers and ctrl-c stop a process. [`on_sigterm`] lets its runs reach a boundary
//! first, and stops them if they take too long. Either way their threads continue later, in another
//! process, with no input.
//!
//! ```no_run
//! # use superstep::prelude::*;
//! use std::time::Duration;
//! use superstep::{RunControl, shutdown};
//!
//! # async fn run(app: superstep::CompiledGraph<Table>) -> Result<(), Box<dyn std::error::Error>> {
//! # use superstep::state::Table;
//! let control = RunControl::new();
//! shutdown::on_sigterm(control.clone(), Duration::from_secs(25))?;
//! match app.thread("report-7").invoke(()).control(control).await? {
//!     Outcome::Drained(reason) => println!("stopped ({reason}); continues at the next start"),
//!     _ => println!("done"),
//! }
//! # Ok(())
//! # }
//! # use superstep::state::Table;
//! ```
//!
//! A process that has to end more than its runs, such as a server, waits for [`RunControl::draining`], and before it exits for
//! [`RunControl::drained`].

use std::io;
use std::time::Duration;

use crate::RunControl;

/// Drains all runs of `control` when the process gets SIGTERM or ctrl-c.
///
/// Runs have `grace` to reach the next boundary between supersteps. Then, or at a second signal,
/// tasks are dropped ([`RunControl::stop_now`]). Choose less than the time after which the
/// supervisor kills the process.
///
/// Call it inside a Tokio runtime; it listens until the runtime ends. From then on these signals do
/// not end the process by themselves.
///
/// # Errors
/// The signal handlers cannot be installed.
pub fn on_sigterm(control: RunControl, grace: Duration) -> io::Result<()> {
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        let Some(reason) = signals.next().await else { return };
        tracing::info!(reason, ?grace, "draining");
        control.request_drain(reason);
        tokio::select! {
            () = tokio::time::sleep(grace) => {}
            _ = signals.next() => {}
        }
        tracing::warn!(reason, "stopping what still runs");
        control.stop_now(reason);
    });
    Ok(())
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> Option<&'static str> {
        tokio::select! {
            got = self.terminate.recv() => got.map(|()| "SIGTERM"),
            got = self.interrupt.recv() => got.map(|()| "ctrl-c"),
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Option<&'static str> {
        tokio::signal::ctrl_c().await.ok().map(|()| "ctrl-c")
    }
}
