//! A search of the API documentation for a name of LangGraph finds ours, and the README names every example.

use std::fs;
use std::path::{Path, PathBuf};

/// Names that newcomers search for first.
const SEARCHED: [&str; 51] = [
    "AIMessage",
    "AIMessageChunk",
    "Annotated",
    "AsyncPostgresSaver",
    "AsyncSqliteSaver",
    "BaseCache",
    "BaseChannel",
    "BaseCheckpointSaver",
    "BaseStore",
    "BinaryOperatorAggregate",
    "Command.PARENT",
    "CompiledStateGraph",
    "DeltaChannel",
    "EmptyInputError",
    "EncryptedSerializer",
    "EphemeralValue",
    "GraphInterrupt",
    "GraphRecursionError",
    "HumanMessage",
    "InMemoryCache",
    "InMemorySaver",
    "InMemoryStore",
    "InvalidUpdateError",
    "LastValue",
    "MessagesState",
    "Overwrite",
    "PregelTask",
    "RemoveMessage",
    "RunnableConfig",
    "Runtime",
    "Send",
    "StateSnapshot",
    "SystemMessage",
    "ToolMessage",
    "ToolNode",
    "Topic",
    "TypedDict",
    "add_messages",
    "aget_state",
    "aget_state_history",
    "ainvoke",
    "astream",
    "aupdate_state",
    "create_react_agent",
    "entrypoint.final",
    "error_handler",
    "get_graph",
    "get_stream_writer",
    "path_map",
    "stream_mode",
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
    let crates = ["", "-checkpoint", "-encryption", "-macros", "-postgres", "-sqlite"];
    let sources = crates.map(|name| root().join(format!("crates/superstep{name}/src")));
    let sources = sources.iter().flat_map(|dir| files(dir));
    let text: String = sources.map(|file| fs::read_to_string(file).expect("a file")).collect();
    let found = |name: &&str| text.contains(&format!("#[doc(alias = \"{name}\")]"));
    let missing: Vec<_> = SEARCHED.iter().filter(|name| !found(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_readme_names_every_example() {
    let readme = fs::read_to_string(root().join("README.md")).expect("the README");
    let mut examples = files(&root().join("crates/superstep/examples"));
    examples.extend(files(&root().join("examples/src/bin")));
    let names = examples.iter().filter_map(|path| path.file_name()?.to_str());
    let rust: Vec<&str> = names.filter(|name| name.ends_with(".rs")).collect();
    assert!(rust.len() > 17, "{rust:?}");
    let named = |name: &&&str| {
        ["examples", "examples/src/bin"]
            .iter()
            .any(|dir| readme.contains(&format!("{dir}/{name})")))
    };
    let missing: Vec<_> = rust.iter().filter(|name| !named(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
