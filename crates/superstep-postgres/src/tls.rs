//! Encrypted connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore, crypto};
use superstep_checkpoint::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) type Connector = MakeRustlsConnect;

/// Takes what the driver does not know out of a URL or a list of pairs: the file with the authorities to trust, and the strictest
/// mode, which is the only one here.
pub(crate) fn take_roots(url: &str) -> Result<(String, Option<PathBuf>), Error> {
    let (place, options, mark) = match url.split_once('?') {
        Some((place, options)) if url.starts_with("postgres") => (place, options, '&'),
        _ if url.starts_with("postgres") => return Ok((url.to_owned(), None)),
        _ => ("", url, ' '),
    };
    let mut roots = None;
    let mut kept = Vec::new();
    for option in options.split(mark) {
        match option.split_once('=') {
            Some(("sslrootcert", file)) => roots = Some(unescape(file)?),
            Some(("sslmode", "verify-full")) => kept.push("sslmode=require"),
            _ => kept.push(option),
        }
    }
    let kept = kept.join(&mark.to_string());
    let question = if mark == '&' && !kept.is_empty() { "?" } else { "" };
    Ok((format!("{place}{question}{kept}"), roots))
}

/// A file name as it stands in a URL, with `%2F` for `/`, or in a list of pairs, with or without quotes.
fn unescape(text: &str) -> Result<PathBuf, Error> {
    let mut bytes = Vec::new();
    let mut rest = text.trim_matches('\'').as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, tail) = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => (hex(*high)? << 4 | hex(*low)?, tail),
            _ => (*first, tail),
        };
        bytes.push(byte);
        rest = tail;
    }
    let name = String::from_utf8(bytes);
    name.map(PathBuf::from).map_err(|_| Error::invalid("`sslrootcert` is not text"))
}

fn hex(digit: u8) -> Result<u8, Error> {
    let value = char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    value.ok_or_else(|| {
        Error::invalid("`%` in `sslrootcert` is not followed by two hexadecimal digits")
    })
}

/// Makes encrypted connections as the caller configured them, or trusting the authorities in a file, or whom this machine trusts.
pub(crate) fn connector(
    config: &Config,
    given: Option<&Arc<ClientConfig>>,
    roots: Option<&Path>,
) -> Result<Connector, Error> {
    let roots = match (given, roots) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid(
                "both `sslrootcert` and `Options::tls` say which authorities are trusted; leave one of them out",
            ));
        }
        (Some(given), None) => return Ok(Connector::new(ClientConfig::clone(given))),
        (None, Some(file)) => roots_from(file)?,
        (None, None) => roots_of_machine(config)?,
    };
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::backend("encrypted connections cannot be set up", error))?;
    Ok(Connector::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

fn roots_from(file: &Path) -> Result<RootCertStore, Error> {
    let unreadable = |error: &dyn std::fmt::Display| {
        Error::invalid(format_args!(
            "`sslrootcert` names `{}`, which cannot be used: {error}",
            file.display()
        ))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| unreadable(&error))? {
        let certificate = certificate.map_err(|error| unreadable(&error))?;
        roots.add(certificate).map_err(|error| unreadable(&error))?;
    }
    if roots.is_empty() { Err(unreadable(&"it has no certificate")) } else { Ok(roots) }
}

fn roots_of_machine(config: &Config) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    if may_encrypt(config) {
        // A certificate of the machine that cannot be read is skipped; if it was needed, the handshake says so.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() && config.get_ssl_mode() == SslMode::Require {
            return Err(Error::invalid(
                "`sslmode=require`, but this machine trusts no certificate authority; install `ca-certificates`, or name a \
                 file with the authorities as `sslrootcert`",
            ));
        }
    }
    Ok(roots)
}

/// Reading the certificates of a machine takes milliseconds, which a connection that is never encrypted need not wait for.
fn may_encrypt(config: &Config) -> bool {
    config.get_ssl_mode() != SslMode::Disable
        && config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_authorities_is_taken_out_of_the_url() {
        for (url, driver, file) in [
            ("postgres://u@h/d", "postgres://u@h/d", None),
            ("postgres://u@h/d?sslmode=require", "postgres://u@h/d?sslmode=require", None),
            ("postgresql://h/d?sslrootcert=/a.pem", "postgresql://h/d", Some("/a.pem")),
            (
                "postgres://h/d?sslmode=verify-full&sslrootcert=%2Fa%20b.pem&application_name=x",
                "postgres://h/d?sslmode=require&application_name=x",
                Some("/a b.pem"),
            ),
            ("host=h sslrootcert='/a.pem' dbname=d", "host=h dbname=d", Some("/a.pem")),
        ] {
            let taken = take_roots(url).expect("a URL");
            assert_eq!(taken, (driver.to_owned(), file.map(PathBuf::from)), "{url}");
        }
        assert!(take_roots("postgres://h/d?sslrootcert=%zz").is_err());
    }
}
