//! The server beside the stock server of the reference, and beside the least that could answer: over HTTP, with clients in this
//! process.

mod client;
mod load;
mod served;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};

use served::Process;
pub(crate) use served::{Who, serve};

use crate::failure::Failure;

/// How many clients ask at once.
const CLIENTS: [usize; 4] = [1, 16, 64, 256];

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct Size {
    time: Duration,
    first_events: usize,
    frames: usize,
    idle: usize,
    stalled: usize,
}

const FULL: Size = Size {
    time: Duration::from_secs(5),
    first_events: 500,
    frames: 4_000,
    idle: 10_000,
    stalled: 100,
};

const QUICK: Size =
    Size { time: Duration::from_secs(1), first_events: 50, frames: 500, idle: 500, stalled: 20 };

/// Measures and prints, and writes the figures.
pub(crate) fn compare(dir: &Path, quick: bool) -> Result<(), Failure> {
    let files = dir.join("files");
    std::fs::create_dir_all(&files)?;
    let size = if quick { QUICK } else { FULL };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let figures = runtime.block_on(measure(&files, size))?;
    print!("{}", table(&figures));
    std::fs::write(dir.join("server.json"), format!("{figures:#}\n"))?;
    std::fs::remove_dir_all(&files)?;
    Ok(())
}

async fn measure(files: &Path, size: Size) -> Result<Json, Failure> {
    let ours = measure_ours(files, size).await?;
    let floor = {
        let process = Process::start(Who::Floor, files, 0).await?;
        json!({ "ready_ms": ms(process.ready), "runs": runs(&process, size).await? })
    };
    let theirs = match measure_theirs(files, size).await {
        Ok(figures) => figures,
        Err(problem) => {
            println!("== NOT MEASURED: the reference: {problem}");
            Json::Null
        }
    };
    Ok(json!({ "ours": ours, "floor": floor, "theirs": theirs }))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

async fn runs(process: &Process, size: Size) -> Result<Json, Failure> {
    let mut rows = Vec::new();
    for clients in CLIENTS {
        let rate = load::runs(process.address, clients, size.time).await?;
        rows.push(json!({
            "clients": clients, "per_second": rate.per_second,
            "p50_ms": rate.millis(0.5), "p99_ms": rate.millis(0.99),
        }));
    }
    Ok(rows.into())
}

async fn measure_ours(files: &Path, size: Size) -> Result<Json, Failure> {
    let process = Process::start(Who::Ours, files, 10).await?;
    let mut figures = json!({ "ready_ms": ms(process.ready), "memory_idle": process.memory() });
    figures["runs"] = runs(&process, size).await?;
    figures["threads"] = load::threads(process.address, size.time).await?.per_second.into();
    let first = load::first_event(process.address, size.first_events).await?;
    figures["first_event"] = json!({ "p50_ms": first.millis(0.5), "p99_ms": first.millis(0.99) });
    figures["frames"] = load::frames(process.address, 50, size.frames).await?.into();
    drop(process);
    let process = Process::start(Who::Ours, files, 10).await?;
    let readers = load::idle(process.address, size.idle).await?;
    figures["memory_streams"] = json!({ "streams": size.idle, "mib": process.memory() });
    drop(readers);
    drop(process);
    let process = Process::start(Who::Ours, files, 10).await?;
    let held = load::stalled(&process, size.stalled, size.frames * 10).await?;
    figures["memory_stalled"] = json!({ "streams": size.stalled, "mib": held });
    Ok(figures)
}

/// The reference, with as many jobs as suit each number of clients best, and the best of both.
async fn measure_theirs(files: &Path, size: Size) -> Result<Json, Failure> {
    let process = Process::start(Who::Theirs, files, 10).await?;
    let mut figures = json!({ "ready_ms": ms(process.ready), "memory_idle": process.memory() });
    figures["runs"] = runs(&process, size).await?;
    figures["threads"] = load::threads(process.address, size.time).await?.per_second.into();
    let first = load::first_event(process.address, size.first_events.min(20)).await?;
    figures["first_event"] = json!({ "p50_ms": first.millis(0.5), "p99_ms": first.millis(0.99) });
    drop(process);
    let process = Process::start(Who::Theirs, files, 1).await?;
    figures["runs_one_job"] = runs(&process, size).await?;
    Ok(figures)
}

fn shown(figure: &Json) -> String {
    match figure.as_f64() {
        None => "–".to_owned(),
        Some(figure) if figure >= 100.0 => format!("{figure:.0}"),
        Some(figure) => format!("{figure:.2}"),
    }
}

fn table(figures: &Json) -> String {
    let mut rows = Vec::new();
    for (at, clients) in CLIENTS.iter().enumerate() {
        for (key, unit) in [("per_second", "runs/s"), ("p50_ms", "p50 ms"), ("p99_ms", "p99 ms")] {
            let what = format!("/runs/wait, {clients} clients, {unit}");
            rows.push((what, format!("/runs/{at}/{key}")));
        }
    }
    for (what, place) in [
        ("threads made a second, 16 clients", "/threads"),
        ("first event, p50 ms", "/first_event/p50_ms"),
        ("first event, p99 ms", "/first_event/p99_ms"),
        ("frames/s to 50 readers", "/frames"),
        ("memory idle, MiB", "/memory_idle"),
        ("memory with idle streams, MiB", "/memory_streams/mib"),
        ("memory with stalled readers, MiB", "/memory_stalled/mib"),
        ("start to /ok, ms", "/ready_ms"),
    ] {
        rows.push((what.to_owned(), place.to_owned()));
    }
    let mut text = "| | ours | reference | floor |\n| --- | ---: | ---: | ---: |\n".to_owned();
    for (what, place) in rows {
        let of = |who: &str| shown(figures[who].pointer(&place).unwrap_or(&Json::Null));
        let line = format!("| {what} | {} | {} | {} |\n", of("ours"), of("theirs"), of("floor"));
        text.push_str(&line);
    }
    text
}
