//! The commands.

mod answer;
mod check;
mod keys;
mod maintain;
mod serve;
mod thread;
mod threads;
mod transfer;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory as _;
use serde_json::json;

use crate::args::{Args, Cmd, DemoArgs, Drawing};
use crate::db::Db;
use crate::demo::{self, Demo};
use crate::out::{Fail, Out};

/// Does what the arguments say.
pub(crate) async fn run(args: Args, out: Out) -> Result<ExitCode, Fail> {
    let done = |()| ExitCode::SUCCESS;
    match args.command.unwrap_or_else(|| Cmd::Demo(DemoArgs::default())) {
        Cmd::Demo(_) if out.json => Err(Fail::usage(
            "the demo is for people and has no JSON; look at its thread with `superstep --json show`",
        )),
        Cmd::Demo(DemoArgs { dir, answers, fresh, pace }) => {
            let pace = Duration::from_millis(pace);
            demo::run(Demo { dir, answers, fresh, pace }, out).await.map(done)
        }
        Cmd::Serve(serve) => serve::serve(args.db.as_deref(), serve).await.map(done),
        Cmd::Keys(keys) => keys::keys(args.db.as_deref(), keys, out).await.map(done),
        Cmd::Graph { format } => graph(format, out).map(done),
        Cmd::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "superstep", &mut text);
            out.line(String::from_utf8_lossy(&text).trim_end()).map(done)
        }
        Cmd::Import { file } => import(file.as_deref(), args.db.as_deref(), out).await.map(done),
        Cmd::Migrate => answer::migrate(args.db.as_deref(), out).await.map(done),
        command => {
            let db = Db::open(args.db.as_deref()).await?;
            let ended = on_threads(command, &db, out).await;
            let closed = db.close().await;
            let ended = ended?;
            closed.map(|()| ended)
        }
    }
}

/// Reads an export to completion before it makes or changes anything.
async fn import(file: Option<&Path>, url: Option<&str>, out: Out) -> Result<(), Fail> {
    let export = match file {
        None => transfer::read(std::io::stdin().lock())?,
        Some(file) => {
            let opened = File::open(file).map_err(|error| {
                Fail::new(format_args!("`{}` cannot be read: {error}", file.display()))
            })?;
            transfer::read(BufReader::new(opened))?
        }
    };
    let db = Db::make(url).await?;
    let ended = transfer::import(&db, &export, out).await;
    db.close().await.and(ended)
}

/// The commands that need a database as it is.
async fn on_threads(command: Cmd, db: &Db, out: Out) -> Result<ExitCode, Fail> {
    match command {
        Cmd::Threads(args) => threads::threads(db, args, out).await?,
        Cmd::Inbox => threads::inbox(db, out).await?,
        Cmd::Show { thread, at } => thread::show(db, &thread, at.as_deref(), out).await?,
        Cmd::History { thread, ns } => thread::history(db, &thread, &ns, out).await?,
        Cmd::Diff { thread, a, b } => thread::diff(db, &thread, &a, &b, out).await?,
        Cmd::Fork { thread, at, yes } => maintain::fork(db, &thread, &at, yes, out).await?,
        Cmd::Answer { thread, id, replace, value } => {
            answer::answer(db, &thread, id.as_deref(), &value, replace, out).await?;
        }
        Cmd::Prune(args) => maintain::prune(db, &args, out).await?,
        Cmd::Copy { from, to, yes } => maintain::copy(db, &from, &to, yes, out).await?,
        Cmd::Delete { threads, yes } => maintain::delete(db, &threads, yes, out).await?,
        Cmd::Export { threads } => transfer::export(db, &threads, out).await?,
        Cmd::Check => return Ok(ExitCode::from(u8::from(!check::check(db, out).await?))),
        Cmd::Demo(_)
        | Cmd::Serve(_)
        | Cmd::Keys(_)
        | Cmd::Graph { .. }
        | Cmd::Completions { .. }
        | Cmd::Import { .. }
        | Cmd::Migrate => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn graph(format: Drawing, out: Out) -> Result<(), Fail> {
    let graph = demo::graph()?;
    let drawing = match format {
        Drawing::Ascii => graph.to_ascii(),
        Drawing::Mermaid => graph.to_mermaid(),
        Drawing::Svg => graph.to_svg(),
    };
    out.either(&json!({ "graph": "demo", "drawing": drawing }), || {
        let drawing = drawing.trim_end();
        if format != Drawing::Ascii {
            // What is printed can be piped into a renderer as it is.
            return drawing.to_owned();
        }
        let how = "A database does not contain graphs. To draw yours, print `to_ascii()`, `to_mermaid()` or `to_svg()` of the compiled graph.";
        format!("{drawing}\n\n{}", out.dim(how))
    })
}
