//! The arguments of the program.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ArgsOf, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use serde_json::Value as Json;
use superstep_checkpoint::ThreadStatus;

const AFTER: &str = "\
Examples:
  superstep                                         run the demo
  superstep --db sqlite:agents.db threads           which threads are there?
  superstep --db postgres://app@localhost/agents inbox --json

Looking at a database changes nothing in it. Colours are for terminals; NO_COLOR turns them off.";

/// Durable graphs: a demo, and a look into databases of threads, ours or LangGraph's.
#[derive(Debug, Parser)]
#[command(name = "superstep", version, after_help = AFTER)]
pub(crate) struct Args {
    /// Where threads are: sqlite:FILE or postgres://USER:PASSWORD@HOST/NAME
    #[arg(long, global = true, env = "SUPERSTEP_DB", value_name = "URL", hide_env_values = true)]
    pub(crate) db: Option<String>,

    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Cmd>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Cmd {
    /// Answer a mail with a graph: live, interrupted, killed, continued
    Demo(DemoArgs),
    /// Serve the graphs of the demo over HTTP, for LangGraph's clients
    #[command(
        after_help = "Example:\n  superstep --db sqlite:agents.db serve --listen 127.0.0.1:2024\n\nWithout --db, everything is kept in superstep.db. Give --db memory to keep nothing.\nTo serve graphs of your own, write a program with `superstep_server::Server`."
    )]
    Serve(ServeArgs),
    /// List threads, the most recently changed first: done, waiting, failed, ready to go on, or damaged
    #[command(
        after_help = "Examples:\n  superstep --db sqlite:agents.db threads --limit 20\n  superstep --db sqlite:agents.db threads --status failed --metadata user=ada\n\nDamaged threads are listed whatever status is asked for."
    )]
    Threads(ThreadsArgs),
    /// Show a thread: its state, what comes next, what is asked, what failed
    #[command(
        after_help = "Example:\n  superstep --db sqlite:agents.db show mail-1 --at head~2\n\nWithout the graph, a channel that is stored as writes is shown as a list of them."
    )]
    Show {
        /// The thread
        thread: String,
        /// Another checkpoint than the head: an id, a part of one, or head~N
        #[arg(long, value_name = "CHECKPOINT")]
        at: Option<String>,
    },
    /// Show the checkpoints of a thread as a tree, with its branches
    History {
        /// The thread
        thread: String,
        /// The namespace of a graph inside a task
        #[arg(long, default_value = "")]
        ns: String,
    },
    /// Show what differs in the state at two checkpoints
    #[command(after_help = "Example:\n  superstep --db sqlite:agents.db diff mail-1 head~1 head")]
    Diff {
        /// The thread
        thread: String,
        /// The first checkpoint: an id, a part of one, head, or head~N
        a: String,
        /// The second checkpoint
        b: String,
    },
    /// List every open question of all threads, the oldest first
    Inbox,
    /// Answer an open question; whoever runs the graph next goes on with it
    #[command(
        after_help = "Examples:\n  superstep --db sqlite:mail.db answer mail-1 approve\n  superstep --db sqlite:mail.db answer mail-1 --id 5bf8... '{\"edit\": \"Sorry!\"}'\n  superstep --db sqlite:mail.db answer mail-1 --replace reject"
    )]
    Answer {
        /// The thread
        thread: String,
        /// The question, if several are open
        #[arg(long)]
        id: Option<String>,
        /// Replace an answer that no run has taken yet
        #[arg(long)]
        replace: bool,
        /// The answer: JSON, or text if it is no JSON
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Thin out threads; heads and open questions stay
    #[command(
        after_help = "Example:\n  superstep --db sqlite:agents.db prune --all --older-than 30d --yes"
    )]
    Prune(PruneArgs),
    /// Copy a thread
    Copy {
        /// The thread
        from: String,
        /// Its new name
        to: String,
        /// Do it
        #[arg(long)]
        yes: bool,
    },
    /// Delete threads
    Delete {
        /// The threads
        #[arg(required = true)]
        threads: Vec<String>,
        /// Do it
        #[arg(long)]
        yes: bool,
    },
    /// Write threads to standard output as JSON lines, without loss
    #[command(after_help = "Example:\n  superstep --db sqlite:a.db export > threads.jsonl")]
    Export {
        /// The threads; all if none is named
        threads: Vec<String>,
    },
    /// Store what an export holds; a file or tables that are not there are made
    #[command(
        after_help = "Examples:\n  superstep --db postgres://app@localhost/agents import threads.jsonl\n  superstep --db sqlite:new.db import threads.jsonl"
    )]
    Import {
        /// The export; standard input if none is named
        file: Option<PathBuf>,
    },
    /// Look for damage: rows that cannot be read, names that lead nowhere (exit code 1 if there is any)
    Check,
    /// Make the tables, or bring them up to date
    Migrate,
    /// Draw the graph of the demo
    Graph {
        /// How to draw it
        #[arg(long, value_enum, default_value_t = Drawing::Ascii)]
        format: Drawing,
    },
    /// Print completions for a shell
    #[command(
        after_help = "Example:\n  superstep completions bash > /etc/bash_completion.d/superstep"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, ArgsOf)]
