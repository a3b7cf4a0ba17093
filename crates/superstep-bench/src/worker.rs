//! Our side: answers requests, one line each, until there are no more.

use std::collections::HashMap;
use std::io::{BufRead, Write};

use crate::failure::Failure;
use crate::floor::Recording;
use crate::protocol::{Answer, Measured, Request};
use crate::setting::{Places, Setting};
use crate::workloads;

/// What was recorded for floors, by workload, size, saver and durability.
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
            Err(failure) => Answer::Failed { error: failure.to_string() },
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
