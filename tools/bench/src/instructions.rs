//! How many instructions the hot path takes: a figure that does not depend on what else the machine does.
//!
//! A worker runs under callgrind, once with few and once with more rounds of the same workload. The difference is what
//! the further rounds took, without what came before them.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Failure;
use crate::protocol::{Answer, Checkpointer, Durability, Request};

/// How far a figure may be above the recorded one, in percent.
const TOLERANCE: f64 = 5.0;

/// Rounds of the two runs: the first of each also fills what is filled once.
const ROUNDS: [usize; 2] = [2, 6];

const HOT: [(&str, usize, Checkpointer); 9] = [
    ("loop", 300, Checkpointer::None),
    ("loop", 300, Checkpointer::Memory),
    ("sequence", 300, Checkpointer::None),
    ("sequence", 300, Checkpointer::Memory),
    ("fan", 300, Checkpointer::None),
    ("fan", 300, Checkpointer::Memory),
    ("react", 100, Checkpointer::None),
    ("react", 100, Checkpointer::Memory),
    ("wide", 300, Checkpointer::None),
];

/// Instructions for each unit, by workload and checkpointer.
type Counts = BTreeMap<String, f64>;

/// Counts, and compares with what is recorded or records it.
pub(crate) fn instructions(dir: &Path, record: bool) -> Result<(), Failure> {
    std::fs::create_dir_all(dir)?;
    let recorded = read()?;
    let mut counts = Counts::new();
    for (workload, size, checkpointer) in HOT {
        let name = format!("{workload} {size} {}", checkpointer.name());
        let count = per_unit(dir, workload, size, checkpointer)?;
        println!("{}", line(&name, count, recorded.get(&name).copied()));
        counts.insert(name, count);
    }
    if record {
        let file = file();
        std::fs::write(&file, format!("{}\n", serde_json::to_string_pretty(&counts)?))?;
        println!("recorded in {}", file.display());
        return Ok(());
    }
    match worse(&counts, &recorded).as_slice() {
        [] => Ok(()),
        worse => Err(format!(
            "more than {TOLERANCE} % above what is recorded: {}; make it cheaper, or record it with `--record` and say why",
            worse.join(", ")
        )
        .into()),
    }
}

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json")
}

/// What is recorded; `None` if there is no record yet.
fn read() -> Result<Counts, Failure> {
    match std::fs::read_to_string(file()) {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Counts::new()),
        Err(error) => Err(format!("cannot read {}: {error}", file().display()).into()),
    }
}

fn change(count: f64, recorded: f64) -> f64 {
    (count / recorded - 1.0) * 100.0
}

fn line(name: &str, count: f64, recorded: Option<f64>) -> String {
    let compared = match recorded {
        Some(recorded) => format!("{recorded:>10.0} recorded {:>+7.2} %", change(count, recorded)),
        None => "not recorded".to_owned(),
    };
    format!("{name:<20} {count:>10.0} instructions for each unit, {compared}")
}

/// The names of those that are too far above the record.
fn worse(counts: &Counts, recorded: &Counts) -> Vec<String> {
    let known = counts.iter().filter_map(|(name, count)| Some((name, count, recorded.get(name)?)));
    let above = known.filter(|(_, count, recorded)| change(**count, **recorded) > TOLERANCE);
    above.map(|(name, _, _)| name.clone()).collect()
}

fn per_unit(
    dir: &Path,
    workload: &str,
    size: usize,
    checkpointer: Checkpointer,
) -> Result<f64, Failure> {
    let request = |rounds| Request {
        workload: workload.to_owned(),
        size,
        checkpointer,
        durability: Durability::Sync,
        rounds,
        floor: false,
    };
    let (few, units) = count(dir, &request(ROUNDS[0]))?;
    let (more, _) = count(dir, &request(ROUNDS[1]))?;
    let rounds = ROUNDS[1] - ROUNDS[0];
    Ok((more as f64 - few as f64) / (rounds as f64 * units as f64))
}

/// The instructions of a worker that answers one request, and the units of a round.
fn count(dir: &Path, request: &Request) -> Result<(u64, u64), Failure> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(std::env::current_exe()?).arg("worker").arg("--dir").arg(dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            "counting instructions needs `valgrind`, which is not installed".to_owned()
        }
        _ => format!("cannot run valgrind: {error}"),
    })?;
    if let Some(mut requests) = process.stdin.take() {
        writeln!(requests, "{}", serde_json::to_string(request)?)?;
    }
    let output = process.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let collected = collected(&said).ok_or_else(|| format!("valgrind counted nothing:\n{said}"))?;
    match serde_json::from_slice(&output.stdout)? {
        Answer::Measured(measured) => Ok((collected, measured.units)),
        Answer::Failed { error } => Err(error.into()),
    }
}

/// What callgrind says at its end: `==123== Collected : 4567`.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_well_above_the_record_is_worse() {
        let counts =
            |loops: f64| Counts::from([("loop".to_owned(), loops), ("new".to_owned(), 1.0)]);
        let recorded = Counts::from([("loop".to_owned(), 1000.0)]);
        assert_eq!(worse(&counts(1049.0), &recorded), Vec::<String>::new());
        assert_eq!(worse(&counts(1051.0), &recorded), ["loop"]);
        assert_eq!(worse(&counts(10.0), &recorded), Vec::<String>::new());
    }

    #[test]
    fn a_change_is_shown_in_percent() {
        let shown = line("loop", 1100.0, Some(1000.0));
        assert!(shown.contains("+10.00 %"), "{shown}");
        assert!(line("loop", 1100.0, None).ends_with("not recorded"));
    }

    #[test]
    fn the_count_is_found_in_what_callgrind_says() {
        assert_eq!(collected("==1== Events    : Ir\n==1== Collected : 4567\n"), Some(4567));
        assert_eq!(collected("==1== no such luck"), None);
    }
}
