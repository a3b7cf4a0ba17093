//! Compiles and runs the programs of the guide and the README, so that what users read is true.
//!
//! Each chapter in `docs/guide/src` is the documentation of an item here, which makes its programs doc tests. The tests of this crate
//! check that no chapter is forgotten and that no link leads nowhere.

use std::path::PathBuf;

macro_rules! chapters {
    ($($item:ident: $file:literal,)*) => {
        $(
            #[cfg(doctest)]
            #[doc = include_str!(concat!("../../../", $file))]
            struct $item;
        )*

        /// The files whose programs are run, from the root of the repository.
        pub const CHAPTERS: &[&str] = &[$($file),*];
    };
}

chapters! {
    Readme: "README.md",
    Agents: "docs/guide/src/agents.md",
    ControlFlow: "docs/guide/src/control-flow.md",
    Durability: "docs/guide/src/durability.md",
    FirstSteps: "docs/guide/src/first-steps.md",
    FromLanggraph: "docs/guide/src/from-langgraph.md",
    Index: "docs/guide/src/index.md",
    Interrupts: "docs/guide/src/interrupts.md",
    Waiting: "docs/guide/src/waiting.md",
    Limits: "docs/guide/src/limits.md",
    Operations: "docs/guide/src/operations.md",
    RecordedCalls: "docs/guide/src/recorded-calls.md",
    Serving: "docs/guide/src/serving.md",
    State: "docs/guide/src/state.md",
    Storage: "docs/guide/src/storage.md",
    Streaming: "docs/guide/src/streaming.md",
    Studio: "docs/guide/src/studio.md",
    Subgraphs: "docs/guide/src/subgraphs.md",
    Testing: "docs/guide/src/testing.md",
    Users: "docs/guide/src/users.md",
}

/// A directory that is the current one until this value goes away, and the directory with it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

/// Gives a program of the guide a directory to leave its files in.
///
/// # Panics
/// It cannot be made.
pub fn scratch() -> Scratch {
    let dir = std::env::temp_dir().join(format!("superstep-guide-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory can be made for temporary files");
    std::env::set_current_dir(&dir).expect("a directory that was just made can be entered");
    Scratch(dir)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::env::set_current_dir(std::env::temp_dir()));
        drop(std::fs::remove_dir_all(&self.0));
    }
}
