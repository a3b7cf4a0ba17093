//! Drives `examples/from_python.rs`: the reference makes the thread, which needs a Python that has it.

use std::process::Command;

use super::*;

#[tokio::test]
async fn what_python_did_is_kept_and_the_answer_is_taken_here() {
    let Ok(python) = std::env::var("SUPERSTEP_TEST_PYTHON") else {
        println!("NOT RUN: set SUPERSTEP_TEST_PYTHON to a Python that has LangGraph");
        return;
    };
    let name = format!("superstep-from-python-{}.db", std::process::id());
    let file = std::env::temp_dir().join(name);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/from_python.py");
    let output = Command::new(python).arg(script).arg(&file).output().expect("Python");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "Send it to Ada?");

    let letter = finish(&file, true).await.expect("an end");
    assert_eq!((&*letter.to, letter.sent), ("Ada", true));
    assert_eq!(letter.log, ["drafted in Python", "answered in Rust"]);
    let again = finish(&file, true).await.expect_err("nothing is asked any more");
    assert!(again.to_string().contains("no open question to answer"), "{again}");
    for end in ["", "-wal", "-shm"] {
        drop(std::fs::remove_file(format!("{}{end}", file.display())));
    }
}
