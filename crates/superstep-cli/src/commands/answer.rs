//! `answer`: stores an answer for the next run.

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
    replace: bool,
    out: Out,
) -> Result<(), Fail> {
    // What is not JSON is text: `approve` needs no quotes.
    let value: Json = serde_json::from_str(value).unwrap_or_else(|_| value.into());
    let id = id.map(InterruptId::new);
    let answered = match replace {
        true => {
            superstep::replace_answer(&db.checkpointer, thread, id.as_ref(), value.clone()).await
        }
        false => superstep::answer(&db.checkpointer, thread, id.as_ref(), value.clone()).await,
    };
    let question = match answered {
        Ok(question) => question,
        Err(RunError::Resume { message, pending }) if pending.is_empty() && !replace => {
            return Err(unasked(db, thread, &message).await);
        }
        Err(RunError::Resume { message, .. }) => return Err(Fail::new(message)),
        Err(RunError::Conflict { .. }) => {
            return Err(Fail::new(format_args!(
                "thread `{thread}` was answered or continued by another process at the same time; look again"
            )));
        }
        Err(other) => return Err(other.into()),
    };
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
            out.dim("the next run of the thread with no input uses the answer")
        )
    })?;
    Ok(())
}

/// Explains why no question is open: perhaps it is answered, which can be changed.
async fn unasked(db: &Db, thread: &str, message: &str) -> Fail {
    let questions = match db.head(thread).await {
        Ok(head) => head.questions().unwrap_or_default(),
        Err(unknown) => return unknown,
    };
    if questions.is_empty() {
        return Fail::new(message);
    }
    Fail::new(format_args!(
        "{message}: it is answered already; `superstep answer --replace` changes the answer until a run takes it"
    ))
}

/// `migrate`: a command that makes or changes tables.
pub(super) async fn migrate(url: Option<&str>, out: Out) -> Result<(), Fail> {
    let db = Db::make(url).await?;
    db.close().await?;
    out.either(&json!({ "migrated": true }), || "the tables are up to date".to_owned())
}
