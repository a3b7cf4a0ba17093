//! Events that nodes write to the stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::Serialize;
use superstep_checkpoint::{Map, Value, to_value};

use crate::engine::stored::ids;
use crate::engine::task::handle::{Identity, Task};
use crate::engine::watch::event::{Data, MessageEvent, Mode};
use crate::engine::watch::sink::{Full, Sink};

impl Task {
    /// Sends an event in the stream mode `custom`. Does nothing if the mode is not streamed.
    ///
    /// A node resumes from an `await` when its events were taken, so a loop that emits many events
    /// needs one, such as [`yield_now`](tokio::task::yield_now). A node that never awaits is
    /// limited: if it is [spawned](crate::StateGraph::spawned) on a runtime of several threads,
    /// this blocks it while 1,024 events wait to be taken; otherwise it fails when it has emitted
    /// 100,000.
    #[doc(alias = "get_stream_writer")]
    pub fn emit<T: Serialize>(&self, value: T) {
        self.note_progress();
        let run = &self.inner.superstep.setting.run;
        if let Some(sink) = run.sink_for(Mode::Custom, &self.inner.superstep.setting.emitter.ns) {
            match to_value(&value) {
                Ok(value) => self.emit_to(sink, Data::Custom(value)),
                Err(error) => {
                    tracing::warn!(%error, node = %self.inner.name, "dropped a custom event");
                }
            }
        }
    }

    /// Sends a chunk of a message in the stream mode `messages`, with its origin. Give the chunks
    /// and the message that the node writes the same id: then the message is not sent again.
    /// Limited as [`emit`](Self::emit).
    pub fn emit_message<T: Serialize>(&self, chunk: T) {
        self.note_progress();
        let run = &self.inner.superstep.setting.run;
        if let Some(sink) = run.sink_for(Mode::Messages, &self.inner.superstep.setting.emitter.ns) {
            match to_value(&chunk) {
                Ok(chunk) => {
                    if let Some(id) = chunk.get("id").and_then(Value::as_str) {
                        sink.show_message(id);
                    }
                    let metadata = self.message_metadata();
                    let data = Data::Messages(MessageEvent { chunk, metadata });
                    self.emit_to(sink, data);
                }
                Err(error) => {
                    tracing::warn!(%error, node = %self.inner.name, "dropped a message chunk");
                }
            }
        }
    }

    fn emit_to(&self, sink: &Sink, data: Data) {
        if let Err(Full) = sink.emit(&self.inner.emitted, &self.outer_ns(), data)
            && !self.inner.lost_events.swap(true, Ordering::AcqRel)
        {
            tracing::warn!(node = %self.inner.name, "a node emits events faster than they are taken");
            // It may be something that the node has started and not the node itself that emits.
            self.inner.handover.wake();
        }
    }

    /// Whether events were dropped because the reader had no chance to take them.
    pub(crate) fn has_lost_events(&self) -> bool {
        self.inner.lost_events.load(Ordering::Acquire)
    }

    pub(crate) fn message_metadata(&self) -> Map {
        let triggers = match &self.inner.identity {
            Identity::Triggered(node) => {
                let names = &self.inner.superstep.setting.layout.nodes[*node].trigger_names;
                names.iter().map(|name| Value::from(&**name)).collect()
            }
            _ => vec![Value::from(ids::PUSH)],
        };
        let mut metadata = Map::new();
        metadata.insert("langgraph_step".into(), Value::from(self.step()));
        metadata.insert("langgraph_node".into(), Value::from(self.name()));
        metadata.insert("langgraph_triggers".into(), Value::List(triggers));
        metadata.insert("langgraph_path".into(), Value::from(self.path()));
        metadata.insert("langgraph_checkpoint_ns".into(), Value::from(self.namespace()));
        metadata
    }

    /// The namespace of the graph this task belongs to, or of the caller of a recorded call.
    fn outer_ns(&self) -> Arc<str> {
        match &self.inner.identity {
            Identity::Called(called) => called.ns.clone(),
            Identity::Handler(handler) => handler.ns.clone(),
            Identity::Triggered(_) | Identity::Dispatched(_) => {
                self.inner.superstep.setting.emitter.ns.clone()
            }
        }
    }
}
