//! Whether a superstep takes as long at the end of a thread as at its beginning: `cargo bench -p superstep-postgres --bench
//! long_thread`, on a server that is started for it. Commits do not wait for the disk, whose mood would hide it.

use superstep_checkpoint::AnyCheckpointer;
use superstep_contract::graphs::long;
use superstep_postgres::PostgresSaver;
use superstep_testdb::Cluster;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let cluster = Cluster::start().expect("a server");
    let url = format!("{}?options=-csynchronous_commit%3Doff", cluster.url());
    let checkpointer =
        AnyCheckpointer::new(PostgresSaver::connect(url).await.expect("a connection"));
    long::print_pace(&checkpointer, 1000, 5).await;
}
