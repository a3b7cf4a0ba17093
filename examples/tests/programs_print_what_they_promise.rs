//! The programs that need no second process: what they print is what their page and the README say.

mod world;

use world::Program;

#[test]
fn the_first_program_is_the_one_in_the_readme() {
    let printed = Program::start(env!("CARGO_BIN_EXE_essay"), &[]).rest();
    assert_eq!(printed, ["Did you know? Pregel runs in supersteps."]);

    let (_, program) = include_str!("../src/bin/essay.rs").split_once("\n\n").expect("a page");
    assert!(include_str!("../../README.md").contains(program), "the README has another program");
}

#[test]
fn each_answer_goes_to_the_subgraph_that_asked() {
    let mut printed = Program::start(env!("CARGO_BIN_EXE_trip"), &[]).rest();
    printed[..2].sort();
    assert_eq!(
        printed,
        [
            "searching for a flight",
            "searching for a hotel",
            r#"which one? ["cheap flight","good flight"]"#,
            r#"which one? ["cheap hotel","good hotel"]"#,
            "booked: good flight, cheap hotel",
        ]
    );
}

#[test]
fn a_fan_out_of_200_keeps_199() {
    let printed = Program::start(env!("CARGO_BIN_EXE_research"), &[]).rest();
    assert_eq!(printed, ["199 found; failed: 117 (no such page)"]);
}
