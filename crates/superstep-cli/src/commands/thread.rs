//! Commands that read one thread: `show`, `history` and `diff`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use superstep_checkpoint::{CheckpointId, Query, Question, Stored};

use crate::db::{Db, unknown_thread};
use crate::look;
use crate::out::{Fail, Out, brief, tame};
use crate::readable;

/// The page size for checkpoints.
const PAGE: usize = 64;

/// The checkpoints of a namespace, newest first.
pub(super) async fn checkpoints(db: &Db, thread: &str, ns: &str) -> Result<Vec<Stored>, Fail> {
    let mut all: Vec<Stored> = Vec::new();
    loop {
        let query = Query {
            thread: Some(thread.into()),
            ns: Some(ns.into()),
            before: all.last().map(|stored| stored.checkpoint.id),
            limit: Some(PAGE),
            ..Query::default()
        };
        let page = db.checkpointer.list(query).await?;
        let last = page.len() < PAGE;
        all.extend(page);
        if last {
            return if all.is_empty() { Err(unknown_thread(thread)) } else { Ok(all) };
        }
    }
}

/// State, next nodes, questions and errors of a thread.
pub(super) async fn show(db: &Db, thread: &str, at: Option<&str>, out: Out) -> Result<(), Fail> {
    let stored = match at {
        None => db.head(thread).await?,
        Some(at) => {
            let all = checkpoints(db, thread, "").await?;
            resolve(&all, at)?.clone()
        }
    };
    let (values, rebuilt) = look::values(&db.checkpointer, &stored).await?;
    let (status, next) = (stored.status()?, look::next(&stored)?);
    let tasks = look::tasks(&stored)?;
    let questions = stored.questions()?;
    let json = json!({
        "thread": thread,
        "checkpoint": stored.checkpoint.id.to_string(),
        "parent": stored.parent.map(|id| id.to_string()),
        "ts": stored.checkpoint.ts,
        "source": stored.metadata.source.as_str(),
        "step": stored.metadata.step,
        "status": status.as_str(),
        "values": values,
        "rebuilt": rebuilt,
        "next": next,
        "tasks": tasks.iter().map(look::TaskSeen::to_json).collect::<Vec<_>>(),
        "questions": questions.iter().map(asked_and_answered).collect::<Vec<_>>(),
    });
    out.either(&json, || {
        let metadata = &stored.metadata;
        let mut text = format!("{}  {}\n", out.bold(tame(thread)), status.as_str());
        let made = format!(
            "checkpoint {} (step {}, {}, {})",
            stored.checkpoint.id,
            metadata.step,
            metadata.source.as_str(),
            tame(&stored.checkpoint.ts)
        );
        text.push_str(&format!("{}\n\nstate:\n", out.dim(made)));
        for (name, value) in &values {
            let mark = if rebuilt.contains(name) { " (from its writes, by appending)" } else { "" };
            text.push_str(&format!(
                "  {}{}: {}\n",
                out.bold(tame(name)),
                out.dim(mark),
                indented(value)
            ));
        }
        text.push_str(&format!(
            "\nnext: {}\n",
            if next.is_empty() { "nothing".to_owned() } else { look::counted(&next) }
        ));
        for task in &tasks {
            let state = match (&task.error, task.finished) {
                (Some(error), _) => out.bad(format_args!("failed: {}", brief(error, 400))),
                (None, true) => out.good("finished, does not run again"),
                (None, false) if task.questions.is_empty() => "started".to_owned(),
                (None, false) => out.ask("asks"),
            };
            let arg = task.arg.as_ref().map(|arg| format!(" {arg}")).unwrap_or_default();
            let id = out.dim(format_args!("(task {})", task.id));
            text.push_str(&format!("  {}{arg} {id}: {state}\n", tame(&task.node)));
        }
        for question in &questions {
            let asked = &question.interrupt;
            text.push_str(&format!(
                "\nquestion {}\n  {}\n",
                asked.id,
                out.ask(indented(&readable::readable(&asked.value)))
            ));
            if let Some(due) = readable::due(asked) {
                text.push_str(&format!("  {}\n", out.bold(due)));
            }
            if let Some(schema) = readable::schema(asked) {
                text.push_str(&format!(
                    "  {}\n",
                    out.dim(format_args!("answer: {}", tame(&schema.to_string())))
                ));
            }
            if let Some(answer) = &question.answer {
                let answer = brief(&readable::readable(answer).to_string(), 400);
                let told = format!(
                    "answered with {answer}; the next run takes the answer, and until then \
                     `superstep answer --replace` changes it"
                );
                text.push_str(&format!("  {}\n", out.good(told)));
            }
        }
        text
    })
}

