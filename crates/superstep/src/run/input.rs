use serde::Serialize;
use superstep_checkpoint::{Error, InterruptId, Value, to_value};

use crate::engine::{CommandInput, Resume, StartValue, value_input};
use crate::node::{Command, ParentCommand};
use crate::state::{State, Writes};

/// The start of a run: its input or command.
#[derive(Debug)]
pub struct Input {
    pub(crate) kind: InputKind,
}

pub(crate) enum InputKind {
    Nothing,
    /// Continue if a question is due.
    Wake,
    Start(StartValue),
    Command(CommandInput),
    /// It cannot be serialized.
    Refused(Error),
}

impl std::fmt::Debug for InputKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Wake => "Wake",
            Self::Start(_) => "Start",
            Self::Command(_) => "Command",
            Self::Refused(_) => "Refused",
        })
    }
}

impl Input {
    /// No input: the thread continues where it is.
    pub fn nothing() -> Self {
        Self { kind: InputKind::Nothing }
    }

    /// No input: the thread continues if a question of it is due. If none is, nothing runs, and the run ends
    /// with [`RunError::NotDue`](crate::RunError::NotDue).
    pub fn wake() -> Self {
        Self { kind: InputKind::Wake }
    }

    /// Writes to the state.
    pub fn writes(writes: Writes) -> Self {
        Self { kind: InputKind::Start(StartValue::Writes(writes)) }
    }

    /// Data, checked against the channels of the graph when the run begins.
    pub fn value(value: Value) -> Self {
        Self { kind: InputKind::Start(value_input(value)) }
    }

    /// Serializes a value; the run is refused if that fails.
    pub fn serialized(value: impl Serialize) -> Self {
        match to_value(&value) {
            Ok(value) => Self::value(value),
            Err(error) => Self { kind: InputKind::Refused(error) },
        }
    }

    /// An answer to the one question that is open.
    pub fn answer(answer: Value) -> Self {
        Self::command(Resume::One(answer))
    }

    /// Answers to open questions, by id.
    pub fn answers(answers: impl IntoIterator<Item = (InterruptId, Value)>) -> Self {
        Self::command(Resume::ById(answers.into_iter().collect()))
    }

    /// An answer that cannot be serialized: the run is refused.
    pub(crate) fn unfit(question: Option<InterruptId>, error: Error) -> Self {
        Self::command(Resume::Invalid(question, error))
    }

    fn command(resume: Resume) -> Self {
        let command = CommandInput { resume, ..CommandInput::default() };
        Self { kind: InputKind::Command(command) }
    }

    /// Adds an update and targets, which makes this a command.
    #[must_use]
    pub fn with_command<S: State>(self, command: Command<S>) -> Self {
        let resume = match self.kind {
            InputKind::Command(command) => command.resume,
            InputKind::Nothing | InputKind::Wake | InputKind::Start(_) | InputKind::Refused(_) => {
                Resume::Nothing
            }
        };
        let kind = InputKind::Command(CommandInput { resume, ..command.into_command_input() });
        Self { kind }
    }
}

/// The input of a graph over `S`: an update, a part of the state, a command, data, or `()` to
/// continue where the thread is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the input of a graph over `{S}`",
    note = "the input is an update such as `{S}::update()`, a `Command`, a `Value`, or `()` to continue"
)]
pub trait IntoInput<S: State> {
    /// The input.
    fn into_input(self) -> Input;
}

impl<S: State> IntoInput<S> for () {
    fn into_input(self) -> Input {
        Input::nothing()
    }
}

impl<S: State> IntoInput<S> for Input {
    fn into_input(self) -> Input {
        self
    }
}

impl<S: State> IntoInput<S> for Writes {
    fn into_input(self) -> Input {
        Input::writes(self)
    }
}

impl<S: State> IntoInput<S> for Value {
    fn into_input(self) -> Input {
        Input::value(self)
    }
}

impl<S: State> IntoInput<S> for serde_json::Value {
    fn into_input(self) -> Input {
        Input::value(self.into())
    }
}

impl<S: State> IntoInput<S> for Command<S> {
    fn into_input(self) -> Input {
        Input { kind: InputKind::Command(self.into_command_input()) }
    }
}

/// Refused when the run begins: the outermost graph has no parent.
impl<S: State> IntoInput<S> for ParentCommand {
    fn into_input(self) -> Input {
        let ParentCommand { update, goto } = self;
        let command = CommandInput { resume: Resume::Nothing, update, goto, to_parent: true };
        Input { kind: InputKind::Command(command) }
    }
}

impl<S: State> Command<S> {
    fn into_command_input(self) -> CommandInput {
        let to_parent = self.target == crate::node::Target::Parent;
        CommandInput { resume: Resume::Nothing, update: self.update, goto: self.goto, to_parent }
    }
}
