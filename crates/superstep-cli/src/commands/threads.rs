//! Commands that list all threads: `threads` and `inbox`.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep_checkpoint::{
    CheckpointId, Error, ThreadCursor, ThreadInfo, ThreadQuery, ThreadStatus,
};

use crate::args::ThreadsArgs;
use crate::db::Db;
use crate::look;
use crate::out::{Fail, Out, brief, tame};
use crate::readable;
use crate::time;

/// The page size for threads.
const PAGE: usize = 200;

struct Line {
    info: ThreadInfo,
    next: Vec<String>,
    errors: Vec<String>,
}

/// A line of the list. Only threads that are ready or have failed have more to tell than the list does.
async fn line(db: &Db, info: ThreadInfo) -> Result<Line, Fail> {
    let mut line = Line { next: Vec::new(), errors: Vec::new(), info };
    if let Some(ThreadStatus::Done) | None = line.info.status {
        return Ok(line);
    }
    match db.checkpointer.get(&line.info.thread, "", Some(line.info.head)).await {
        Ok(Some(stored)) => {
            line.next = look::next(&stored)?;
            let tasks = look::tasks(&stored)?;
            line.errors = tasks.into_iter().filter_map(|task| task.error).collect();
        }
        Ok(None) => line.info.status = None,
        Err(Error::Codec(damage)) => (line.info.status, line.info.damage) = (None, Some(damage)),
        Err(other) => return Err(other.into()),
    }
    Ok(line)
}

impl Line {
    fn to_json(&self) -> Json {
        let info = &self.info;
        json!({
            "thread": &*info.thread,
            "status": info.status.map_or("damaged", ThreadStatus::as_str),
            "head": info.head.to_string(),
            "updated_at": info.updated_at().map(time::iso),
            "step": info.metadata.as_ref().map(|metadata| metadata.step),
            "next": self.next,
            "questions": info.pending.iter().map(readable::question).collect::<Vec<_>>(),
            "errors": self.errors,
            "damage": info.damage,
        })
    }

    fn to_text(&self, out: Out) -> String {
        let info = &self.info;
        let when = info.updated_at().map(time::iso).unwrap_or_default();
        let asked = || {
            let asked = info.pending.iter();
            let asked = asked.map(|asked| readable::plain(&readable::readable(&asked.value)));
            asked.collect::<Vec<_>>().join("; ")
        };
        let (word, about) = match info.status {
            Some(ThreadStatus::Done) => (out.good("done   "), String::new()),
            Some(ThreadStatus::Failed) => (out.bad("failed "), brief(&self.errors.join("; "), 100)),
            Some(ThreadStatus::Waiting) => (out.ask("waiting"), brief(&asked(), 100)),
            Some(_) if info.pending.is_empty() => {
                (out.bold("ready  "), format!("next: {}", look::counted(&self.next)))
            }
            Some(_) => {
                let about = format!("next: {}; asks: {}", look::counted(&self.next), asked());
                (out.bold("ready  "), brief(&about, 100))
            }
            None => {
                let damage = info.damage.as_deref().unwrap_or("it was deleted meanwhile");
                (out.bad("damaged"), brief(damage, 100))
            }
        };
        format!("{word}  {}  {}  {about}\n", out.dim(when), out.bold(tame(&info.thread)))
    }
}

/// A page of the list of threads.
pub(super) async fn threads(db: &Db, args: ThreadsArgs, out: Out) -> Result<(), Fail> {
    let mut query = ThreadQuery::new(args.limit.max(1));
    query.status = args.status;
    query.questions = args.questions.then_some(true);
    query.metadata = args.metadata.into_iter().map(|(key, value)| (key, value.into())).collect();
    if let Some(after) = &args.after {
        query = query.after(cursor(after)?);
    }
    let page = db.checkpointer.threads(query).await?;
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

/// The end of a page, as it was printed.
fn cursor(text: &str) -> Result<ThreadCursor, Fail> {
    let wrong = || Fail::usage("--after takes the end that the previous page printed");
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
        let mut query = ThreadQuery::new(PAGE).questions(true);
        if let Some(cursor) = after {
            query = query.after(cursor);
        }
        let page = db.checkpointer.threads(query).await?;
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
            if let Some(due) = readable::due(asked) {
                text.push_str(&format!("    {}\n", out.bold(due)));
            }
            if let Some(schema) = readable::schema(asked) {
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