/// A question, with its answer if it has one that was not taken yet.
fn asked_and_answered(question: &Question) -> Json {
    let mut shown = readable::question(&question.interrupt);
    shown["task"] = question.task.to_string().into();
    shown["answered"] = question.answer.is_some().into();
    if let Some(answer) = &question.answer {
        shown["answer"] = readable::readable(answer);
    }
    shown
}

/// JSON over several lines, set in from the left. Control characters are escaped in it.
fn indented(value: &Json) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', "\n  ")
}

/// The checkpoints of a thread as a tree, the oldest first. Each branch has a rail of its own to the right of the line it left.
pub(super) async fn history(db: &Db, thread: &str, ns: &str, out: Out) -> Result<(), Fail> {
    let all = checkpoints(db, thread, ns).await?;
    let head = all[0].checkpoint.id;
    let tree = tree(&all);
    let mut entries = Vec::new();
    for (stored, rail) in &tree {
        entries.push((entry(stored, rail.depth)?, *rail, look::next(stored)?));
    }
    let listed: Vec<&Json> = entries.iter().map(|(json, ..)| json).collect();
    let json =
        json!({ "thread": thread, "ns": ns, "head": head.to_string(), "checkpoints": listed });
    out.either(&json, || {
        let lines = tree.iter().zip(&entries);
        lines.map(|((stored, _), (_, rail, next))| line(stored, *rail, next, head, out)).collect()
    })
}

/// The position of a checkpoint in the drawing.
#[derive(Clone, Copy)]
struct Rail {
    /// The number of rails to the left of it.
    depth: usize,
    /// Whether it is the first of a branch.
    is_first: bool,
}

/// The checkpoints in the order in which they are drawn: branches before the line that continues,
/// so that they stand where they begin.
fn tree(newest_first: &[Stored]) -> Vec<(&Stored, Rail)> {
    let known: BTreeSet<CheckpointId> =
        newest_first.iter().map(|stored| stored.checkpoint.id).collect();
    let mut children: BTreeMap<Option<CheckpointId>, Vec<&Stored>> = BTreeMap::new();
    for stored in newest_first.iter().rev() {
        // What continues nothing that is stored begins a tree of its own.
        let parent = stored.parent.filter(|parent| known.contains(parent));
        children.entry(parent).or_default().push(stored);
    }
    let roots = children.remove(&None).unwrap_or_default().into_iter().rev();
    let mut stack: Vec<(&Stored, Rail)> =
        roots.map(|stored| (stored, Rail { depth: 0, is_first: false })).collect();
    let mut drawn = Vec::new();
    // Not by recursion: a thread may have many thousands of checkpoints. Taking the children out ends a ring of parents.
    while let Some((stored, rail)) = stack.pop() {
        drawn.push((stored, rail));
        let mut next = children.remove(&Some(stored.checkpoint.id)).unwrap_or_default();
        if let Some(line) = next.pop() {
            stack.push((line, Rail { is_first: false, ..rail }));
        }
        let branch = Rail { depth: rail.depth + 1, is_first: true };
        stack.extend(next.iter().rev().map(|stored| (*stored, branch)));
    }
    drawn
}

fn entry(stored: &Stored, depth: usize) -> Result<Json, Fail> {
    let questions = stored.open_questions()?;
    Ok(json!({
        "id": stored.checkpoint.id.to_string(),
        "parent": stored.parent.map(|id| id.to_string()),
        "depth": depth,
        "ts": stored.checkpoint.ts,
        "source": stored.metadata.source.as_str(),
        "step": stored.metadata.step,
        "next": look::next(stored)?,
        "questions": questions.iter().map(readable::question).collect::<Vec<_>>(),
        "updated_channels": stored.checkpoint.updated_channels.as_ref().map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>()),
    }))
}

