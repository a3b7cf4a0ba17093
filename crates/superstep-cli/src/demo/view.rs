//! What the demo shows: one line for each thing that happens.

use std::collections::HashSet;
use std::path::PathBuf;

use superstep::checkpoint::{Interrupt, Stored, TaskId, Value};
use superstep::{Data, Event, Snapshot};

use super::graph::Mail;
use super::office::Office;
use super::{PAGES, THREAD};
use crate::out::{Fail, Out, brief, tame};

pub(super) struct View {
    pub(super) out: Out,
    pub(super) file: PathBuf,
    /// Tasks and recorded calls that had finished when this process took the thread up.
    pub(super) kept: HashSet<TaskId>,
}

impl View {
    pub(super) fn greet(&self) -> Result<(), Fail> {
        let out = &self.out;
        out.line(out.bold("superstep demo: a mail is answered"))?;
        let at =
            format!("thread `{THREAD}` in {}, process {}", self.file.display(), std::process::id());
        out.line(out.dim(at))
    }

    /// What an earlier process left, and what of it does not run again.
    pub(super) fn taken_up(&self, state: &Snapshot<Mail>, stored: &Stored) -> Result<(), Fail> {
        let out = &self.out;
        let step = stored.metadata.step;
        out.line("")?;
        if state.next.is_empty() {
            return out.line(out.bold("this thread is done; `--fresh` starts over"));
        }
        out.line(
            out.bold(format_args!("continuing where the thread was left, after superstep {step}")),
        )?;
        out.line(format_args!(
            "  {} everything up to superstep {step}: stored, does not run again",
            out.good("kept ")
        ))?;
        for task in &state.tasks {
            let name = &task.name;
            if task.result.is_some() {
                let why = "had finished when the process ended, does not run again";
                out.line(format_args!("  {} {name}: {why}", out.good("kept ")))?;
            } else if task.interrupts.is_empty() {
                let calls = calls_of(stored, name);
                out.line(format_args!(
                    "  {} {name}: had not finished, runs again",
                    out.ask("again")
                ))?;
                if calls > 0 {
                    let calls = if calls == 1 {
                        "its recorded call".to_owned()
                    } else {
                        format!("its {calls} recorded calls")
                    };
                    out.line(format_args!(
                        "  {} {name}: {calls}, not made again",
                        out.good("kept ")
                    ))?;
                }
            } else {
                out.line(format_args!(
                    "  {} {name}: its question is still open",
                    out.ask("waits")
                ))?;
            }
        }
        Ok(())
    }

    pub(super) fn event(&self, event: &Event<Mail>, step: &mut Option<i64>) -> Result<(), Fail> {
        match &event.data {
            Data::Custom(value) => self.progress(value),
            Data::Debug(debug) => {
                if matches!(*debug.payload, Data::Checkpoint(_)) {
                    return Ok(());
                }
                if *step != Some(debug.step) {
                    *step = Some(debug.step);
                    self.out.line("")?;
                    self.out.line(self.out.bold(format_args!("superstep {}", debug.step)))?;
                }
                self.task(&debug.payload)
            }
            _ => Ok(()),
        }
    }

    fn task(&self, event: &Data) -> Result<(), Fail> {
        let out = &self.out;
        match event {
            Data::TaskStart(task) if self.kept.contains(&task.id) => {
                out.line(format_args!("  {} {}: result from before", out.good("kept "), task.name))
            }
            Data::TaskStart(task) => out.line(format_args!("  {} {}", out.dim("start"), task.name)),
            Data::TaskEnd(task) => match (&task.error, &task.interrupts[..]) {
                (Some(error), _) => {
                    out.line(format_args!("  {} {}: {error:#}", out.bad("fails"), task.name))
                }
                (None, [_, ..]) => out.line(format_args!("  {} {}", out.ask("asks "), task.name)),
                (None, []) => {
                    let channels = task.result.as_map().into_iter().flat_map(|map| map.keys());
                    let channels = channels.filter(|name| !name.starts_with("__"));
                    let channels: Vec<_> = channels.map(String::as_str).collect();
                    let wrote = match channels.is_empty() {
                        true => String::new(),
                        false => format!(", wrote {}", channels.join(", ")),
                    };
                    out.line(format_args!("  {} {}{wrote}", out.good("done "), task.name))
                }
            },
            _ => Ok(()),
        }
    }

    fn progress(&self, value: &Value) -> Result<(), Fail> {
        let out = &self.out;
        let text = |key| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        out.line(format_args!("  {} {}: {}", out.dim("  ..."), text("node"), text("says")))?;
        // Far enough that the other task is stored, and far enough from the end to type a command.
        if value.get("page").and_then(Value::as_i64) == Some(PAGES as i64 / 6) {
            let pid = std::process::id();
            out.line(format_args!(
                "        {}",
                out.ask(format_args!(
                    "try `kill -9 {pid}` now, and start again: what was done is not done again"
                ))
            ))?;
        }
        Ok(())
    }

    pub(super) fn question(&self, question: &Interrupt) -> Result<(), Fail> {
        let out = &self.out;
        let text = |key| question.value.get(key).and_then(Value::as_str).unwrap_or_default();
        out.line("")?;
        out.line(out.bold("may this be sent?"))?;
        out.line(format_args!("  to:   {}", tame(text("to"))))?;
        out.line(format_args!("  text: {}", tame(text("draft"))))
    }

    pub(super) fn refused(&self, message: &str) -> Result<(), Fail> {
        self.out.line(format_args!("  {} {}", self.out.bad("refused:"), brief(message, 240)))
    }

    pub(super) fn left_open(&self, question: &Interrupt) -> Result<(), Fail> {
        let out = &self.out;
        let db = format!("sqlite:{}", self.file.display());
        out.line("")?;
        out.line(format_args!(
            "the question stays open (id {}); answer it whenever you like:",
            question.id
        ))?;
        out.line(format_args!("  superstep --db {db} inbox"))?;
        out.line(format_args!("  superstep --db {db} answer {THREAD} approve"))?;
        out.line("and start the demo again, which uses the answer")?;
        out.line(out.dim(STUDIO))
    }

    pub(super) fn ended(&self, mail: &Mail, office: &Office) -> Result<(), Fail> {
        let out = &self.out;
        out.line("")?;
        match &mail.receipt {
            Some(receipt) => out.line(out.good(format_args!("sent: {receipt}")))?,
            None => out.line(out.ask("rejected: nothing was sent"))?,
        }
        out.line("how often each thing ran, over all starts:")?;
        for (what, times) in office.journal()? {
            let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
            out.line(format_args!("  {what}: {times}"))?;
        }
        let db = format!("sqlite:{}", self.file.display());
        out.line(out.dim(format_args!("look at it with `superstep --db {db} history {THREAD}`")))?;
        out.line(out.dim(STUDIO))
    }
}

/// Where the same graph is seen in a browser. The thread there is one like this: those of a server have UUIDs as ids.
const STUDIO: &str =
    "see such a thread in a browser: `superstep serve`, then open http://127.0.0.1:2024/studio/";

/// How many recorded calls of a node have their result stored in the open superstep.
fn calls_of(stored: &Stored, node: &str) -> usize {
    let mut calls: Vec<TaskId> = stored
        .writes
        .iter()
        .filter(|write| {
            &*write.channel == "__return__" && write.path.contains(&format!("pull, {node}, "))
        })
        .map(|write| write.task)
        .collect();
    calls.dedup();
    calls.len()
}
