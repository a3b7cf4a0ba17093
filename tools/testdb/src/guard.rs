//! Cleaning up also when whoever started a server is killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Waits for the end of its input, which comes when its maker is gone, and removes what is left.
///
/// The server keeps its process id in the first line of its lock file.
const SCRIPT: &str = r#"
trap "" INT TERM HUP
read -r _
server=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$server" ]; then
    kill -INT "$server" 2>/dev/null
    tries=0
    while kill -0 "$server" 2>/dev/null && [ $tries -lt 100 ]; do sleep 0.05; tries=$((tries + 1)); done
fi
rm -rf "$1"
"#;

/// A process that outlives this one just long enough to remove a folder and stop the server in it.
#[derive(Debug)]
pub(crate) struct Guard {
    process: Child,
    /// Closed when this process ends, in whatever way.
    alive: Option<ChildStdin>,
}

impl Guard {
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        // In a group of its own, or the interrupt from a terminal that ends its maker would end it too.
        let mut process = Command::new("sh")
            .args(["-c", SCRIPT, "sh"])
            .arg(folder)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let alive = process.stdin.take();
        Ok(Self { process, alive })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.alive.take());
        // There is nobody to tell, and the worst is a folder left in the temporary one.
        let _ = self.process.wait();
    }
}
