//! Encrypted connections.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore, crypto};
use superstep_checkpoint::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) type Connector = MakeRustlsConnect;

/// Makes encrypted connections as the caller configured them, or trusting whom this machine trusts.
pub(crate) fn connector(
    config: &Config,
    given: Option<&Arc<ClientConfig>>,
) -> Result<Connector, Error> {
    if let Some(given) = given {
        return Ok(Connector::new(ClientConfig::clone(given)));
    }
    let mut roots = RootCertStore::empty();
    if may_encrypt(config) {
        // A certificate of the machine that cannot be read is skipped; if it was needed, the handshake says so.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() && config.get_ssl_mode() == SslMode::Require {
            return Err(Error::invalid(
                "`sslmode=require`, but this machine trusts no certificate authority; install `ca-certificates`, or give \
                 the authorities to `Options::tls`",
            ));
        }
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::backend("encrypted connections cannot be set up", error))?;
    Ok(Connector::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

/// Reading the certificates of a machine takes milliseconds, which a connection that is never encrypted need not wait for.
fn may_encrypt(config: &Config) -> bool {
    config.get_ssl_mode() != SslMode::Disable
        && config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)))
}
