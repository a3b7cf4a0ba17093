//! Stages: commands that run one after the other until one fails.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use superstep_testdb::Cluster;

use crate::args::Kills;

/// What a stage runs.
#[derive(Clone, Copy, Debug)]
enum Program {
    Cargo,
    /// A tool of ours, which an earlier stage has built.
    Built(&'static str),
    /// What makes a book of the guide, which an earlier stage has installed.
    Book,
    /// Checks dependencies.
    Deny,
}

/// One command, with a heading.
#[derive(Debug)]
pub(crate) struct Stage {
    title: &'static str,
    program: Program,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
    /// Whether there must be a PostgreSQL server.
    server: bool,
}

impl Stage {
    fn new(title: &'static str, args: &str) -> Self {
        let args = args.split_whitespace().map(str::to_owned).collect();
        Self { title, program: Program::Cargo, args, env: Vec::new(), server: false }
    }

    pub(crate) fn env(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.env.push((key, value.into()));
        self
    }

    /// Whether it runs anything of the reference.
    pub(crate) fn compares(&self) -> bool {
        !self.args.iter().any(|arg| ALONE.contains(&arg.as_str()))
    }

    fn with_server(mut self) -> Self {
        self.server = true;
        self
    }

    /// The command as one would type it.
    fn shown(&self) -> String {
        let env: String =
            self.env.iter().map(|(key, value)| format!("{key}=\"{value}\" ")).collect();
        let program = match self.program {
            Program::Cargo => "cargo",
            Program::Built(tool) => tool,
            Program::Book => "mdbook",
            Program::Deny => "cargo-deny",
        };
        format!("{env}{program} {}", self.args.join(" "))
    }

    /// Flags that happen to be set where this runs would change what is tested, and build
    /// everything again.
    fn command(&self) -> Command {
        let mut command = Command::new(match self.program {
            Program::Cargo => std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            Program::Built(tool) => target().join("debug").join(tool).into_os_string(),
            Program::Book => target().join("tools/bin/mdbook").into_os_string(),
            Program::Deny => target().join("tools/bin/cargo-deny").into_os_string(),
        });
        command.current_dir(root()).args(&self.args);
        command
            .env_remove("RUSTFLAGS")
            .env_remove("RUSTDOCFLAGS")
            .envs(self.env.iter().map(|(key, value)| (key, value)));
        command
    }
}

pub(crate) fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().expect("this crate stands in a folder of the workspace")
}

/// Where cargo builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Everything that must hold before a change is merged, the quick things first.
pub(crate) fn test() -> Vec<Stage> {
    vec![
        Stage::new("format", "fmt --all --check"),
        Stage::new("lints", "clippy --workspace --all-targets --all-features -- -D warnings"),
        Stage::new("tests", "test --workspace --all-features --no-fail-fast").with_server(),
        Stage::new("documentation", "doc --workspace --all-features --no-deps")
            .env("RUSTDOCFLAGS", "-D warnings"),
        // With the tests, so that the features of all dependencies are the same and nothing is built twice.
        Stage::new(
            "tools",
            "build --workspace --all-features --tests --bin conformance --bin superstep-api",
        ),
        built("superstep-api", api(Vec::new())),
        Stage::new("without features", "check -p superstep --no-default-features"),
        Stage::new(
            "feature `derive`",
            "check -p superstep --no-default-features --features derive",
        ),
        Stage::new(
            "feature `schemars`",
            "check -p superstep --no-default-features --features schemars",
        ),
        Stage::new(
            "feature `shutdown`",
            "check -p superstep --no-default-features --features shutdown",
        ),
        Stage::new(
            "feature `testing`",
            "check -p superstep --no-default-features --features testing",
        ),
        built("conformance", conformance(Vec::new())),
        built("conformance", conformance(vec!["--db".to_owned(), "sqlite".to_owned()])),
        built("conformance", conformance(vec!["--db".to_owned(), "postgres".to_owned()])),
    ]
}

/// Compares the public items of the libraries with the lists of them, or writes the lists.
pub(crate) fn api(args: Vec<String>) -> Stage {
    let mut stage = Stage::new("public interface", "run --quiet -p superstep-api --");
    stage.args.extend(args);
    stage
}

/// The conformance cases, all of them unless arguments say which.
pub(crate) fn conformance(args: Vec<String>) -> Stage {
    let mut stage = Stage::new("conformance", "run -p conformance-runner --");
    if args.is_empty() {
        stage.args.push("conformance/cases".to_owned());
    }
    let on_server =
        args.first().zip(args.get(1)).is_some_and(|(flag, db)| flag == "--db" && db == "postgres");
    stage.args.extend(args);
    if on_server { stage.with_server() } else { stage }
}

