//! A connection that is to be encrypted is, and only to a server whose certificate somebody vouches for. The server here has
//! a certificate that only the authority made for the test has signed.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::Line;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use superstep_checkpoint::{Checkpointer, Error};
use superstep_postgres::{Options, PostgresSaver};
use superstep_testdb::Cluster;

/// A file that goes away with this value.
struct Pem(PathBuf);

impl Pem {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("{name}-{}.pem", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Pem {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// The certificate of an authority, and a server with a certificate of it for 127.0.0.1.
fn authority_and_server() -> (String, Cluster) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let authority = authority.self_signed(&authority_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let server = server.signed_by(&key, &authority, &authority_key).unwrap();
    let cluster = Cluster::start_encrypted(&server.pem(), &key.serialize_pem()).unwrap();
    (authority.pem(), cluster)
}

async fn encrypted_connections(url: &str) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_ssl WHERE ssl";
    common::client(url).await.query_one(sql, &[]).await.unwrap().get(0)
}

async fn refusal(options: Options) -> String {
    let started = Instant::now();
    let error: Error =
        PostgresSaver::connect(options.reconnect_max(Duration::from_secs(600))).await.unwrap_err();
    // What is not trusted now will not be trusted later.
    assert!(started.elapsed() < Duration::from_secs(300), "it was tried again and again");
    error.to_string()
}

#[tokio::test]
async fn a_trusted_server_is_spoken_to_in_secret_and_another_one_not_at_all() {
    let (authority, cluster) = authority_and_server();
    let trusted = Pem::new("authority", &authority);
    let url = cluster.url();

    let file = trusted.0.display();
    let checkpointer =
        PostgresSaver::connect(format!("{url}?sslmode=require&sslrootcert={file}")).await.unwrap();
    checkpointer.put(Line::new("t").then(&[])).await.unwrap();
    assert!(checkpointer.get("t", "", None).await.unwrap().is_some());
    assert!(encrypted_connections(&url).await > 0);
    drop(checkpointer);

    // Nobody on this machine vouches for the authority of the test.
    let error = refusal(Options::new(format!("{url}?sslmode=require"))).await;
    assert!(error.contains("not trusted") && error.contains("`sslrootcert`"), "{error}");

    let stranger = CertificateParams::new(Vec::new()).unwrap();
    let stranger = stranger.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let stranger = Pem::new("stranger", &stranger.pem());
    let file = stranger.0.display();
    let error =
        refusal(Options::new(format!("{url}?sslmode=verify-full&sslrootcert={file}"))).await;
    assert!(error.contains("not trusted"), "{error}");

    // The certificate is for the number of the machine, and not for its name.
    let file = trusted.0.display();
    let named = url.replace("127.0.0.1", "localhost");
    let error = refusal(Options::new(format!("{named}?sslmode=require&sslrootcert={file}"))).await;
    assert!(error.contains("not trusted"), "{error}");

    let error = refusal(Options::new(format!("{url}?sslrootcert=/no/such.pem"))).await;
    assert!(error.contains("`/no/such.pem`"), "{error}");
}

#[tokio::test]
async fn a_server_that_cannot_encrypt_is_refused_if_it_must() {
    let authority = CertificateParams::new(Vec::new()).unwrap();
    let authority = authority.self_signed(&KeyPair::generate().unwrap()).unwrap();
    let trusted = Pem::new("unused", &authority.pem());
    let cluster = Cluster::start().unwrap();
    let file = trusted.0.display();
    let url = format!("{}?sslmode=require&sslrootcert={file}", cluster.url());
    let error = PostgresSaver::connect(url).await.unwrap_err();
    let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
    assert!(format!("{error}: {cause}").contains("TLS"), "{error}: {cause}");
}
