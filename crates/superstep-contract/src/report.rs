use std::fmt;

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The promise holds.
    Passed,
    /// The checkpointer does not support the operation.
    Unsupported,
    /// The promise does not hold, and how.
    Failed(String),
}

/// The outcome of each case, by name.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Name and outcome, in the order they ran.
    pub cases: Vec<(&'static str, Outcome)>,
}

impl Report {
    /// The cases that failed, and how.
    pub fn failures(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.cases.iter().filter_map(|(name, outcome)| match outcome {
            Outcome::Failed(how) => Some((*name, how.as_str())),
            _ => None,
        })
    }

    /// How many cases passed.
    pub fn passed(&self) -> usize {
        self.cases.iter().filter(|(_, outcome)| *outcome == Outcome::Passed).count()
    }

    /// Asserts that every case passed.
    ///
    /// # Panics
    /// A case failed, or none passed; the message names every case that failed.
    pub fn assert_passed(&self) {
        assert!(self.passed() > 0, "no case passed:\n{self}");
        assert!(self.failures().next().is_none(), "{self}");
    }
}

/// The cases that did not pass, and the sums.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.cases {
            match outcome {
                Outcome::Passed => {}
                Outcome::Unsupported => writeln!(f, "not supported: {name}")?,
                Outcome::Failed(how) => writeln!(f, "FAILED: {name}\n    {how}")?,
            }
        }
        write!(f, "{} passed, {} failed", self.passed(), self.failures().count())
    }
}
