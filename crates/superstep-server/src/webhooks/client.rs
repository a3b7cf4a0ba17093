//! Sending one webhook.
//!
//! The connection is made here, and not by a client library, so that it goes to the very address that was checked, and
//! nowhere else: no redirect is followed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore, crypto};
use sha2::Sha256;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::target::is_public;
use super::{Policy, Target};

/// How long a webhook may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends webhooks.
pub(crate) struct Client {
    policy: Policy,
    tls: TlsConnector,
}

/// A webhook that was not received; says why.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("{0}")]
    Target(String),
    #[error("`{0}` has no address that webhooks may go to")]
    Private(String),
    #[error("it took longer than {} s", TIMEOUT.as_secs())]
    Late,
    #[error("the answer was {0}")]
    Refused(StatusCode),
    #[error("the connection failed: {0}")]
    Connection(#[from] std::io::Error),
    #[error("the exchange failed: {0}")]
    Http(#[from] hyper::Error),
}

impl Client {
    /// A client that trusts what this machine trusts.
    pub(crate) fn new(policy: Policy) -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self { policy, tls: TlsConnector::from(Arc::new(config)) })
    }

    pub(crate) fn allows_private(&self) -> bool {
        self.policy.allow_private
    }

    /// Sends a body. Returns when it was received.
    pub(super) async fn send(
        &self,
        url: &str,
        id: &str,
        seconds: i64,
        body: String,
    ) -> Result<(), SendError> {
        let sent = tokio::time::timeout(TIMEOUT, self.exchange(url, id, seconds, body)).await;
        match sent.map_err(|_| SendError::Late)?? {
            status if status.is_success() => Ok(()),
            status => Err(SendError::Refused(status)),
        }
    }

    async fn exchange(
        &self,
        url: &str,
        id: &str,
        seconds: i64,
        body: String,
    ) -> Result<StatusCode, SendError> {
        let target = Target::read(url, self.policy.allow_private)
            .map_err(|error| SendError::Target(error.detail))?;
        let address = self.resolve(&target).await?;
        let path = target.uri.path_and_query().map_or("/", |path| path.as_str());
        let host = target.uri.authority().map_or("", |authority| authority.as_str());
        let mut request = Request::post(path)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, concat!("superstep/", env!("CARGO_PKG_VERSION")))
            .header("superstep-webhook-id", id);
        if let Some(secret) = &self.policy.secret {
            request = request.header("superstep-signature", signature(secret, seconds, &body));
        }
        let request = request.body(Body::from(body));
        let request = request.map_err(|error| SendError::Target(error.to_string()))?;
        let stream = TcpStream::connect(address).await?;
        if !target.tls {
            return post(stream, request).await;
        }
        let name = ServerName::try_from(target.host.clone())
            .map_err(|error| SendError::Target(error.to_string()))?;
        post(self.tls.connect(name, stream).await?, request).await
    }

    /// The address to connect to. What a name stands for can change, so it is checked each time.
    async fn resolve(&self, target: &Target) -> Result<SocketAddr, SendError> {
        let mut addresses = tokio::net::lookup_host((target.host.as_str(), target.port)).await?;
        let allowed = addresses.find(|at| self.policy.allow_private || is_public(at.ip()));
        allowed.ok_or_else(|| SendError::Private(target.host.clone()))
    }
}

async fn post(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Body>,
) -> Result<StatusCode, SendError> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        Ok(response.status())
    };
    let mut connection = std::pin::pin!(connection);
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        status = &mut exchange => status,
        ended = &mut connection => {
            ended?;
            exchange.await
        }
    }
}

/// The value of `superstep-signature`.
pub(super) fn signature(secret: &str, seconds: i64, body: &str) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
    mac.update(format!("{seconds}.{body}").as_bytes());
    let bytes = mac.finalize().into_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("t={seconds},v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with another implementation: `printf '1700000000.{}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn signatures_are_what_receivers_compute() {
        let expected =
            "t=1700000000,v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163";
        assert_eq!(signature("secret", 1_700_000_000, "{}"), expected);
    }
}
