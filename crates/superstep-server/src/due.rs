//! Background tasks that do what is due, and sleep until more is.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::app::App;
use crate::time::Micros;

/// The longest wait: another process may have stored something that is due earlier.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The wait after the store has failed.
const RETRY_WAIT: Duration = Duration::from_secs(1);

/// Calls `work` whenever something is due, until the server is dropped or stops. It returns when the next is due.
///
/// `wake` ends a wait early. `failed` is what the log says if `work` fails.
pub(crate) async fn run_when_due<F, E>(
    app: Weak<App>,
    wake: Arc<Notify>,
    failed: &str,
    work: impl Fn(Arc<App>, Micros) -> F,
) where
    F: Future<Output = Result<Option<Micros>, E>>,
    E: fmt::Display,
{
    loop {
        let mut woken = pin!(wake.notified());
        woken.as_mut().enable();
        let Some(app) = app.upgrade().filter(|app| !app.is_stopping()) else { return };
        let now = Micros::now();
        // The call takes the only reference: a server that is dropped meanwhile ends the wait.
        let wait = match work(app, now).await {
            Ok(Some(next)) => now.until(next).min(WAIT_MAX),
            Ok(None) => WAIT_MAX,
            Err(error) => {
                tracing::error!(%error, "{failed}");
                RETRY_WAIT
            }
        };
        // Whether it was woken or the time is up, it looks again.
        drop(tokio::time::timeout(wait, woken).await);
    }
}
