use std::io::ErrorKind;
use std::path::Path;

use serde::Deserialize;

use crate::server::ServerError;
use crate::settings::Settings;

/// The file that is read if no other one is named.
const DEFAULT: &str = "superstep.toml";

/// What a file can say: the same as arguments, under the same names.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    db: Option<String>,
    listen: Option<String>,
    api_key: Option<OneOrMany>,
    workers: Option<u32>,
    webhook_secret: Option<String>,
    private_webhooks: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a text or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Changes settings as a file says. The default file need not be there.
pub(crate) fn apply(settings: &mut Settings, named: Option<&Path>) -> Result<(), ServerError> {
    let path = named.unwrap_or(Path::new(DEFAULT));
    match std::fs::read_to_string(path) {
        Ok(text) => apply_text(settings, &text, path),
        Err(error) if error.kind() == ErrorKind::NotFound && named.is_none() => Ok(()),
        Err(error) => {
            Err(ServerError::Setup(format!("`{}` cannot be read: {error}", path.display())))
        }
    }
}

fn apply_text(settings: &mut Settings, text: &str, path: &Path) -> Result<(), ServerError> {
    let file: File = toml::from_str(text).map_err(|error| {
        // The line is named but not repeated: there may be a secret in it.
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        ServerError::Setup(format!("`{}`, line {line}: {}", path.display(), error.message()))
    })?;
    let mut set = |name: &str, value: Option<String>| match value {
        Some(value) => settings.set(name, &value).map_err(|error| {
            ServerError::Setup(format!("`{}`, `{name}`: {error}", path.display()))
        }),
        None => Ok(()),
    };
    set("db", file.db)?;
    set("listen", file.listen)?;
    set("workers", file.workers.map(|workers| workers.to_string()))?;
    set("webhook-secret", file.webhook_secret)?;
    set("private-webhooks", file.private_webhooks.map(|allowed| allowed.to_string()))?;
    match file.api_key {
        None => {}
        Some(OneOrMany::One(key)) => settings.api_keys = vec![key],
        Some(OneOrMany::Many(keys)) => settings.api_keys = keys,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Database;

    fn read(text: &str) -> Result<Settings, ServerError> {
        let mut settings = Settings::default();
        apply_text(&mut settings, text, Path::new("a.toml")).map(|()| settings)
    }

    #[test]
    fn a_file_says_what_arguments_say() {
        let settings = read(
            "# All of it.\ndb = \"memory\"\nlisten = \"127.0.0.1:0\"\napi-key = [\"a\", \"b\"]\n\
             workers = 3\nwebhook-secret = \"s\"\nprivate-webhooks = true\n",
        )
        .expect("settings");
        assert_eq!(settings.database, Database::Memory);
        assert_eq!((settings.listen.port(), settings.workers), (0, 3));
        assert_eq!(settings.api_keys, ["a", "b"]);
        assert!(settings.private_webhooks && settings.webhook_secret.is_some());
        assert_eq!(read("api-key = \"a\"").expect("settings").api_keys, ["a"]);
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_line_and_without_secrets() {
        for (text, line, part) in [
            ("db = \"memory\"\nworker = 3", "line 2", "`worker`"),
            ("db = \"memory\"\n\nworkers = \"many\"", "line 3", "expected u32"),
            ("api-key = 12345", "line 1", "list of texts"),
            ("listen = \"here\"", "`listen`", "an address"),
            ("db =", "line 1", ""),
        ] {
            let error = read(text).expect_err("refused").to_string();
            assert!(error.contains("`a.toml`") && error.contains(line), "{error}");
            assert!(error.contains(part) && !error.contains("12345"), "{error}");
        }
    }
}
