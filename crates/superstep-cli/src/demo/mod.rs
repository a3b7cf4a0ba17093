//! The demo: a graph answers an e-mail, asks a person for approval, and survives a crash of its
//! process.

mod answers;
mod graph;
mod office;
mod view;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use superstep::checkpoint::{Checkpointer, Interrupt, Stored, TaskId, Value};
use superstep::{CompiledGraph, Data, Input, IntoInput, Mode, Outcome, RunError, Thread};
use superstep_sqlite::SqliteSaver;

pub use graph::{Mail, MailUpdate, PAGES, Pace, Verdict, graph};
pub use office::Office;

use crate::out::{Fail, Out};
use answers::Answers;
use view::View;

/// The thread of the demo.
pub const THREAD: &str = "mail-1";

/// How to run the demo.
#[derive(Debug)]
pub struct Demo {
    /// The directory of the database and the files.
    pub dir: PathBuf,
    /// Answers, instead of asking in the terminal.
    pub answers: Option<PathBuf>,
    /// Whether to start over.
    pub fresh: bool,
    /// The time for one page of the handbook.
    pub pace: Duration,
}

/// Runs the demo until it is done, or no answer is available.
///
/// # Errors
/// The directory cannot be used, or the run failed.
pub async fn run(demo: Demo, out: Out) -> Result<(), Fail> {
    let mut answers = Answers::new(demo.answers.as_deref())?;
    let what = |error: std::io::Error| {
        Fail::new(format_args!("the directory `{}` cannot be used: {error}", demo.dir.display()))
    };
    std::fs::create_dir_all(&demo.dir).map_err(what)?;
    let file = demo.dir.join("mail.db");
    let checkpointer = SqliteSaver::open(&file).await?;
    let office = Office::new(&demo.dir);
    if demo.fresh {
        checkpointer.delete_thread(THREAD).await?;
        office.clear().map_err(what)?;
    }
    let thread = thread(graph()?, checkpointer.clone(), office.clone(), demo.pace);
    let stored = checkpointer.get(THREAD, "", None).await?;
    let view = View { out, file, kept: stored.as_ref().map(finished).unwrap_or_default() };
    view.greet()?;
    let next = match &stored {
        None => first_mail().into_input(),
        Some(stored) => {
            let state = thread.get_state().await?;
            view.taken_up(&state, stored)?;
            if state.next.is_empty() {
                return view.ended(state.state(), &office);
            }
            match state.interrupts.first() {
                Some(question) => match ask(&mut answers, question, &view)? {
                    Some(answer) => Input::answer(answer),
                    None => return view.left_open(question),
                },
                None => Input::nothing(),
            }
        }
    };
    let mut next = next;
    loop {
        let ended = drive(&thread, next, &view).await;
        let question = match ended {
            Ok(Outcome::Done(mail)) => return view.ended(&mail, &office),
            Ok(Outcome::Interrupted(asked)) => asked.first().cloned(),
            // An answer that does not fit is refused, and the question stays open.
            Err(Failed::Run(RunError::Resume { message, pending })) => {
                view.refused(&message)?;
                pending.into_iter().next()
            }
            Ok(other) => return Err(Fail::new(format_args!("the run ended with {other:?}"))),
            Err(Failed::Run(error)) => return Err(error.into()),
            Err(Failed::View(fail)) => return Err(fail),
        };
        let question = question.ok_or_else(|| Fail::new("the run stopped without a question"))?;
        next = match ask(&mut answers, &question, &view)? {
            Some(answer) => Input::answer(answer),
            None => return view.left_open(&question),
        };
    }
}

/// The graph on its thread, with everything it needs.
fn thread(
    graph: CompiledGraph<Mail>,
    checkpointer: SqliteSaver,
    office: Office,
    pace: Duration,
) -> Thread<Mail> {
    graph
        .with_context(office)
        .with_context(Pace(pace))
        .with_checkpointer(checkpointer)
        .thread(THREAD)
}

/// The tasks and recorded calls of the open superstep that have finished.
fn finished(stored: &Stored) -> HashSet<TaskId> {
    stored.writes.iter().filter(|write| write.index >= 0).map(|write| write.task).collect()
}

/// Who writes the mail of the demo, and what.
const FIRST_MAIL: (&str, &str) =
    ("ada@example.org", "Hello, my order 1042 is late. Do you know where it is?");

/// The mail of the demo as the input of a run of a server.
pub(crate) fn first_input() -> serde_json::Value {
    let (from, text) = FIRST_MAIL;
    serde_json::json!({ "from": from, "text": text })
}

fn first_mail() -> MailUpdate {
    let (from, text) = FIRST_MAIL;
    Mail::update().from(from).text(text)
}

enum Failed {
    Run(RunError),
    View(Fail),
}

/// Drives the thread once, and shows what happens as it does.
async fn drive(
    thread: &Thread<Mail>,
    input: impl IntoInput<Mail>,
    view: &View,
) -> Result<Outcome<Mail>, Failed> {
    let mut run = thread.invoke(input).stream([Mode::Debug, Mode::Custom]);
    let mut step = None;
    while let Some(event) = run.next().await {
        let event = event.map_err(Failed::Run)?;
        if let Data::Outcome(outcome) = event.data {
            return Ok(outcome);
        }
        view.event(&event, &mut step).map_err(Failed::View)?;
    }
    Err(Failed::View(Fail::new("the run ended without an outcome")))
}

/// The answer to a question, if one is available.
fn ask(answers: &mut Answers, question: &Interrupt, view: &View) -> Result<Option<Value>, Fail> {
    view.question(question)?;
    answers.next(&view.out)
}
