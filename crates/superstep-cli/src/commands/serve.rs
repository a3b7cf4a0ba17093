use std::time::Duration;

use superstep_server::{Server, ServerError, Settings, demo};

use crate::args::ServeArgs;
use crate::demo::{self as mail, Office, Pace};
use crate::out::Fail;

/// The time for a page of the handbook: long enough to see that the node runs.
const PACE: Duration = Duration::from_millis(60);

/// Serves the graphs of the demo until the process is told to end.
pub(crate) async fn serve(db: Option<&str>, args: ServeArgs) -> Result<(), Fail> {
    let mut settings =
        Settings::from_file(args.config.as_deref()).map_err(|error| failed(&error))?;
    if let Some(db) = db.filter(|db| !db.is_empty()) {
        settings.database = db.parse().map_err(|error| failed(&error))?;
    }
    settings.listen = args.listen.unwrap_or(settings.listen);
    settings.workers = args.workers.unwrap_or(settings.workers);
    let lease = args.lease.map(|seconds| Duration::from_secs(seconds.into()));
    settings.lease = lease.unwrap_or(settings.lease);
    if !args.api_key.is_empty() {
        settings.api_keys = args.api_key;
    }
    let graphs = demo::graphs().map_err(Fail::new)?;
    let server =
        graphs.into_iter().fold(Server::new(), |server, (name, graph)| server.graph(name, graph));
    let mail = mail::graph()?.with_context(Office::silent()).with_context(Pace(PACE));
    let server = server.graph("mail", mail).first_run("mail", mail::first_input());
    // Other commands need one thread only. Graphs that are served get all there are.
    let served = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        runtime
            .map_err(Fail::new)?
            .block_on(server.run_with(settings))
            .map_err(|error| failed(&error))
    });
    served.await.map_err(Fail::new)?
}

/// The error with its cause, on one line.
pub(super) fn failed(error: &ServerError) -> Fail {
    match std::error::Error::source(error) {
        Some(cause) => Fail::new(format_args!("{error}: {cause}")),
        None => Fail::new(error),
    }
}