fn line(stored: &Stored, rail: Rail, next: &[String], head: CheckpointId, out: Out) -> String {
    let id = stored.checkpoint.id;
    let rails = match rail.depth.checked_sub(1) {
        Some(others) if rail.is_first => format!("{}├─", "│ ".repeat(others)),
        _ => "│ ".repeat(rail.depth),
    };
    let next =
        if next.is_empty() { out.dim("end") } else { format!("next: {}", look::counted(next)) };
    let mark = if id == head { out.good("  (head)") } else { String::new() };
    let metadata = &stored.metadata;
    let (step, source) = (metadata.step, metadata.source.as_str());
    format!("{rails}● {id}  step {step:>3}  {source:<6}  {next}{mark}\n")
}

/// The difference between the values of two checkpoints.
pub(super) async fn diff(db: &Db, thread: &str, a: &str, b: &str, out: Out) -> Result<(), Fail> {
    let all = checkpoints(db, thread, "").await?;
    let (a, b) = (resolve(&all, a)?, resolve(&all, b)?);
    let (before, _) = look::values(&db.checkpointer, a).await?;
    let (after, _) = look::values(&db.checkpointer, b).await?;
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let mut changes = Map::new();
    for name in names {
        let (old, new) = (before.get(name), after.get(name));
        if old != new {
            changes.insert(name.clone(), change(old, new));
        }
    }
    let (from, to) = (a.checkpoint.id.to_string(), b.checkpoint.id.to_string());
    let json = json!({ "thread": thread, "from": from, "to": to, "changes": changes });
    out.either(&json, || {
        let mut text = format!("{}\n", out.dim(format_args!("{from} .. {to}")));
        if changes.is_empty() {
            text.push_str("the values are equal\n");
        }
        for (name, change) in &changes {
            text.push_str(&format!("{}\n", out.bold(tame(name))));
            for (key, sign) in [("before", "-"), ("after", "+"), ("added", "+")] {
                if let Some(value) = change.get(key) {
                    let line = format!("  {sign} {value}");
                    text.push_str(&if sign == "-" { out.bad(line) } else { out.good(line) });
                    text.push('\n');
                }
            }
        }
        text
    })
}

/// The change of a value; for a list that only grew, the new items.
fn change(old: Option<&Json>, new: Option<&Json>) -> Json {
    if let (Some(Json::Array(old)), Some(Json::Array(new))) = (old, new)
        && new.starts_with(old)
    {
        return json!({ "added": new[old.len()..] });
    }
    let mut change = Map::new();
    change.extend(old.map(|old| ("before".to_owned(), old.clone())));
    change.extend(new.map(|new| ("after".to_owned(), new.clone())));
    Json::Object(change)
}

/// Finds a checkpoint by its id, a part of the id that no other has, `head`, or `head~3`.
pub(super) fn resolve<'a>(all: &'a [Stored], name: &str) -> Result<&'a Stored, Fail> {
    let missing = || {
        Fail::new(format_args!(
            "no checkpoint of this thread is `{name}`; `superstep history` lists them"
        ))
    };
    if let Some(back) = name.strip_prefix("head") {
        let back = match back.strip_prefix('~') {
            None if back.is_empty() => 0,
            Some(number) => number.parse::<usize>().map_err(|_| missing())?,
            None => return Err(missing()),
        };
        let mut at = all.first().ok_or_else(missing)?;
        for _ in 0..back {
            let parent = at.parent.ok_or_else(missing)?;
            at = all.iter().find(|stored| stored.checkpoint.id == parent).ok_or_else(missing)?;
        }
        return Ok(at);
    }
    let fits =
        |stored: &&Stored| !name.is_empty() && stored.checkpoint.id.to_string().contains(name);
    let mut found = all.iter().filter(fits);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(missing()),
        (Some(_), Some(_)) => Err(Fail::new(format_args!(
            "several checkpoints have `{name}` in their id; give more of it"
        ))),
    }
}
