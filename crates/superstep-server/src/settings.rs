//! What a server is told by its arguments, its environment and a file.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use crate::server::{Database, ServerError};

/// Where a server listens, and where it keeps everything.
///
/// | Argument | Environment | If nothing is said |
/// | --- | --- | --- |
/// | `--db` | `SUPERSTEP_DB` | `sqlite:superstep.db` |
/// | `--listen` | `SUPERSTEP_LISTEN` | `127.0.0.1:2024` |
/// | `--api-key` | `SUPERSTEP_API_KEY` | no key is needed, and only this machine gets in |
/// | `--workers` | `SUPERSTEP_WORKERS` | 10 |
/// | `--lease` | `SUPERSTEP_LEASE` | 15 seconds: when a process has died, another one goes on with its runs after this time |
/// | `--webhook-secret` | `SUPERSTEP_WEBHOOK_SECRET` | webhooks are not signed |
/// | `--private-webhooks` | `SUPERSTEP_PRIVATE_WEBHOOKS` | `false`: webhooks go to public hosts only |
/// | `--config` | `SUPERSTEP_CONFIG` | `superstep.toml`, if it is there |
///
/// The file has the same names without the dashes in front, such as `listen = "127.0.0.1:2024"`. Arguments win over the environment, and
/// that wins over the file.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The database.
    pub database: Database,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Keys that let in.
    pub api_keys: Vec<String>,
    /// How many runs are driven at the same time.
    pub workers: usize,
    /// For how long this process is taken for alive after it was heard of.
    pub lease: Duration,
    /// Signs webhooks.
    pub webhook_secret: Option<String>,
    /// Whether webhooks may go to this machine and to private networks.
    pub private_webhooks: bool,
    /// How long running supersteps may take when the server is told to end.
    pub grace: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            database: Database::Sqlite("superstep.db".into()),
            listen: SocketAddr::from(([127, 0, 0, 1], 2024)),
            api_keys: Vec::new(),
            workers: 10,
            lease: Duration::from_secs(15),
            webhook_secret: None,
            private_webhooks: false,
            grace: Duration::from_secs(20),
        }
    }
}

impl Settings {
    /// What a file says, or `superstep.toml` in the working directory if none is named and it is there.
    ///
    /// # Errors
    /// The file cannot be read, a name in it is not known, or a value makes no sense. The error names the line.
    pub fn from_file(named: Option<&Path>) -> Result<Self, ServerError> {
        let mut settings = Self::default();
        crate::settings_file::apply(&mut settings, named)?;
        Ok(settings)
    }

    /// The settings of this process: its arguments, its environment where they say nothing, and a file where neither does.
    ///
    /// # Errors
    /// An argument or a name in the file is not known, or a value makes no sense.
    pub fn from_process() -> Result<Self, ServerError> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let given = read_arguments(std::env::args().skip(1))?;
        let config = given.iter().rev().find(|(name, _)| name == "config");
        let config = config.map(|(_, file)| file.clone()).or_else(|| variable("SUPERSTEP_CONFIG"));
        let settings = Self::from_file(config.as_deref().map(Path::new))?;
        settings.with(variable, given)
    }

    /// These settings, where neither the environment nor arguments say otherwise.
    fn with(
        mut self,
        variable: impl Fn(&str) -> Option<String>,
        arguments: Vec<(String, String)>,
    ) -> Result<Self, ServerError> {
        for name in
            ["db", "listen", "api-key", "workers", "lease", "webhook-secret", "private-webhooks"]
        {
            let variable_name = format!("SUPERSTEP_{}", name.replace('-', "_").to_uppercase());
            if let Some(value) = variable(&variable_name) {
                self.set(name, &value)?;
            }
        }
        for (name, value) in arguments.iter().filter(|(name, _)| name != "config") {
            self.set(name, value)?;
        }
        Ok(self)
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<(), ServerError> {
        let wrong =
            |what: &str| ServerError::Setup(format!("`{value}` is not {what} for `--{name}`"));
        match name {
            "db" => self.database = value.parse()?,
            "listen" => self.listen = value.parse().map_err(|_| wrong("an address and port"))?,
            "api-key" => self.api_keys = value.split(',').map(str::to_owned).collect(),
            "webhook-secret" => self.webhook_secret = Some(value.to_owned()),
            "private-webhooks" => {
                self.private_webhooks = value.parse().map_err(|_| wrong("true or false"))?;
            }
            "workers" => {
                self.workers = value.parse().map_err(|_| wrong("a number"))?;
            }
            "lease" => {
                let seconds: u32 = value.parse().map_err(|_| wrong("a number of seconds"))?;
                if seconds == 0 {
                    return Err(wrong("a number of seconds"));
                }
                self.lease = Duration::from_secs(seconds.into());
            }
            _ => return Err(unknown(&format!("--{name}"))),
        }
        Ok(())
    }
}