/// Hand-offs of these cases, all of them if none are named.
pub(crate) fn handoff(python: &Path, db: &str, args: &[String]) -> Stage {
    let command = format!("run -p conformance-runner -- --db {db} --handoff");
    let mut stage = Stage::new("hand-off", &command);
    stage.args.push(python.display().to_string());
    stage.args.extend_from_slice(args);
    if db == "postgres" { stage.with_server() } else { stage }
}

/// Random cases, compared with the reference.
pub(crate) fn fuzz(python: &Path, args: &[String]) -> Stage {
    let mut stage = Stage::new("random cases", "run -p conformance-runner -- --fuzz");
    stage.args.push(python.display().to_string());
    stage.args.extend_from_slice(args);
    let on_server = args.iter().any(|arg| matches!(arg.as_str(), "postgres" | "all"));
    if on_server { stage.with_server() } else { stage }
}

/// As many random cases as fit in a minute.
pub(crate) fn short_fuzz(python: &Path) -> [Stage; 2] {
    ["--profile plain --count 200 --handoff", "--profile wild --count 150 --handoff"].map(|line| {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        fuzz(python, &args)
    })
}

/// The bench, built as users build a release.
pub(crate) fn bench(args: Vec<String>) -> Stage {
    let on_server = uses_server(&args);
    let mut stage = Stage::new("bench", "run --release -p superstep-bench --");
    stage.args.extend(args);
    if on_server { stage.with_server() } else { stage }
}

/// Kills the server again and again.
pub(crate) fn kills(kills: &Kills) -> Stage {
    let test = "nothing_acknowledged_is_lost_when_the_server_is_killed";
    let args = format!("test -p superstep-cli --test {test} -- --nocapture");
    let stage = Stage::new("kills", &args)
        .env("SUPERSTEP_TEST_KILLS", kills.kills.to_string())
        .env("SUPERSTEP_TEST_SEED", kills.seed.to_string());
    match &kills.db {
        Some(db) => stage.env("SUPERSTEP_TEST_DB", db.clone()),
        None => stage,
    }
}

/// Whether a bench with these arguments measures anything on PostgreSQL.
fn uses_server(args: &[String]) -> bool {
    if args.iter().any(|arg| ALONE.contains(&arg.as_str())) {
        return false;
    }
    let checkpointers =
        args.iter().enumerate().find_map(|(at, arg)| match arg.strip_prefix("--checkpointers=") {
            Some(checkpointers) => Some(checkpointers),
            None => (arg == "--checkpointers").then(|| args.get(at + 1).map_or("", String::as_str)),
        });
    checkpointers.is_none_or(|checkpointers| checkpointers.contains("postgres"))
}

/// What is asked of the bench without a server and without the reference.
const ALONE: [&str; 4] = ["--instructions", "--server", "--help", "-h"];

/// Makes a book of the guide. Not part of the tests, which check its programs and links: what makes the book is as large as all
/// our dependencies together.
pub(crate) fn guide() -> [Stage; 2] {
    let tools = target().join("tools").display().to_string();
    let mut install =
        Stage::new("mdBook", "install --locked --no-default-features --features search");
    install.args.extend(["--root".to_owned(), tools, "mdbook@0.5.4".to_owned()]);
    let build = Stage { program: Program::Book, ..Stage::new("guide", "build docs/guide") };
    [install, build]
}

/// Checks what the build takes in: licences, repeated and banned crates, sources. Not part of the tests, because building the
/// tool takes as long as they do. The database of advisories is left out: it is not on a registry of packages.
pub(crate) fn deny() -> [Stage; 2] {
    let tools = target().join("tools").display().to_string();
    let mut install = Stage::new("cargo-deny", "install --locked");
    install.args.extend(["--root".to_owned(), tools, "cargo-deny@0.20.2".to_owned()]);
    let check = Stage::new("dependencies", "check licenses bans sources");
    [install, Stage { program: Program::Deny, ..check }]
}

/// The same stage with the tool that was built before.
pub(crate) fn built(tool: &'static str, mut stage: Stage) -> Stage {
    let given = stage.args.iter().position(|arg| arg == "--").map_or(0, |at| at + 1);
    stage.args.drain(..given);
    stage.program = Program::Built(tool);
    stage
}

/// Runs the stages up to the first that fails, and says how long each took.
pub(crate) fn run(stages: &[Stage]) -> ExitCode {
    let mut times = Vec::new();
    let mut server = Server::default();
    for stage in stages {
        println!("\n== {}: {}", stage.title, stage.shown());
        let start = Instant::now();
        let mut command = stage.command();
        let ready = if stage.server { server.lend(&mut command) } else { Ok(()) };
        let passed = match ready.and_then(|()| command.status()) {
            Ok(status) => status.success(),
            Err(error) => {
                eprintln!("cannot run this: {error}");
                false
            }
        };
        times.push((stage.title, start.elapsed()));
        if !passed {
            print!("\n{}", summary(&times));
            eprintln!("failed: {}", stage.title);
            return ExitCode::FAILURE;
        }
    }
    print!("\n{}", summary(&times));
    ExitCode::SUCCESS
}

