//! A throw-away server must be gone when the test that used it is, or a test machine fills up with them; also when
//! that test crashed its server and never started it again.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

use std::net::TcpStream;
use std::path::PathBuf;

use superstep_testdb::Cluster;

fn address(cluster: &Cluster) -> String {
    let url = cluster.url();
    url.split('@').nth(1).unwrap().split('/').next().unwrap().to_owned()
}

fn folders() -> Vec<PathBuf> {
    let own = format!("superstep-postgres-{}-", std::process::id());
    let entries = std::fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&own));
    ours.map(|entry| entry.path()).collect()
}

#[test]
fn a_cluster_leaves_nothing_behind() {
    let mut cluster = Cluster::start().unwrap();
    let address = address(&cluster);
    assert!(TcpStream::connect(&address).is_ok());
    assert_eq!(folders().len(), 1);

    cluster.kill().unwrap();
    assert!(TcpStream::connect(&address).is_err(), "a killed server answers");
    cluster.restart().unwrap();
    assert!(
        TcpStream::connect(&address).is_ok(),
        "a server that was started again does not answer"
    );

    drop(cluster);
    assert!(TcpStream::connect(&address).is_err(), "the server outlived its cluster");
    assert_eq!(folders(), Vec::<PathBuf>::new());

    let mut crashed = Cluster::start().unwrap();
    crashed.kill().unwrap();
    drop(crashed);
    assert_eq!(folders(), Vec::<PathBuf>::new());
}
