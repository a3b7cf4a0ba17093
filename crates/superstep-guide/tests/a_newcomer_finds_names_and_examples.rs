//! A search of the API documentation for a name of LangGraph finds ours, and the README names every example.

use std::fs;
use std::path::{Path, PathBuf};

/// Names that newcomers search for first.
const SEARCHED: [&str; 15] = [
    "AIMessage",
    "BaseCheckpointSaver",
    "BaseStore",
    "GraphInterrupt",
    "GraphRecursionError",
    "HumanMessage",
    "InMemorySaver",
    "InMemoryStore",
    "MessagesState",
    "Send",
    "ToolMessage",
    "ToolNode",
    "ainvoke",
    "astream",
    "thread_id",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn a_search_for_a_name_of_langgraph_finds_ours() {
    let sources = ["crates/superstep/src", "crates/superstep-checkpoint/src"];
    let sources = sources.iter().flat_map(|dir| files(&root().join(dir)));
    let text: String = sources.map(|file| fs::read_to_string(file).expect("a file")).collect();
    let found = |name: &&str| text.contains(&format!("#[doc(alias = \"{name}\")]"));
    let missing: Vec<_> = SEARCHED.iter().filter(|name| !found(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_readme_names_every_example() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let examples = files(&root().join("crates/superstep/examples"));
    let names = examples.iter().filter_map(|path| path.file_name()?.to_str());
    let rust: Vec<&str> = names.filter(|name| name.ends_with(".rs")).collect();
    assert!(rust.len() > 10, "{rust:?}");
    let missing: Vec<_> =
        rust.iter().filter(|name| !readme.contains(&format!("examples/{name})"))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
