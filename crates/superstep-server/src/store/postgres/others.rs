//! Following what other processes do.
//!
//! A notification takes a lock that all commits with notifications share. So none is sent in the transaction that it is about:
//! they are collected for some milliseconds and sent together afterwards.

use std::collections::HashSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value as Json;
use superstep::checkpoint::Error;
use superstep_postgres::tables::{Listener, Sql, Tables};
use tokio::sync::mpsc;
use tokio_postgres::Row;

use super::rows::{column, number, put_run};
use super::runs::Need;
use super::{PostgresStore, Result};
use crate::store::news::{News, NewsReader, Others, Progress};
use crate::store::{Answer, Run, RunStatus};

const CHANNEL: &str = "superstep_server";

/// How long news are collected.
const TOGETHER: Duration = Duration::from_millis(10);
/// How many are sent together.
const TOGETHER_MAX: usize = 256;

/// Sends what is told until nobody can tell anything any more.
pub(super) async fn send(
    tables: Tables,
    worker: Arc<str>,
    mut told: mpsc::UnboundedReceiver<String>,
) {
    let mut batch = Vec::new();
    while told.recv_many(&mut batch, TOGETHER_MAX).await > 0 {
        let news: HashSet<String> = batch.drain(..).collect();
        let news = news.into_iter().map(|news| format!("{worker} {news}")).collect();
        let sql = format!("SELECT pg_notify('{CHANNEL}', news) FROM unnest($1::text[]) AS news");
        if let Err(failure) = tables.run(&[Sql::new(sql).texts(news)]).await {
            let error = failure.told("tell other processes");
            tracing::warn!(%error, "other processes find out later");
        }
        tokio::time::sleep(TOGETHER).await;
    }
}

struct Reader {
    listener: Listener,
    worker: Arc<str>,
}

impl NewsReader for Reader {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<News>> + Send + '_>> {
        Box::pin(async {
            loop {
                let text = self.listener.next().await?;
                let news = text.split_once(' ').filter(|(from, _)| *from != &*self.worker);
                if let Some(news) = news.and_then(|(_, news)| News::from_text(news)) {
                    return Some(news);
                }
            }
        })
    }
}

fn progress(row: &Row) -> Result<Progress> {
    let status: &str = column(row, 1)?;
    let unknown = || Error::codec(format_args!("a run has the unknown status `{status}`"));
    let run: Option<String> = column(row, 3)?;
    let run: Option<Run> =
        run.map(|run| serde_json::from_str(&run)).transpose().map_err(Error::codec)?;
    let result: Option<String> = column(row, 4)?;
    let result: Option<Json> =
        result.map(|json| serde_json::from_str(&json)).transpose().map_err(Error::codec)?;
    Ok(Progress {
        run_id: column(row, 0)?,
        status: RunStatus::from_word(status).ok_or_else(unknown)?,
        epoch: number(row, 5)?,
        cancel: run.as_ref().and_then(|run| run.cancel),
        followed: run.as_ref().is_some_and(|run| run.followed),
        last_event: number(row, 2)?,
        result: result.or_else(|| run.and_then(|run| run.result)),
    })
}

impl PostgresStore {
    async fn follow_run(&self, thread: &str, id: &str) -> Result<()> {
        let sql =
            "SELECT body FROM server_runs WHERE run_id = $1 AND status IN ('pending', 'running')";
        let find = vec![Sql::new(sql).text(id)];
        let rule = |_, also: &[Vec<Row>]| {
            let found = also.first().and_then(|rows| rows.first());
            let run: Option<Run> = found.map(super::rows::object).transpose()?;
            let change = run.filter(|run| !run.followed);
            let change = change.map(|run| put_run(&Run { followed: true, ..run })).transpose()?;
            Ok(((), Default::default(), Vec::from_iter(change)))
        };
        self.with_thread(thread, Need::Some(Vec::new()), find, rule).await?;
        self.tell(News::Run(id.to_owned()));
        Ok(())
    }

    /// The whole row is read only of runs that are over, and of those that this process drives.
    async fn progress_of(&self, runs: Vec<String>) -> Result<Vec<Progress>> {
        let last = "(SELECT coalesce(max(seq), 0) FROM server_events AS event WHERE event.run_id = run.run_id)";
        let sql = format!(
            "SELECT run_id, status, {last},
                CASE WHEN worker = $2 OR status NOT IN ('pending', 'running') THEN body END, NULL::text, epoch
            FROM server_runs AS run WHERE run_id = ANY($1)
            UNION ALL
            SELECT run_id, 'success', {last}, NULL, result, 0 FROM server_ends AS run WHERE run_id = ANY($1)"
        );
        let sql = Sql::new(sql).texts(runs).text(&*self.worker);
        self.tables.read(&sql).await?.iter().map(progress).collect()
    }
}

impl Others for PostgresStore {
    fn has_others(&self) -> bool {
        true
    }

    fn tell(&self, news: News) {
        // An error means that the process ends.
        let _ = self.told.send(news.to_text());
    }

    fn hear(&self) -> Answer<'_, Option<Box<dyn NewsReader>>> {
        self.answer("listen to other processes", async {
            let listener = self.tables.listen(CHANNEL).await?;
            let reader = Reader { listener, worker: self.worker.clone() };
            Ok(Some(Box::new(reader) as Box<dyn NewsReader>))
        })
    }

    fn follow(&self, thread: &str, run: &str) -> Answer<'_, ()> {
        let (thread, run) = (thread.to_owned(), run.to_owned());
        self.answer("follow a run", async move {
            let (thread, run) = (&*thread, &*run);
            self.tables.insist(move |_| self.follow_run(thread, run)).await
        })
    }

    fn progress(&self, runs: Vec<String>) -> Answer<'_, Vec<Progress>> {
        self.answer("look at runs", self.progress_of(runs))
    }
}
