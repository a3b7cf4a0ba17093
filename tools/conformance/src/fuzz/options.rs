//! What a run of random cases is asked for.

use crate::db::Db;
use crate::fuzz::generate::Profile;

#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) profile: Profile,
    pub(super) count: usize,
    pub(super) seed: u64,
    /// The number of the first case.
    pub(super) from: usize,
    pub(super) dbs: Vec<String>,
    /// Whether each case is also handed over between the engines.
    pub(super) handoff: bool,
    pub(super) minimise: bool,
    /// Print the cases, and run nothing.
    pub(super) show: bool,
}

impl Options {
    pub(super) fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            profile: Profile::Plain,
            count: 200,
            seed: 1,
            from: 0,
            dbs: vec!["memory".to_owned()],
            handoff: false,
            minimise: false,
            show: false,
        };
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("`{flag}` needs a value"));
            match &**flag {
                "--profile" => options.profile = Profile::parse(value()?)?,
                "--count" => options.count = number(value()?)?,
                "--from" => options.from = number(value()?)?,
                "--seed" => options.seed = number(value()?)? as u64,
                "--db" => options.dbs = dbs(value()?)?,
                "--handoff" => options.handoff = true,
                "--minimise" => options.minimise = true,
                "--show" => options.show = true,
                other => return Err(format!("`{other}` is not known here")),
            }
        }
        Ok(options)
    }

    pub(super) fn open(&self) -> Result<Vec<(String, Db)>, String> {
        self.dbs.iter().map(|name| Ok((name.clone(), Db::parse(name)?))).collect()
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("`{text}` is no number"))
}

fn dbs(text: &str) -> Result<Vec<String>, String> {
    match text {
        "all" => Ok(["memory", "sqlite", "postgres"].map(str::to_owned).to_vec()),
        "memory" | "sqlite" | "postgres" => Ok(vec![text.to_owned()]),
        _ => Err(format!("`{text}` is no database: memory, sqlite, postgres or all")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_and_mistakes_named() {
        let options =
            parsed("--profile wild --count 7 --seed 3 --db all --handoff").expect("options");
        assert_eq!((options.profile, options.count, options.seed), (Profile::Wild, 7, 3));
        assert_eq!(options.dbs, ["memory", "sqlite", "postgres"]);
        assert!(options.handoff && !options.minimise);
        assert_eq!(parsed("--count").err().as_deref(), Some("`--count` needs a value"));
        assert_eq!(parsed("--count x").err().as_deref(), Some("`x` is no number"));
        assert_eq!(parsed("--fast").err().as_deref(), Some("`--fast` is not known here"));
    }
}
