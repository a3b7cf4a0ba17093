//! The reference, as a process that records cases and runs parts of them on request.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};

use crate::handoff::Engine;

/// What the reference does with a case.
#[derive(Clone, Debug)]
pub(super) enum Recorded {
    Trace(Json),
    /// What it does depends on timing.
    Unstable,
}

/// A process for each kind of request, and a folder with what was recorded before.
pub(super) struct Reference {
    recorder: Engine,
    runner: Engine,
    folder: PathBuf,
}

impl Reference {
    pub(super) fn start(python: &str, folder: &Path) -> Result<Self, String> {
        std::fs::create_dir_all(folder)
            .map_err(|error| format!("cannot make `{}`: {error}", folder.display()))?;
        let start = |task: &str| {
            Engine::start("langgraph", Command::new(python).args(["conformance/record.py", task]))
        };
        Ok(Self { recorder: start("batch")?, runner: start("serve")?, folder: folder.to_owned() })
    }

    /// The trace of a case, in few orders of what runs side by side, or in many.
    pub(super) fn record(&mut self, case: &Json, thorough: bool) -> Result<Recorded, String> {
        let file = self.folder.join(format!("{}.json", fingerprint(case, thorough)));
        let known = std::fs::read_to_string(&file).ok();
        let known = known.and_then(|text| serde_json::from_str::<Json>(&text).ok());
        let answer = match known {
            Some(answer) => answer,
            None => {
                let answer = self.recorder.ask(&json!({ "case": case, "thorough": thorough }))?;
                // Without it the case is recorded again.
                drop(std::fs::write(&file, answer.to_string()));
                answer
            }
        };
        match (answer.get("trace"), answer["unstable"].as_str()) {
            (Some(trace), _) => Ok(Recorded::Trace(trace.clone())),
            (None, Some(_)) => Ok(Recorded::Unstable),
            (None, None) => Err(format!("langgraph answered {answer}")),
        }
    }

    /// Runs some of the calls of a case on a database.
    pub(super) fn run(
        &mut self,
        case: &Json,
        url: &str,
        calls: [usize; 2],
        carry: &Json,
        order: &str,
    ) -> Result<Json, String> {
        self.runner.run(
            &json!({ "case": case, "db": url, "calls": calls, "carry": carry, "schedule": order }),
        )
    }
}

fn fingerprint(case: &Json, thorough: bool) -> String {
    let mut hasher = DefaultHasher::new();
    // The name does not change what a case does.
    json!([case["graphs"], case["tasks"], case["script"], thorough]).to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
