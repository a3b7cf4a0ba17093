//! The support agent is killed with SIGKILL while it works and while it waits. Finished nodes do not run again, the question is
//! still open, and the bank sees one refund.

mod world;

use world::{Program, dir};

const SUPPORT: &str = env!("CARGO_BIN_EXE_support");
const HOUR: &str = "3600000";
const QUESTION: &str = "refund 4200 cents? [yes/no]";

#[test]
fn where_it_was_killed() {
    let dir = dir("killed_agent");
    let desk = dir.to_str().expect("a path that is text");

    let mut working = Program::start(SUPPORT, &[desk, HOUR]);
    assert_eq!(working.line(), "reading the mail");
    assert_eq!(working.line(), "looking up order 1001");
    working.kill();

    let mut waiting = Program::start(SUPPORT, &[desk, "0"]);
    assert_eq!(waiting.line(), "looking up order 1001", "the mail is read");
    assert_eq!(waiting.line(), QUESTION);
    waiting.kill();

    let mut answered = Program::start(SUPPORT, &[desk, "0"]);
    assert_eq!(answered.line(), QUESTION, "the order is looked up");
    answered.answer("yes");
    assert_eq!(answered.rest(), ["You get 4200 cents back."]);

    let refunds = std::fs::read_to_string(dir.join("refunds.txt")).expect("a refund");
    assert_eq!(refunds.lines().count(), 1, "{refunds}");
    assert!(refunds.ends_with(" 4200\n"), "{refunds}");

    let again = Program::start(SUPPORT, &[desk, "0"]).rest();
    assert_eq!(again, ["You get 4200 cents back."], "nothing is left to run");
}

#[test]
fn without_a_refund_if_the_answer_is_no() {
    let dir = dir("refused_refund");
    let desk = dir.to_str().expect("a path that is text");
    let mut agent = Program::start(SUPPORT, &[desk, "0"]);
    let lines = [agent.line(), agent.line(), agent.line()];
    assert_eq!(lines[2], QUESTION);
    agent.answer("no");
    assert_eq!(agent.rest(), ["Sorry, no refund."]);
    assert!(!dir.join("refunds.txt").exists());
}
