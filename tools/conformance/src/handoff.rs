//! Handing cases from one engine to the other on one database; see `conformance/FORMAT.md`, "Hand-off".

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

use crate::db::{self, Db};
use crate::divergences::Divergences;
use crate::script::Script;
use crate::{case_files, difference, read_case, runtime};

/// Answers one request a line, until there are no more.
pub(crate) fn serve() -> Result<bool, String> {
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let answer = match part(&line) {
            Ok(carry) => json!({ "carry": carry }),
            Err(problem) => json!({ "problem": problem }),
        };
        println!("{answer}");
    }
    Ok(true)
}

/// Runs the calls a request asks for.
fn part(request: &str) -> Result<Json, String> {
    let request: Json = serde_json::from_str(request).map_err(|error| error.to_string())?;
    let text = |key: &str| request[key].as_str().ok_or_else(|| format!("no `{key}` was given"));
    let case = match &request["case"] {
        case @ Json::Object(_) => case.clone(),
        _ => read_case(Path::new(text("case")?))?,
    };
    let index = |at: usize| request["calls"][at].as_u64().and_then(|n| usize::try_from(n).ok());
    let (Some(from), Some(to)) = (index(0), index(1)) else {
        return Err("`calls` is [FROM, TO]".to_owned());
    };
    let mut script = Script::new(&case, db::open(text("db")?)?);
    script.take_over(&request["carry"]);
    runtime()?.block_on(script.run(from..to))?;
    Ok(script.carry())
}

/// Compares entries that were put together by several engines with the stored trace.
pub(crate) fn judge(file: &Path, carry: &Path) -> Result<bool, String> {
    let text = std::fs::read_to_string(carry)
        .map_err(|error| format!("cannot read `{}`: {error}", carry.display()))?;
    let carry: Json = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let case = read_case(file)?;
    match judged(&case, &carry) {
        None => println!("PASS {}", file.display()),
        Some(how) => {
            println!("FAIL {}\n     {how}", file.display());
            return Ok(false);
        }
    }
    Ok(true)
}

fn judged(case: &Json, carry: &Json) -> Option<String> {
    difference(case, carry["entries"].as_array().cloned().unwrap_or_default())
}

/// Whether all that a case relies on is in the checkpointer.
pub(crate) fn can_hand_off(case: &Json) -> bool {
    let plain = json!([case["graphs"], case["tasks"], case["script"]]).to_string();
    let in_memory = ["\"cache\"", "\"clear_cache\"", "\"store_"];
    case["script"].as_array().is_some_and(|script| script.len() > 1)
        && case["handoff"] != false
        && case["ids"] != "pinned"
        && !in_memory.iter().any(|word| plain.contains(word))
}

/// One engine, running parts of cases on request.
pub(crate) struct Engine {
    name: &'static str,
    process: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Engine {
    pub(crate) fn start(name: &'static str, command: &mut Command) -> Result<Self, String> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = started.map_err(|error| format!("cannot start {name}: {error}"))?;
        let requests = process.stdin.take();
        let answers = process.stdout.take().ok_or_else(|| format!("{name} is silent"))?;
        Ok(Self { name, process, requests, answers: BufReader::new(answers) })
    }

    pub(crate) fn run(&mut self, request: &Json) -> Result<Json, String> {
        Ok(self.ask(request)?["carry"].take())
    }

    /// Its answer to a request.
    pub(crate) fn ask(&mut self, request: &Json) -> Result<Json, String> {
        let name = self.name;
        let gone = |error: std::io::Error| format!("{name} went away: {error}");
        if let Some(requests) = &mut self.requests {
            writeln!(requests, "{request}").and_then(|()| requests.flush()).map_err(gone)?;
        }
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(gone)?;
        let answer: Json = serde_json::from_str(&line)
            .map_err(|error| format!("{name} answered `{}`: {error}", line.trim()))?;
        match answer["problem"].as_str() {
            Some(problem) => Err(format!("{name} has a problem: {problem}")),
            None => Ok(answer),
        }
    }
}

/// Without requests both engines end by themselves.
impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.requests.take());
        drop(self.process.wait());
    }
}

/// At which of the calls of a case it is handed over.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Splits {
    Every,
    /// In the middle.
    One,
}

/// Hands every case that can be handed off in both directions.
pub(crate) fn hand_all(
    db: &Db,
    python: &str,
    splits: Splits,
    paths: &[String],
) -> Result<bool, String> {
    let divergences = Divergences::load(Path::new("docs/divergences.md"))?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut ours = Engine::start("superstep", Command::new(own).arg("--serve"))?;
    let reference = ["conformance/record.py", "serve"];
    let mut theirs = Engine::start("langgraph", Command::new(python).args(reference))?;
    let (mut passed, mut diverging, mut failed) = (0, 0, 0);
    for file in case_files(paths)? {
        let case = read_case(&file)?;
        if !can_hand_off(&case) {
            continue;
        }
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let calls = case["script"].as_array().map_or(0, Vec::len);
        let file = std::path::absolute(&file).map_err(|error| error.to_string())?;
        let splits = match splits {
            Splits::Every => 1..calls,
            Splits::One => calls / 2..calls / 2 + 1,
        };
        for split in splits {
            for first in ["superstep", "langgraph"] {
                let engines = match first {
                    "superstep" => (&mut ours, &mut theirs),
                    _ => (&mut theirs, &mut ours),
                };
                let found = hand(db, &case, &file, split, calls, engines);
                match (found, divergences.reason(&name)) {
                    (Ok(()), _) => passed += 1,
                    (Err(how), reason) => {
                        let word = if reason.is_some() { "DIVERGES" } else { "FAIL" };
                        *(if reason.is_some() { &mut diverging } else { &mut failed }) += 1;
                        println!("{word} {name}, {first} makes the first {split} of {calls} calls");
                        println!("     {how}");
                    }
                }
            }
        }
    }
    println!("{diverging} diverge as documented");
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0 && passed > 0)
}

fn hand(
    db: &Db,
    case: &Json,
    file: &Path,
    split: usize,
    calls: usize,
    (first, second): (&mut Engine, &mut Engine),
) -> Result<(), String> {
    let scratch = db.scratch()?;
    let request = |from: usize, to: usize, carry: Json| json!({ "case": file, "db": scratch.url(), "calls": [from, to], "carry": carry });
    let carry = first.run(&request(0, split, Json::Null))?;
    let carry = second.run(&request(split, calls, carry))?;
    judged(case, &carry).map_or(Ok(()), Err)
}
