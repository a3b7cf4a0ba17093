//! Drives `examples/chat.rs`, also in turns with the reference, which needs a Python that has it.

use std::path::Path;
use std::process::Command;

use super::*;

#[tokio::test]
async fn what_was_said_is_remembered() {
    let app = app().expect("a graph").with_checkpointer(MemorySaver::new());
    assert_eq!(say(&app, "Who am I?").await.expect("a reply"), "You did not tell me yet.");
    assert_eq!(say(&app, "I am Ada").await.expect("a reply"), "That was message 2.");
    assert_eq!(say(&app, "Who am I?").await.expect("a reply"), "You are Ada.");
    let chat = app.thread("me").get_state().await.expect("a state");
    assert_eq!(chat.state().messages.len(), 6);
}

fn said_in_python(file: &Path, text: &str) -> Option<String> {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples/chat.py");
    let output = Command::new(python).arg(script).arg(file).arg(text).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// Messages of one engine are messages in the other.
#[tokio::test]
async fn python_and_rust_take_turns() {
    let file = std::env::temp_dir().join(format!("superstep-chat-{}.db", std::process::id()));
    if said_in_python(&file, "I am Ada").is_some() {
        let checkpointer = SqliteSaver::open(&file).await.expect("a file");
        let app = app().expect("a graph").with_checkpointer(checkpointer);
        assert_eq!(say(&app, "Who am I?").await.expect("a reply"), "You are Ada.");
        let said = said_in_python(&file, "Thank you").expect("there was a Python before");
        let expected = [
            "HumanMessage I am Ada",
            "AIMessage Python saw 1.",
            "HumanMessage Who am I?",
            "AIMessage You are Ada.",
            "HumanMessage Thank you",
            "AIMessage Python saw 5.",
        ];
        assert_eq!(said.lines().collect::<Vec<_>>(), expected);
        assert_eq!(say(&app, "Who am I?").await.expect("a reply"), "You are Ada.");
    }
    for end in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(format!("{}{end}", file.display())));
    }
}
