pub(crate) const HELP: &str = "\
cargo xtask <task>

  test                   everything that must hold before a change is merged
  conformance [ARGS]...  run conformance cases; without arguments those in conformance/cases
  handoff [CASES]...     hand cases to the reference and back, at every split, on SQLite and PostgreSQL; sets the reference up in target/
  fuzz [OPTIONS]...      make random cases, record them with the reference, and run them: [--profile plain|wild] [--count N] [--seed S]
                         [--from I] [--db memory|sqlite|postgres|all] [--handoff] [--minimise] [--show]
  kills [OPTIONS]...     kill the server again and again under load: [--kills N] [--seed S] [--db sqlite:FILE|postgres://...]
  bench [ARGS]...        measure beside the reference and the floor of the machine; `bench --help` says what can be chosen
  api                    write the public items of the libraries to docs/api; `test` compares
  deny                   check licences, bans and sources of all dependencies; sets cargo-deny up in target/
  guide                  build the guide in target/guide; sets mdBook up in target/
  studio                 build the page of the studio into crates/superstep-studio/dist; needs Node
  help                   this list
";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Api,
    Deny,
    Guide,
    Help,
    Studio,
    Test,
    /// With what the runner of the cases is given.
    Conformance(Vec<String>),
    /// With the files and directories of cases.
    Handoff(Vec<String>),
    /// With options for random cases.
    Fuzz(Vec<String>),
    /// With how often, the seed, and the database.
    Kills(Kills),
    /// With what the bench is given.
    Bench(Vec<String>),
}

/// How the server is killed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kills {
    pub(crate) kills: u64,
    pub(crate) seed: u64,
    /// A new SQLite file, if nothing is said.
    pub(crate) db: Option<String>,
}

impl Kills {
    fn read(args: Vec<String>) -> Result<Self, String> {
        let mut read = Self { kills: 200, seed: 1, db: None };
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            let value = args.next().ok_or_else(|| format!("`{name}` needs a value"))?;
            let number =
                || value.parse().map_err(|_| format!("`{name}` is `{value}`, not a number"));
            match name.as_str() {
                "--kills" => read.kills = number()?,
                "--seed" => read.seed = number()?,
                "--db" => read.db = Some(value),
                unknown => return Err(format!("unknown option `{unknown}`")),
            }
        }
        Ok(read)
    }
}

/// Finds out what is asked for, or what is wrong with it.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Task, String> {
    let mut args = args.into_iter();
    let Some(task) = args.next() else {
        return Err("no task given".to_owned());
    };
    let rest: Vec<String> = args.collect();
    let task = match task.as_str() {
        "conformance" => return Ok(Task::Conformance(rest)),
        "handoff" => return Ok(Task::Handoff(rest)),
        "fuzz" => return Ok(Task::Fuzz(rest)),
        "bench" => return Ok(Task::Bench(rest)),
        "kills" => return Kills::read(rest).map(Task::Kills),
        "api" => Task::Api,
        "deny" => Task::Deny,
        "guide" => Task::Guide,
        "studio" => Task::Studio,
        "help" | "--help" | "-h" => Task::Help,
        "test" => Task::Test,
        unknown => return Err(format!("unknown task `{unknown}`")),
    };
    match rest.first() {
        None => Ok(task),
        Some(extra) => Err(format!("unexpected argument `{extra}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Task, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn tasks_are_known_by_name() {
        assert_eq!(parsed("test"), Ok(Task::Test));
        assert_eq!(parsed("guide"), Ok(Task::Guide));
        assert_eq!(parsed("api"), Ok(Task::Api));
        assert_eq!(parsed("conformance"), Ok(Task::Conformance(vec![])));
        assert_eq!(parsed("handoff mine"), Ok(Task::Handoff(vec!["mine".to_owned()])));
        assert_eq!(parsed("fuzz --handoff"), Ok(Task::Fuzz(vec!["--handoff".to_owned()])));
        assert_eq!(parsed("bench --quick"), Ok(Task::Bench(vec!["--quick".to_owned()])));
        let kills = |kills, seed, db: Option<&str>| {
            Ok(Task::Kills(Kills { kills, seed, db: db.map(str::to_owned) }))
        };
        assert_eq!(parsed("kills"), kills(200, 1, None));
        assert_eq!(parsed("kills --seed 7 --kills 9 --db sqlite:a"), kills(9, 7, Some("sqlite:a")));
        for help in ["help", "--help", "-h"] {
            assert_eq!(parsed(help), Ok(Task::Help));
        }
    }

    #[test]
    fn the_runner_of_cases_gets_all_arguments() {
        let args = ["--only", "loop", "--help", "some/cases"].map(str::to_owned);
        assert_eq!(
            parsed("conformance --only loop --help some/cases"),
            Ok(Task::Conformance(args.to_vec()))
        );
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert_eq!(parsed(""), Err("no task given".to_owned()));
        assert_eq!(parsed("kills --often 3"), Err("unknown option `--often`".to_owned()));
        assert_eq!(parsed("kills --seed x"), Err("`--seed` is `x`, not a number".to_owned()));
        assert_eq!(parsed("tset"), Err("unknown task `tset`".to_owned()));
        assert_eq!(parsed("test --fast"), Err("unexpected argument `--fast`".to_owned()));
        assert_eq!(parsed("help me"), Err("unexpected argument `me`".to_owned()));
    }

    #[test]
    fn help_names_every_task() {
        let tasks = "test conformance handoff fuzz kills bench api deny guide studio help";
        for task in tasks.split(' ') {
            assert!(HELP.lines().any(|line| line.trim_start().starts_with(task)), "{task}");
        }
    }
}