#[command(
    after_help = "Example:\n  superstep demo --answers answers.txt    with one answer for each line: approve, reject, or edit: TEXT"
)]
pub(crate) struct DemoArgs {
    /// Where the demo keeps its database and files
    #[arg(long, default_value = "superstep-demo")]
    pub(crate) dir: PathBuf,
    /// Take answers from this file: one for each line, or a JSON list
    #[arg(long, value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,
    /// Begin anew
    #[arg(long)]
    pub(crate) fresh: bool,
    /// How long the slow task takes for one page, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 700)]
    pub(crate) pace: u64,
}

#[derive(Debug, ArgsOf)]
pub(crate) struct ServeArgs {
    /// Where to listen
    #[arg(
        long,
        env = "SUPERSTEP_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:2024"
    )]
    pub(crate) listen: SocketAddr,
    /// Let only those in who send this key; may be given several times
    #[arg(
        long,
        env = "SUPERSTEP_API_KEY",
        value_name = "KEY",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) api_key: Vec<String>,
    /// How many runs are driven at the same time
    #[arg(long, env = "SUPERSTEP_WORKERS", value_name = "N", default_value_t = 10)]
    pub(crate) workers: usize,
}

impl Default for DemoArgs {
    fn default() -> Self {
        Self { dir: "superstep-demo".into(), answers: None, fresh: false, pace: 700 }
    }
}

#[derive(Debug, ArgsOf)]
pub(crate) struct ThreadsArgs {
    /// At most this many
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Go on where a page ended; a page prints its end
    #[arg(long, value_name = "END")]
    pub(crate) after: Option<String>,
    /// Only threads with one of these: done, ready, waiting, failed
    #[arg(long, value_delimiter = ',', value_parser = status)]
    pub(crate) status: Vec<ThreadStatus>,
    /// Only threads with open questions
    #[arg(long)]
    pub(crate) questions: bool,
    /// Only threads whose head has this in its metadata; the value is JSON, or text if it is no JSON
    #[arg(long, value_name = "KEY=VALUE", value_parser = entry)]
    pub(crate) metadata: Vec<(String, Json)>,
}

fn status(word: &str) -> Result<ThreadStatus, String> {
    let known = ThreadStatus::ALL.map(ThreadStatus::as_str).join(", ");
    ThreadStatus::from_word(word).ok_or_else(|| format!("a status is one of {known}"))
}

fn entry(text: &str) -> Result<(String, Json), String> {
    let (key, value) = text.split_once('=').ok_or("metadata is asked for by KEY=VALUE")?;
    Ok((key.to_owned(), serde_json::from_str(value).unwrap_or_else(|_| value.into())))
}

#[derive(Debug, ArgsOf)]
pub(crate) struct PruneArgs {
    /// The threads
    #[arg(conflicts_with = "all")]
    pub(crate) threads: Vec<String>,
    /// All threads
    #[arg(long)]
    pub(crate) all: bool,
    /// Keep this many checkpoints of each namespace; one if nothing is said
    #[arg(long, value_name = "N", conflicts_with = "older_than")]
    pub(crate) keep: Option<usize>,
    /// Keep what is younger, such as 30d, 12h
    #[arg(long, value_name = "AGE", value_parser = crate::time::length)]
    pub(crate) older_than: Option<Duration>,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// Text
    Ascii,
    /// A Mermaid flowchart
    Mermaid,
}
