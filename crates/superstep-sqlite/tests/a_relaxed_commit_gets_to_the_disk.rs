//! What a run under `Async` has committed is brought to the disk when there is time, however the file was named when it was
//! opened. If it cannot be, somebody is told: who writes next, or who closes the file.

mod world;

use std::path::Path;

use superstep_checkpoint::{AnyCheckpointer, Error};
use superstep_sqlite::SqliteSaver;
use world::{Dir, Line, chain};

/// Stores something, changes the world, stores something that need not be on the disk yet, and closes the file.
async fn commit_and_close(path: &Path, change: impl FnOnce()) -> Result<(), Error> {
    let checkpointer = SqliteSaver::open(path).await.expect("a file");
    let mut line = Line::new("t");
    line.put(&checkpointer).await;
    change();
    let relaxed = AnyCheckpointer::new(checkpointer.clone()).relaxed();
    relaxed.put(line.next()).await.expect("stored");
    drop(relaxed);
    checkpointer.close().await
}

fn beside(file: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// One test, because where a process is concerns all of it.
#[cfg(unix)]
#[tokio::test]
async fn however_the_file_was_named() {
    let (dir, elsewhere) = (Dir::new(), Dir::new());
    let place = dir.file().parent().expect("a directory").to_owned();
    let other = elsewhere.file().parent().expect("a directory").to_owned();

    commit_and_close(&place.join("plain.db"), || ()).await.expect("on the disk");

    drop(std::fs::File::create(place.join("linked.db")).expect("a file"));
    let link = other.join("link.db");
    std::os::unix::fs::symlink(place.join("linked.db"), &link).expect("a link");
    commit_and_close(&link, || ()).await.expect("on the disk");

    std::env::set_current_dir(&place).expect("a directory");
    let leave = || std::env::set_current_dir(&other).expect("a directory");
    commit_and_close(Path::new("relative.db"), leave).await.expect("on the disk");

    let gone = place.join("gone.db");
    let remove = || std::fs::remove_file(beside(&gone, "-wal")).expect("removed");
    let error = commit_and_close(&gone, remove).await.expect_err("it cannot be on the disk");
    assert!(chain(&error).contains("gone.db-wal"), "{}", chain(&error));
}
