//! The arguments of the program.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ArgsOf, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use serde_json::Value as Json;
use superstep_checkpoint::ThreadStatus;
use superstep_server::Role;

const AFTER: &str = "\
Examples:
  superstep                                         run the demo
  superstep --db sqlite:agents.db threads           which threads are there?
  superstep --db postgres://app@localhost/agents inbox --json

Looking at a database changes nothing in it. Colours are for terminals; NO_COLOR turns them off.";

/// Durable graphs: a demo, a server, and tools for databases of threads of superstep and LangGraph
#[derive(Debug, Parser)]
#[command(name = "superstep", version, after_help = AFTER)]
pub(crate) struct Args {
    /// The database: sqlite:FILE or postgres://USER:PASSWORD@HOST/NAME
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
    /// Run the demo: a graph answers a mail, is interrupted, killed and continued
    Demo(DemoArgs),
    /// Serve the graphs of the demo over HTTP, for LangGraph's clients
    #[command(
        after_help = "Example:\n  superstep --db sqlite:agents.db serve --listen 127.0.0.1:2024\n\nWithout --db, everything is kept in superstep.db. Give --db memory to keep nothing.\nAny number of servers may use one PostgreSQL: --db postgres://app@localhost/agents.\nTo serve graphs of your own, write a program with `superstep_server::Server`."
    )]
    Serve(ServeArgs),
    /// Make, list or revoke the API keys of servers that use a database
    #[command(
        subcommand,
        after_help = "Examples:\n  superstep --db sqlite:agents.db keys add ci --tenant acme --role user\n  superstep --db sqlite:agents.db keys revoke ci"
    )]
    Keys(KeysCmd),
    /// List threads with their status, the most recently changed first
    #[command(
        after_help = "Examples:\n  superstep --db sqlite:agents.db threads --limit 20\n  superstep --db sqlite:agents.db threads --status failed --metadata user=ada\n\nDamaged threads are listed whatever status is asked for."
    )]
    Threads(ThreadsArgs),
    /// Show a thread: state, next nodes, open questions, errors
    #[command(
        after_help = "Example:\n  superstep --db sqlite:agents.db show mail-1 --at head~2\n\nWithout the graph, a channel that is stored as writes is shown as a list of them."
    )]
    Show {
        /// The thread
        thread: String,
        /// The checkpoint: an id, a part of one, or head~N [default: head]
        #[arg(long, value_name = "CHECKPOINT")]
        at: Option<String>,
    },
    /// Show the checkpoints of a thread as a tree, with its branches
    History {
        /// The thread
        thread: String,
        /// The namespace of a subgraph
        #[arg(long, default_value = "")]
        ns: String,
    },
    /// Compare the state at two checkpoints
    #[command(after_help = "Example:\n  superstep --db sqlite:agents.db diff mail-1 head~1 head")]
    Diff {
        /// The thread
        thread: String,
        /// The first checkpoint: an id, a part of one, head, or head~N
        a: String,
        /// The second checkpoint
        b: String,
    },
    /// Begin a branch at an older checkpoint: a copy of it becomes the head, and the next run continues there
    #[command(
        after_help = "Example:\n  superstep --db sqlite:agents.db fork mail-1 head~2 --yes\n\nThe old line stays. To change the state on the branch, use `update_state` in a program."
    )]
    Fork {
        /// The thread
        thread: String,
        /// The checkpoint: an id, a part of one, or head~N
        at: String,
        /// Do it
        #[arg(long)]
        yes: bool,
    },
    /// List every open question of all threads, the oldest first
    Inbox,
    /// Answer an open question; the next run of the thread uses the answer
    #[command(
        after_help = "Examples:\n  superstep --db sqlite:mail.db answer mail-1 approve\n  superstep --db sqlite:mail.db answer mail-1 --id 5bf8... '{\"edit\": \"Sorry!\"}'\n  superstep --db sqlite:mail.db answer mail-1 --replace reject"
    )]
    Answer {
        /// The thread
        thread: String,
        /// The question, if several are open
        #[arg(long)]
        id: Option<String>,
        /// Replace an answer that no run has used yet
        #[arg(long)]
        replace: bool,
        /// The answer: JSON, or text if it is not JSON
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Delete old checkpoints of threads; heads and open questions stay
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
    /// Export threads to standard output as JSON lines, lossless
    #[command(after_help = "Example:\n  superstep --db sqlite:a.db export > threads.jsonl")]
    Export {
        /// The threads [default: all]
        threads: Vec<String>,
    },
    /// Import an export; creates the file or tables if they do not exist
    #[command(
        after_help = "Examples:\n  superstep --db postgres://app@localhost/agents import threads.jsonl\n  superstep --db sqlite:new.db import threads.jsonl"
    )]
    Import {
        /// The export [default: standard input]
        file: Option<PathBuf>,
    },
    /// Check the database: rows that cannot be read, references to nothing (exit code 1 if there
    /// are any)
    Check,
    /// Create or migrate the tables
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
    /// The directory of the demo's database and files
    #[arg(long, default_value = "superstep-demo")]
    pub(crate) dir: PathBuf,
    /// Read answers from this file: one per line, or a JSON list
    #[arg(long, value_name = "FILE")]
    pub(crate) answers: Option<PathBuf>,
    /// Begin again
    #[arg(long)]
    pub(crate) fresh: bool,
    /// The time the slow task takes for one page, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 700)]
    pub(crate) pace: u64,
}

#[derive(Debug, ArgsOf)]
pub(crate) struct ServeArgs {
    /// Where to listen [default: 127.0.0.1:2024]
    #[arg(long, env = "SUPERSTEP_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Require this key from clients; may be given several times
    #[arg(
        long,
        env = "SUPERSTEP_API_KEY",
        value_name = "KEY",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub(crate) api_key: Vec<String>,
    /// The number of concurrent runs [default: 10]
    #[arg(long, env = "SUPERSTEP_WORKERS", value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// After how many seconds without a sign of life another process goes on with the runs of this one [default: 15]
    #[arg(
        long,
        env = "SUPERSTEP_LEASE",
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) lease: Option<u32>,
    /// A file with what no argument and no variable says [default: superstep.toml, if it is there]
    #[arg(long, env = "SUPERSTEP_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCmd {
    /// Make a key and print it; it cannot be shown again
    Add {
        /// Its name; answers that are given with the key are recorded under it
        name: String,
        /// The tenant, whose threads, assistants, crons and memory are the only ones that the key reaches [default: the default tenant]
        #[arg(long, default_value = "", hide_default_value = true)]
        tenant: String,
        /// What it allows: admin, user, viewer
        #[arg(long, default_value = "user")]
        role: Role,
    },
    /// List the keys, oldest first
    List,
    /// Revoke a key; servers refuse it from then on
    Revoke {
        /// Its name or its id
        key: String,
    },
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
    /// Continue after a page; each page prints its end
    #[arg(long, value_name = "END")]
    pub(crate) after: Option<String>,
    /// Only threads with one of these: done, ready, waiting, failed
    #[arg(long, value_delimiter = ',', value_parser = status)]
    pub(crate) status: Vec<ThreadStatus>,
    /// Only threads with open questions
    #[arg(long)]
    pub(crate) questions: bool,
    /// Only threads whose head has this metadata; the value is JSON, or text if it is not JSON
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
    /// Keep this many checkpoints of each namespace [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "older_than")]
    pub(crate) keep: Option<usize>,
    /// Keep checkpoints younger than this, such as 30d or 12h
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
    /// An SVG picture
    Svg,
}
