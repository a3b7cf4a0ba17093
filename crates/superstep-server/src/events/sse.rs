//! Server-sent events.

use std::fmt::Write as _;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::Stream;

use super::feed::{FeedReader, Frame};

/// How long a stream is silent before it says that it is still there. Clients learn the rhythm.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(5);

/// What is sent then.
pub(crate) const HEARTBEAT_COMMENT: &[u8] = b": heartbeat\r\n\r\n";

/// The text of an event. An id is sent if the stream can be taken up again.
pub(crate) fn frame_text(frame: &Frame, id: Option<&str>) -> String {
    let mut text = format!("event: {}\r\ndata: {}\r\n", frame.event, frame.data);
    if let Some(id) = id {
        let _ = write!(text, "id: {id}\r\n");
    }
    text.push_str("\r\n");
    text
}

/// A stream of the events of one run.
pub(crate) struct Sse<G> {
    pub(crate) reader: Option<FeedReader>,
    /// What the ids of events begin with; without it they have none.
    pub(crate) ids: Option<i64>,
    /// Which events are wanted; all if nothing is said.
    pub(crate) wanted: Option<Vec<String>>,
    /// Lives as long as the stream is read, and is told if the stream came to its end.
    pub(crate) guard: G,
}

/// Is told when a stream came to its end, before it is dropped.
pub(crate) trait Guard: Send + 'static {
    fn complete(&mut self) {}
}

impl Guard for () {}

impl<G: Guard> Sse<G> {
    fn is_wanted(&self, frame: &Frame) -> bool {
        let Some(wanted) = &self.wanted else { return true };
        let name = frame.event.split('|').next().unwrap_or_default();
        frame.event == "error" || wanted.iter().any(|mode| fits(mode, name))
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(reader) = &mut self.reader else {
                self.guard.complete();
                return None;
            };
            let Ok(next) = tokio::time::timeout(HEARTBEAT, reader.next()).await else {
                return Some(Bytes::from_static(HEARTBEAT_COMMENT));
            };
            let frame = match next {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    self.guard.complete();
                    return None;
                }
                Err(error) => {
                    // The stream breaks off, and the client comes back.
                    tracing::error!(%error, "a stream could not be read");
                    return None;
                }
            };
            if self.is_wanted(&frame) {
                let id = self.ids.map(|ms| format!("{ms}-{}", frame.seq));
                return Some(frame_text(&frame, id.as_deref()).into());
            }
        }
    }
}

/// Whether an event of this name belongs to a mode.
fn fits(mode: &str, name: &str) -> bool {
    match mode {
        "messages-tuple" => name == "messages",
        "messages" => name.starts_with("messages/"),
        mode => mode == name,
    }
}

impl<G: Guard> IntoResponse for Sse<G> {
    fn into_response(self) -> Response {
        response(futures_util::stream::unfold(self, |mut sse| async move {
            let bytes = sse.next().await?;
            Some((Ok(bytes), sse))
        }))
    }
}

/// An answer that is a stream of events. An error breaks it off, so that the client notices.
pub(crate) fn response(
    frames: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
) -> Response {
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