/// The arguments by their names.
fn read_arguments(
    mut arguments: impl Iterator<Item = String>,
) -> Result<Vec<(String, String)>, ServerError> {
    let mut given = Vec::new();
    while let Some(argument) = arguments.next() {
        let flag = argument.strip_prefix("--").ok_or_else(|| unknown(&argument))?;
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, arguments.next()),
        };
        let missing = || ServerError::Setup(format!("`--{name}` needs a value"));
        given.push((name.to_owned(), value.ok_or_else(missing)?));
    }
    Ok(given)
}

fn unknown(argument: &str) -> ServerError {
    ServerError::Setup(format!(
        "unknown argument `{argument}`; there are --db, --listen, --api-key, --workers, --lease, --webhook-secret, --private-webhooks and --config"
    ))
}

/// What a server says when it is ready.
pub(crate) fn greeting(address: SocketAddr, graphs: &[String], open: bool) -> String {
    let graph = graphs.first().map_or("GRAPH", String::as_str);
    let graphs = graphs.join(", ");
    let who = match open {
        true => {
            "Nobody needs a key, so only this machine gets in; make one with `superstep keys add`"
        }
        false => "Clients need a key",
    };
    format!(
        "Listening on http://{address} with the graphs {graphs}\n{who}\n\
         \n  Studio:     http://{address}/studio/\
         \n  curl:       curl -s http://{address}/runs/wait -H 'content-type: application/json' \
         -d '{{\"assistant_id\": \"{graph}\", \"input\": {{}}}}'\
         \n  Python:     get_client(url=\"http://{address}\").runs.wait(None, \"{graph}\", input={{}})\
         \n  JavaScript: new Client({{ apiUrl: \"http://{address}\" }}).runs.wait(null, \"{graph}\", {{ input: {{}} }})\n"
    )
}

/// Completes when the process is told to end.
pub(crate) async fn told_to_end() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminated = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut told) => drop(told.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)], arguments: &[&str]) -> Result<Settings, ServerError> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let given = read_arguments(arguments.iter().map(|argument| (*argument).to_owned()))?;
        Settings { workers: 5, ..Settings::default() }.with(variable, given)
    }

    #[test]
    fn arguments_win_over_the_environment_and_that_over_a_file() {
        let environment = [("SUPERSTEP_DB", "memory"), ("SUPERSTEP_WORKERS", "3")];
        let settings =
            read(&environment, &["--workers", "7", "--listen=127.0.0.1:0"]).expect("settings");
        assert_eq!((settings.workers, settings.listen.port()), (7, 0));
        assert_eq!(settings.database, Database::Memory);
        let settings = read(&environment, &[]).expect("settings");
        assert_eq!(settings.workers, 3, "the environment wins over the file");
        assert_eq!(read(&[], &[]).expect("settings").workers, 5);
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_secrets_are_not_repeated() {
        for (arguments, part) in [
            (&["--listen", "here"][..], "an address"),
            (&["--workers", "many"], "a number"),
            (&["--port", "80"], "unknown argument"),
            (&["serve"], "unknown argument"),
            (&["--db"], "needs a value"),
        ] {
            let text = read(&[], arguments).expect_err("refused").to_string();
            assert!(text.contains(part), "{text}");
        }
        let text = read(&[], &["--db", "mysql://me:secret@host"]).expect_err("refused").to_string();
        assert!(!text.contains("secret"), "{text}");
    }
}
