//! Counting how cases went.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use serde_json::Value as Json;

use super::options::Options;
use super::trial::Outcome;

#[derive(Debug, Default)]
pub(super) struct Report {
    agree: usize,
    handed: usize,
    unstable: usize,
    differ: usize,
    excused: usize,
    /// How many cases each rule has excused.
    rules: BTreeMap<&'static str, usize>,
}

impl Report {
    pub(super) fn add(&mut self, case: &Json, index: usize, outcome: Outcome) {
        match outcome {
            Outcome::Agrees { handed } => {
                self.agree += 1;
                self.handed += usize::from(handed);
            }
            Outcome::Unstable => self.unstable += 1,
            Outcome::Excused { rules, handed } => {
                self.excused += 1;
                self.handed += usize::from(handed);
                for rule in rules {
                    *self.rules.entry(rule).or_default() += 1;
                }
            }
            Outcome::Differs { place, how, smaller } => {
                self.differ += 1;
                println!("DIFFERS case {index} on {place}\n     {how}");
                keep(case, smaller);
            }
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.differ == 0 && self.agree > 0
    }

    pub(super) fn summary(&self, options: &Options) -> String {
        let mut text = String::new();
        let (profile, seed) = (options.profile.name(), options.seed);
        let total = self.agree + self.unstable + self.differ + self.excused;
        for (rule, count) in &self.rules {
            let _ = writeln!(text, "{count:>6} excused by {rule}");
        }
        let _ = writeln!(
            text,
            "{profile}, seed {seed}: {total} cases, {} agree, {} differ as a rule says, {} depend on timing, {} differ; {} handed over",
            self.agree, self.excused, self.unstable, self.differ, self.handed
        );
        text
    }
}

/// Keeps a case that differs, for those who look into it.
fn keep(case: &Json, smaller: Option<Json>) {
    let folder = Path::new("target/fuzz/differ");
    let file = folder.join(format!("{}.json", case["name"].as_str().unwrap_or("case")));
    let text = serde_json::to_string(&smaller.unwrap_or_else(|| case.clone()));
    let written = text.map_err(|error| error.to_string()).and_then(|text| {
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&file, text))
            .map_err(|error| error.to_string())
    });
    match written {
        Ok(()) => println!("     kept in {}", file.display()),
        Err(problem) => println!("     cannot be kept: {problem}"),
    }
}
