//! Our side: answers requests, one line each, until there are no more.

use std::collections::HashMap;
use std::io::{BufRead, Write};

use crate::failure::Failure;
use crate::floor::Recording;
use crate::protocol::{Answer, Measured, Request};
use crate::setting::{Places, Setting};
use crate::workloads;

/// What was recorded for floors, by workload, size, checkpointer and durability.
#[derive(Default)]
struct Recordings(HashMap<Request, Recording>);

/// Reads requests and writes answers.
pub(crate) fn serve(
    places: &Places,
    requests: impl BufRead,
    mut answers: impl Write,
) -> Result<(), Failure> {
    let mut recordings = Recordings::default();
    for line in requests.lines() {
        let answer = match answer(places, &mut recordings, &line?) {
            Ok(measured) => Answer::Measured(measured),
            Err(failure) => Answer::Failed { error: told(&*failure) },
        };
        writeln!(answers, "{}", serde_json::to_string(&answer)?)?;
        answers.flush()?;
    }
    Ok(())
}

fn answer(places: &Places, recordings: &mut Recordings, line: &str) -> Result<Measured, Failure> {
    let request: Request =
        serde_json::from_str(line).map_err(|error| format!("this is no request: {error}"))?;
    runtime(&request)?.block_on(async {
        if request.floor {
            return floor(places, recordings, &request).await;
        }
        let mut setting = Setting::open(places, &request, false).await?;
        workloads::run(&mut setting, &request).await
    })
}

/// A failure and what caused it.
fn told(failure: &(dyn std::error::Error + 'static)) -> String {
    let mut told = failure.to_string();
    let mut cause = failure.source();
    while let Some(error) = cause {
        told.push_str(&format!(": {error}"));
        cause = error.source();
    }
    told
}

async fn floor(
    places: &Places,
    recordings: &mut Recordings,
    request: &Request,
) -> Result<Measured, Failure> {
    let key = Request { rounds: 1, ..request.clone() };
    let recording = match recordings.0.remove(&key) {
        Some(recording) => recording,
        None => Recording::of(places, request).await?,
    };
    let recording = recordings.0.entry(key).or_insert(recording);
    recording.replay(places, request).await
}

/// One thread, as most of what is measured is one run; many threads of the graph use both cores.
fn runtime(request: &Request) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = match request.workload.as_str() {
        "concurrent" => tokio::runtime::Builder::new_multi_thread(),
        _ => tokio::runtime::Builder::new_current_thread(),
    };
    builder.enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;
    use crate::protocol::{Checkpointer, Durability};
    use crate::setting::tests::scratch;

    fn ask(places: &Places, requests: &[String]) -> Vec<Answer> {
        let mut answers = Vec::new();
        serve(places, requests.join("\n").as_bytes(), &mut answers).expect("the pipe is a buffer");
        let answers = String::from_utf8(answers).expect("answers are text");
        answers.lines().map(|line| serde_json::from_str(line).expect("an answer")).collect()
    }

    fn request(workload: &str, size: usize) -> Request {
        Request {
            workload: workload.to_owned(),
            size,
            checkpointer: Checkpointer::Memory,
            durability: Durability::Sync,
            rounds: 2,
            floor: false,
        }
    }

    /// A driver that sees the end of a pipe cannot say what was wrong, so a worker answers whatever it is asked.
    #[test]
    fn what_cannot_be_measured_is_answered_with_the_reason() {
        let places = Places { dir: scratch("reasons"), postgres: None };
        let unknown = serde_json::to_string(&request("lop", 3)).expect("JSON");
        let known = serde_json::to_string(&request("loop", 3)).expect("JSON");
        let nowhere = Request { checkpointer: Checkpointer::Postgres, ..request("loop", 3) };
        let nowhere = serde_json::to_string(&nowhere).expect("JSON");
        let answers = ask(&places, &[unknown, "{}".to_owned(), nowhere, known]);
        let failed = |error: &str| Answer::Failed { error: error.to_owned() };
        assert_eq!(answers[0], failed("there is no workload `lop`"));
        let Answer::Failed { error } = &answers[1] else {
            panic!("{:?} is no refusal", answers[1]);
        };
        assert!(error.starts_with("this is no request: missing field `workload`"), "{error}");
        assert_eq!(answers[2], failed("no PostgreSQL server was named"));
        assert!(matches!(&answers[3], Answer::Measured(measured) if measured.nanos.len() == 2));
    }

    /// The least size each workload takes.
    fn least(workload: &str) -> usize {
        match workload {
            "wide" => 300,
            "long" | "held" => 200,
            _ => 3,
        }
    }

    #[test]
    fn every_workload_of_the_plan_runs() {
        let places = Places { dir: scratch("every"), postgres: None };
        for workload in plan::names() {
            let request = serde_json::to_string(&request(workload, least(workload))).expect("JSON");
            let answers = ask(&places, &[request]);
            let [Answer::Measured(measured)] = &answers[..] else {
                panic!("`{workload}` was answered with {answers:?}");
            };
            assert_eq!(measured.nanos.len(), 2, "`{workload}` takes the rounds it is given");
        }
    }

    #[test]
    fn the_reference_has_every_workload_that_is_compared() {
        let program = include_str!("../python/reference.py");
        for workload in plan::names().filter(|name| plan::is_compared(name)) {
            assert!(program.contains(&format!("    \"{workload}\": ")), "`{workload}` is missing");
        }
    }
}