/// The PostgreSQL server of the stages that need one: the one that is named where this runs, or else one that is thrown
/// away in the end.
#[derive(Default)]
struct Server(Option<Cluster>);

impl Server {
    /// Lets a command know where the server is, which is started for the first one.
    fn lend(&mut self, command: &mut Command) -> std::io::Result<()> {
        if std::env::var_os(superstep_testdb::VARIABLE).is_some() {
            return Ok(());
        }
        let cluster = match self.0.take() {
            Some(cluster) => cluster,
            None => {
                if !superstep_testdb::add_pgvector()? {
                    println!("no pgvector: nothing will be searched by meaning in PostgreSQL");
                }
                Cluster::start()?
            }
        };
        command.env(superstep_testdb::VARIABLE, self.0.insert(cluster).url());
        Ok(())
    }
}

fn summary(times: &[(&str, Duration)]) -> String {
    let total = times.iter().map(|(_, time)| *time).sum();
    let lines = times.iter().copied().chain([("all", total)]);
    lines.map(|(title, time)| format!("{:>8.1} s  {title}\n", time.as_secs_f64())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_shown_as_one_would_type_them() {
        let shown: Vec<String> = test().iter().map(Stage::shown).collect();
        assert_eq!(
            shown,
            [
                "cargo fmt --all --check",
                "cargo clippy --workspace --all-targets --all-features -- -D warnings",
                "cargo test --workspace --all-features --no-fail-fast",
                "RUSTDOCFLAGS=\"-D warnings\" cargo doc --workspace --all-features --no-deps",
                "cargo build --workspace --all-features --tests --bin conformance --bin superstep-api",
                "superstep-api ",
                "cargo check -p superstep --no-default-features",
                "cargo check -p superstep --no-default-features --features derive",
                "cargo check -p superstep --no-default-features --features schemars",
                "cargo check -p superstep --no-default-features --features shutdown",
                "cargo check -p superstep --no-default-features --features testing",
                "conformance conformance/cases",
                "conformance --db sqlite",
                "conformance --db postgres",
            ]
        );
    }

    #[test]
    fn arguments_replace_the_default_cases() {
        let stage = conformance(vec!["one.json".to_owned()]);
        assert_eq!(stage.shown(), "cargo run -p conformance-runner -- one.json");
        let stage = handoff(Path::new("py"), "sqlite", &["mine".to_owned()]);
        assert_eq!(
            stage.shown(),
            "cargo run -p conformance-runner -- --db sqlite --handoff py mine"
        );
    }

    #[test]
    fn random_cases_start_a_server_only_if_they_run_on_it() {
        let stage = |line: &str| {
            let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            fuzz(Path::new("py"), &args)
        };
        assert!(stage("--db all").server && stage("--db postgres --count 3").server);
        assert!(!stage("--db sqlite").server && !stage("").server);
        let shown = stage("--count 3").shown();
        assert_eq!(shown, "cargo run -p conformance-runner -- --fuzz py --count 3");
    }

    #[test]
    fn the_bench_starts_a_server_only_if_it_measures_on_it() {
        let uses = |line: &str| {
            bench(line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).server
        };
        assert!(uses("") && uses("--quick") && uses("--checkpointers none,postgres"));
        assert!(!uses("--checkpointers none,memory") && !uses("--checkpointers=sqlite --quick"));
        assert!(!uses("--instructions"));
    }

    /// A feature that nobody added here would never be checked alone.
    #[test]
    fn each_feature_is_checked_alone() {
        let manifest = std::fs::read_to_string(root().join("crates/superstep/Cargo.toml"))
            .expect("the library has a manifest");
        let features = manifest.split("[features]").nth(1).unwrap_or_default();
        let features = features.lines().take_while(|line| !line.starts_with('['));
        let names = features.filter_map(|line| Some(line.split_once('=')?.0.trim()));
        for name in names.filter(|name| *name != "default") {
            let alone = format!("--no-default-features --features {name}");
            assert!(test().iter().any(|stage| stage.shown().ends_with(&alone)), "{name}");
        }
    }

    #[test]
    fn the_summary_adds_up() {
        let times = [("format", Duration::from_millis(400)), ("lints", Duration::from_secs(61))];
        assert_eq!(summary(&times), "     0.4 s  format\n    61.0 s  lints\n    61.4 s  all\n");
    }
}
