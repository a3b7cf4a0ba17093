//! Whether a superstep takes as long at the end of a thread as at its beginning: `cargo bench -p superstep-sqlite --bench
//! long_thread`. Commits do not wait for the disk, whose mood would hide it.

use superstep_checkpoint::AnyCheckpointer;
use superstep_contract::graphs::long;
use superstep_sqlite::{SqliteSaver, Synchronous};

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let file = std::env::temp_dir().join(format!("superstep-long-{}.db", std::process::id()));
    let options = SqliteSaver::options().synchronous(Synchronous::Normal);
    let checkpointer = AnyCheckpointer::new(options.open(&file).await.expect("a file"));
    long::print_pace(&checkpointer, 1000, 9).await;
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
}
