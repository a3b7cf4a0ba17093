//! `answer`: leaves an answer for whoever runs the graph next.

use serde_json::{Value as Json, json};
use superstep::RunError;
use superstep_checkpoint::InterruptId;

use crate::db::Db;
use crate::out::{Fail, Out, tame};
use crate::readable;

pub(super) async fn answer(
    db: &Db,
    thread: &str,
    id: Option<&str>,
    value: &str,
    out: Out,
) -> Result<(), Fail> {
    // What is no JSON is text: `approve` needs no quotes.
    let value: Json = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    let id = id.map(InterruptId::new);
    let answered = superstep::answer(&db.saver, thread, id.as_ref(), value.clone()).await;
    let question = answered.map_err(|error| match error {
        RunError::Resume { message, .. } => Fail::new(message),
        RunError::Conflict { .. } => Fail::new(format_args!("thread `{thread}` was answered or taken up by somebody else at the same time; look again")),
        other => other.into(),
    })?;
    let mut shown = readable::question(&question);
    shown["thread"] = thread.into();
    shown["answer"] = value.clone();
    out.either(&shown, || {
        let text = format!(
            "question {} of thread `{}` is answered with {value}",
            question.id,
            tame(thread)
        );
        format!(
            "{}\n{}",
            out.good(text),
            out.dim("whoever runs the graph next with no input goes on with it")
        )
    })?;
    Ok(())
}

/// `migrate`: the one command that makes or changes tables.
pub(super) async fn migrate(url: Option<&str>, out: Out) -> Result<(), Fail> {
    let db = Db::make(url).await?;
    db.close().await?;
    out.either(&json!({ "migrated": true }), || "the tables are there and up to date".to_owned())
}
