//! The source of the demo's answers: the terminal, or a file.

use std::collections::VecDeque;
use std::io::{self, BufRead, IsTerminal};
use std::path::Path;

use serde_json::{Value as Json, json};
use superstep::checkpoint::Value;

use crate::out::{Fail, Out};

/// The source of answers.
#[derive(Debug)]
pub(super) enum Answers {
    Given(VecDeque<Json>),
    Terminal,
    /// No terminal and no file.
    Nobody,
}

impl Answers {
    /// Answers from this file, or else from the terminal if there is one.
    pub(super) fn new(file: Option<&Path>) -> Result<Self, Fail> {
        let Some(file) = file else {
            let there = io::stdin().is_terminal() && io::stdout().is_terminal();
            return Ok(if there { Self::Terminal } else { Self::Nobody });
        };
        let text = std::fs::read_to_string(file).map_err(|error| {
            Fail::new(format_args!("the answers in `{}` cannot be read: {error}", file.display()))
        })?;
        Ok(Self::Given(parse(&text)))
    }

    /// The next answer, if there is one.
    pub(super) fn next(&mut self, out: &Out) -> Result<Option<Value>, Fail> {
        match self {
            Self::Nobody => Ok(None),
            Self::Given(answers) => {
                let answer = answers.pop_front();
                if let Some(answer) = &answer {
                    out.line(format_args!("  > {answer}"))?;
                }
                Ok(answer.map(Value::from))
            }
            Self::Terminal => terminal(out),
        }
    }
}

/// A list in JSON, or one answer for each line.
fn parse(text: &str) -> VecDeque<Json> {
    if let Ok(Json::Array(all)) = serde_json::from_str(text) {
        return all.into();
    }
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(answer).collect()
}

/// `approve`, `reject`, `edit: a new text`, or JSON.
fn answer(line: &str) -> Json {
    if let Some(text) = line.strip_prefix("edit:") {
        return json!({ "edit": text.trim() });
    }
    serde_json::from_str(line).unwrap_or_else(|_| line.into())
}

fn terminal(out: &Out) -> Result<Option<Value>, Fail> {
    loop {
        out.line("  [a]pprove, [r]eject, or [e]dit? (ctrl-d leaves the question open)")?;
        let Some(choice) = read_line()? else { return Ok(None) };
        let answer = match choice.as_str() {
            "a" | "approve" => json!("approve"),
            "r" | "reject" => json!("reject"),
            "e" | "edit" => {
                out.line("  the text to send instead:")?;
                let Some(text) = read_line()? else { return Ok(None) };
                json!({ "edit": text })
            }
            "" => continue,
            // Whatever else was typed is given to the graph, which knows what fits.
            other => self::answer(other),
        };
        return Ok(Some(answer.into()));
    }
}

fn read_line() -> Result<Option<String>, Fail> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line)?;
    Ok((read > 0).then(|| line.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_lines_or_one_list() {
        let edit = json!({ "edit": "Sorry!" });
        assert_eq!(
            parse("approve\n\nedit: Sorry!\n7\n"),
            [json!("approve"), edit.clone(), json!(7)]
        );
        assert_eq!(parse(r#"["approve", {"edit": "Sorry!"}]"#), [json!("approve"), edit]);
        assert!(parse("").is_empty());
    }
}
