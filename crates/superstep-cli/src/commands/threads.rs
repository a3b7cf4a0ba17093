//! Commands that look over all threads: `threads` and `inbox`.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep_checkpoint::{CheckpointId, Error, ThreadCursor, ThreadInfo, ThreadQuery};

use crate::db::Db;
use crate::look::{self, Status};
use crate::out::{Fail, Out, brief, tame};
use crate::readable;
use crate::time;

/// How many threads are read at a time.
const PAGE: usize = 200;

struct Line {
    info: ThreadInfo,
    status: Result<Status, String>,
    next: Vec<String>,
    errors: Vec<String>,
}

async fn line(db: &Db, info: ThreadInfo) -> Result<Line, Fail> {
    let mut line = Line { status: Err(String::new()), next: Vec::new(), errors: Vec::new(), info };
    let read = match &line.info.damage {
        Some(damage) => Err(damage.clone()),
        None => match db.saver.get(&line.info.thread, "", Some(line.info.head)).await {
            Ok(Some(stored)) => Ok(stored),
            Ok(None) => Err("it was deleted meanwhile".to_owned()),
            Err(Error::Codec(damage)) => Err(damage),
            Err(other) => return Err(other.into()),
        },
    };
    match read {
        Err(damage) => line.status = Err(damage),
        Ok(stored) => {
            line.status = look::status(&stored).map_err(|error| error.to_string());
            line.next = look::next(&stored);
            let tasks = look::tasks(&stored).unwrap_or_default();
            line.errors = tasks.into_iter().filter_map(|task| task.error).collect();
        }
    }
    Ok(line)
}

impl Line {
    fn to_json(&self) -> Json {
        let info = &self.info;
        json!({
            "thread": &*info.thread,
            "status": self.status.as_ref().map_or("damaged", |status| status.as_str()),
            "head": info.head.to_string(),
            "updated_at": info.updated_at().map(time::iso),
            "step": info.metadata.as_ref().map(|metadata| metadata.step),
            "next": self.next,
            "questions": info.pending.iter().map(readable::question).collect::<Vec<_>>(),
            "errors": self.errors,
            "damage": self.status.as_ref().err(),
        })
    }

    fn to_text(&self, out: Out) -> String {
        let info = &self.info;
        let when = info.updated_at().map(time::iso).unwrap_or_default();
        let (word, about) = match &self.status {
            Err(damage) => (out.bad("damaged"), brief(damage, 100)),
            Ok(Status::Done) => (out.good("done   "), String::new()),
            Ok(Status::Ready) => (out.bold("ready  "), format!("next: {}", self.next.join(", "))),
            Ok(Status::Failed) => (out.bad("failed "), brief(&self.errors.join("; "), 100)),
            Ok(Status::Waiting) => {
                let asked = info
                    .pending
                    .iter()
                    .map(|asked| readable::plain(&readable::readable(&asked.value)));
                (out.ask("waiting"), brief(&asked.collect::<Vec<_>>().join("; "), 100))
            }
        };
        format!("{word}  {}  {}  {about}\n", out.dim(when), out.bold(tame(&info.thread)))
    }
}

/// A page of the list of threads.
pub(super) async fn threads(
    db: &Db,
    limit: usize,
    after: Option<&str>,
    out: Out,
) -> Result<(), Fail> {
    let mut query = ThreadQuery::new(limit.max(1));
    if let Some(after) = after {
        query = query.after(cursor(after)?);
    }
    let page = db.saver.threads(query).await?;
    let mut lines = Vec::new();
    for info in page.threads {
        lines.push(line(db, info).await?);
    }
    let next = page.next.map(|next| format!("{}/{}", next.head, next.thread));
    let json =
        json!({ "threads": lines.iter().map(Line::to_json).collect::<Vec<_>>(), "next": next });
    out.either(&json, || {
        let mut text: String = lines.iter().map(|line| line.to_text(out)).collect();
        if lines.is_empty() {
            text.push_str("no threads\n");
        }
        if let Some(next) = &next {
            text.push_str(&out.dim(format_args!("more: --after '{}'", tame(next))));
        }
        text
    })
}

/// Where a page ended, as it was printed.
fn cursor(text: &str) -> Result<ThreadCursor, Fail> {
    let wrong = || Fail::usage("--after takes what the page before printed as its end");
    let (head, thread) = text.split_once('/').ok_or_else(wrong)?;
    let head: CheckpointId = head.parse().map_err(|_| wrong())?;
    Ok(ThreadCursor { head, thread: thread.into() })
}

/// Every open question of every thread, the oldest first.
pub(super) async fn inbox(db: &Db, out: Out) -> Result<(), Fail> {
    let mut open = Vec::new();
    let mut damaged: Vec<Arc<str>> = Vec::new();
    let mut after = None;
    loop {
        let mut query = ThreadQuery::new(PAGE);
        if let Some(cursor) = after {
            query = query.after(cursor);
        }
        let page = db.saver.threads(query).await?;
        for info in page.threads {
            if info.damage.is_some() {
                damaged.push(info.thread.clone());
            }
            open.extend(
                info.pending.into_iter().map(|asked| (info.head, info.thread.clone(), asked)),
            );
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    open.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    let questions = open.iter().map(|(head, thread, asked)| {
        let mut question = readable::question(asked);
        question["thread"] = (&**thread).into();
        question["asked_at"] = head.time().map(time::iso).into();
        question
    });
    let damaged: Vec<&str> = damaged.iter().map(|thread| &**thread).collect();
    let json = json!({ "questions": questions.collect::<Vec<_>>(), "damaged": damaged });
    out.either(&json, || {
        let mut text = String::new();
        for (head, thread, asked) in &open {
            let when = head.time().map(time::iso).unwrap_or_default();
            let asks = readable::plain(&readable::readable(&asked.value));
            text.push_str(&format!(
                "{}  {}  {}\n",
                out.dim(when),
                out.bold(tame(thread)),
                out.dim(&asked.id)
            ));
            text.push_str(&format!("    {}\n", out.ask(brief(&asks, 400))));
            if let Some(schema) = &asked.response_schema {
                text.push_str(&format!(
                    "    {}\n",
                    out.dim(format_args!("answer: {}", brief(&schema.to_string(), 200)))
                ));
            }
        }
        if open.is_empty() {
            text.push_str("no open questions\n");
        } else {
            text.push_str(&out.dim("answer with `superstep answer THREAD [--id ID] VALUE`"));
        }
        for thread in damaged {
            text.push_str(&format!(
                "\n{}",
                out.bad(format_args!(
                    "thread `{}` cannot be read; see `superstep check`",
                    tame(thread)
                ))
            ));
        }
        text
    })
}
