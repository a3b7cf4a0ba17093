//! Cases that we answer differently on purpose.

use std::collections::HashMap;
use std::path::Path;

/// The table of `docs/divergences.md`: rows of case, reason, why, and the test that shows what we do instead.
#[derive(Debug, Default)]
pub(crate) struct Divergences {
    reasons: HashMap<String, String>,
}

impl Divergences {
    pub(crate) fn load(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| format!("cannot read `{}`: {error}", file.display()))?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let rows = text.lines().filter_map(|line| {
            let cells: Vec<&str> =
                line.trim().trim_matches('|').split('|').map(str::trim).collect();
            let case = cells.first()?.strip_prefix('`')?.strip_suffix('`')?;
            Some((case.to_owned(), (*cells.get(1)?).to_owned()))
        });
        Self { reasons: rows.collect() }
    }

    pub(crate) fn reason(&self, case: &str) -> Option<&str> {
        self.reasons.get(case).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_table_are_read_and_nothing_else() {
        let text = "# Title\n\n| case | reason | why |\n| --- | --- | --- |\n| `a_case` | F1 | because |\nprose | x |\n";
        let divergences = Divergences::parse(text);
        assert_eq!(divergences.reason("a_case"), Some("F1"));
        assert_eq!(divergences.reasons.len(), 1);
    }
}
