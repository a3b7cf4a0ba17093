use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use superstep_checkpoint::{AnyCheckpointer, CheckpointId, Query, Stored, Value};

use super::chains::Chains;
use super::snapshot::Snapshot;
use super::thread::{IntoCheckpoint, Thread};
use crate::engine::{Look, RawSnapshot, ThreadView, look};
use crate::error::RunError;
use crate::node::BoxFuture;
use crate::state::State;

/// The page size for reading the history of a thread.
const PAGE: usize = 64;

/// The history of a thread, newest first, as a stream.
#[must_use = "nothing is read until it is polled"]
pub struct History<S: State, O = S> {
    thread: Thread<S, O>,
    filter: BTreeMap<String, Value>,
    before: Option<CheckpointId>,
    limit: Option<usize>,
    page: VecDeque<Stored>,
    /// What was read of the chains of delta channels. The next checkpoint is usually the parent of the last one.
    chains: Option<Chains>,
    reading: Option<BoxFuture<Result<Read, RunError>>>,
    ended: bool,
}

enum Read {
    Page(Vec<Stored>),
    Snapshot(Box<ThreadView>),
}

impl<S: State, O> fmt::Debug for History<S, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History").field("thread", &self.thread).finish_non_exhaustive()
    }
}

impl<S: State, O> History<S, O> {
    pub(super) fn of(thread: Thread<S, O>) -> Self {
        Self {
            thread,
            filter: BTreeMap::new(),
            before: None,
            limit: None,
            page: VecDeque::new(),
            chains: None,
            reading: None,
            ended: false,
        }
    }

    /// At most this many.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Only checkpoints older than this one.
    pub fn before(mut self, checkpoint: impl IntoCheckpoint) -> Self {
        self.before = checkpoint.into_checkpoint(&self.thread.id).id;
        self
    }

    /// Only checkpoints whose metadata has this value; `source` and `step` are keys too.
    pub fn filter(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.filter.insert(key.into(), value.into());
        self
    }

    fn read_page(&self) -> Result<BoxFuture<Result<Read, RunError>>, RunError> {
        let checkpointer = self.thread.checkpointer()?;
        let at = self.thread.reference();
        let (_, ns) = self.thread.graph_at(&at.ns)?;
        let query = Query {
            thread: Some(self.thread.id.clone()),
            ns: Some(ns),
            id: at.id,
            before: self.before,
            limit: Some(self.limit.unwrap_or(PAGE).min(PAGE)),
            filter: self.filter.clone(),
        };
        Ok(Box::pin(async move { Ok(Read::Page(checkpointer.list(query).await?)) }))
    }

    fn read_snapshot(
        &mut self,
        stored: Stored,
    ) -> Result<BoxFuture<Result<Read, RunError>>, RunError> {
        let chains = match &self.chains {
            Some(chains) => chains.clone(),
            None => self.chains.insert(Chains::new(self.thread.checkpointer()?)).clone(),
        };
        chains.go_to(&stored);
        let checkpointer = AnyCheckpointer::new(chains);
        let at = self.thread.reference();
        let (graph, ns) = self.thread.graph_at(&at.ns)?;
        let how = Look { graph, checkpointer, live: false, subgraphs: false };
        Ok(Box::pin(async move {
            let seen = look(how, at.in_namespace(ns), Some(stored)).await?;
            Ok(Read::Snapshot(Box::new(seen)))
        }))
    }

    fn poll_seen(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<ThreadView, RunError>>> {
        loop {
            if let Some(reading) = &mut self.reading {
                let Poll::Ready(read) = reading.as_mut().poll(cx) else { return Poll::Pending };
                self.reading = None;
                match read {
                    Err(error) => {
                        self.ended = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                    Ok(Read::Snapshot(snapshot)) => return Poll::Ready(Some(Ok(*snapshot))),
                    Ok(Read::Page(page)) => {
                        self.ended |= page.len() < PAGE;
                        self.before = page.last().map(|stored| stored.checkpoint.id);
                        self.page = page.into();
                    }
                }
            }
            let exhausted = self.limit == Some(0);
            let next = match self.page.pop_front() {
                Some(_) if exhausted => return Poll::Ready(None),
                Some(stored) => {
                    self.limit = self.limit.map(|limit| limit - 1);
                    self.read_snapshot(stored)
                }
                None if self.ended || exhausted => return Poll::Ready(None),
                None => self.read_page(),
            };
            match next {
                Ok(reading) => self.reading = Some(reading),
                Err(error) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    /// Collects the history as data.
    ///
    /// # Errors
    /// The checkpointer failed, or a checkpoint cannot be read.
    pub async fn raw(mut self) -> Result<Vec<RawSnapshot>, RunError> {
        let mut all = Vec::new();
        while let Some(next) = std::future::poll_fn(|cx| self.poll_seen(cx)).await {
            all.push(next?.into_raw()?);
        }
        Ok(all)
    }
}

impl<S: State, O> Unpin for History<S, O> {}

impl<S: State, O> Stream for History<S, O> {
    type Item = Result<Snapshot<S>, RunError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        this.poll_seen(cx).map(|next| next.map(|seen| Snapshot::of(seen?)))
    }
}
