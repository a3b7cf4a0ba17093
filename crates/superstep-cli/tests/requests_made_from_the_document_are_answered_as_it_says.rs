//! Shows that the OpenAPI document of `superstep serve` is true: requests that are made from it, right ones and wrong ones, are
//! answered with a status that it lists and a body that fits its schema, never with a server error, and never without a key.
//!
//! Sequences of requests are left out: they begin with ids that the server makes, so no seed repeats them.
//!
//! Needs schemathesis, whose program is named by `SUPERSTEP_TEST_SCHEMATHESIS`. Without it nothing is tested, and the output says
//! so.

use std::path::Path;
use std::process::Command;

#[path = "world/served.rs"]
mod served;

#[test]
fn requests_made_from_the_document_are_answered_as_it_says() {
    let Ok(schemathesis) = std::env::var("SUPERSTEP_TEST_SCHEMATHESIS") else {
        println!("NOT RUN: set SUPERSTEP_TEST_SCHEMATHESIS to the program of schemathesis");
        return;
    };
    let dir = served::directory("schemathesis");
    let server = served::Served::start(&dir.join("server.db"), Some("the-key"));
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/schemathesis/schemathesis.toml");
    let out = served::output(
        Command::new(schemathesis)
            .current_dir(&dir)
            .arg("--config-file")
            .arg(own)
            .args(["run", &format!("{}/openapi.json", server.url)])
            .args(["-H", "x-api-key: the-key", "--seed", "7", "--max-examples", "15"])
            .args(["--phases", "examples,coverage,fuzzing"])
            .args(["--workers", "2", "--request-timeout", "20", "--max-failures", "5"])
            .args(["--generation-database", "none", "--no-color"]),
    );
    // The line of the summary, such as "5415 generated, 5415 passed, 135 skipped".
    let tried =
        out.lines().find_map(|line| line.trim().split_once(" generated, ")?.0.parse::<u32>().ok());
    assert!(tried.is_some_and(|tried| tried >= 2_000), "too little was tried: {out}");
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}
