//! The demo at a terminal: it is in colour, asks until the answer fits, takes a text to send instead, and lets go with ctrl-d.
//!
//! The terminal is the one that `script` of util-linux makes. Where there is no such program nothing is tested, and the output says
//! so.

#![cfg(unix)]

mod world;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use world::{Dir, text};

const PROMPT: &str = "[a]pprove, [r]eject, or [e]dit?";

/// The program in a terminal, and somebody who types.
struct Terminal {
    child: Child,
    screen: BufReader<ChildStdout>,
    seen: String,
}

impl Terminal {
    fn new(args: &[&str], no_color: bool) -> Option<Self> {
        let there = Command::new("script").arg("--version").output();
        if !there.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("util-linux")) {
            println!("NOT RUN: there is no `script` of util-linux to make a terminal");
            return None;
        }
        let program = env!("CARGO_BIN_EXE_superstep");
        let line = [&[program][..], args].concat().join(" ");
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
        command.env("TERM", "xterm").env_remove("SUPERSTEP_DB").env_remove("NO_COLOR");
        if no_color {
            command.env("NO_COLOR", "1");
        }
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a terminal");
        let screen = BufReader::new(child.stdout.take().expect("a screen"));
        Some(Self { child, screen, seen: String::new() })
    }

    /// Reads until a line has this in it.
    fn until(&mut self, wanted: &str) {
        let mut line = String::new();
        while self.screen.read_line(&mut line).expect("text") > 0 {
            self.seen.push_str(&line);
            if line.contains(wanted) {
                return;
            }
            line.clear();
        }
        panic!("no line with `{wanted}` in {}", self.seen);
    }

    fn types(&mut self, keys: &str) {
        let keyboard = self.child.stdin.as_mut().expect("a keyboard");
        keyboard.write_all(keys.as_bytes()).and_then(|()| keyboard.flush()).expect("typed");
    }

    /// Everything that was seen up to the end, which is a good one.
    fn end(mut self) -> String {
        while self.screen.read_line(&mut self.seen).expect("text") > 0 {}
        assert!(self.child.wait().expect("an end").success(), "{}", self.seen);
        self.seen
    }
}

fn demo(dir: &Dir, no_color: bool) -> Option<Terminal> {
    Terminal::new(&["demo", "--pace", "0", "--dir", text(&dir.demo())], no_color)
}

#[test]
fn it_asks_until_the_answer_fits() {
    let dir = Dir::new();
    let Some(mut terminal) = demo(&dir, false) else { return };
    terminal.until(PROMPT);
    terminal.types("perhaps\n");
    terminal.until("refused:");
    terminal.until(PROMPT);
    terminal.types("\n");
    terminal.until(PROMPT);
    terminal.types("e\n");
    terminal.until("the text to send instead:");
    terminal.types("Sorry, Ada!\n");
    let seen = terminal.end();
    assert!(seen.contains("sent: accepted for ada@example.org"), "{seen}");
    assert!(seen.contains("\u{1b}[32m"), "nothing is green: {seen}");
    let outbox = std::fs::read_to_string(dir.demo().join("outbox.txt")).expect("an outbox");
    assert!(outbox.trim_end().ends_with("Sorry, Ada!"), "{outbox}");
}

#[test]
fn one_letter_is_enough_and_colours_can_be_turned_off() {
    for (key, says) in [("a\n", "sent: accepted for"), ("r\n", "rejected: nothing was sent")] {
        let dir = Dir::new();
        let Some(mut terminal) = demo(&dir, true) else { return };
        terminal.until(PROMPT);
        terminal.types(key);
        let seen = terminal.end();
        assert!(seen.contains(says), "{seen}");
        assert!(!seen.contains('\u{1b}'), "colours although NO_COLOR is set: {seen}");
    }
}

#[test]
fn the_question_stays_open_when_the_terminal_closes() {
    let dir = Dir::new();
    let Some(mut terminal) = demo(&dir, false) else { return };
    terminal.until(PROMPT);
    terminal.types("\u{4}");
    let seen = terminal.end();
    assert!(seen.contains("the question stays open"), "{seen}");
    let Some(inbox) = Terminal::new(&["--db", &dir.demo_db(), "inbox", "--json"], false) else {
        return;
    };
    let seen = inbox.end();
    assert!(seen.contains("ada@example.org") && !seen.contains('\u{1b}'), "{seen}");
}
