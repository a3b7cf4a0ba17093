//! One event of a session, as it is stored and as it is sent.

use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::store::{StoreError, Stored};
use crate::time::Micros;

/// What is stored of an event beside its number and its method.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LogEntry {
    /// Set for events that are the only one of their kind in a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The graph it happened in, level by level.
    pub(super) ns: Vec<String>,
    /// Milliseconds since 1970.
    at: i64,
    /// The name of a custom event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    data: Box<RawValue>,
}

impl LogEntry {
    pub(super) fn new(
        id: Option<String>,
        ns: &[String],
        data: &serde_json::Value,
    ) -> Result<Self, StoreError> {
        let name = data.get("name").and_then(|name| name.as_str()).map(str::to_owned);
        let data = serde_json::value::to_raw_value(data)?;
        Ok(Self { id, ns: ns.to_vec(), at: Micros::now().millis(), name, data })
    }

    pub(super) fn to_text(&self) -> Result<String, StoreError> {
        Ok(serde_json::to_string(self)?)
    }

    pub(super) fn read(stored: &Stored) -> Result<Self, StoreError> {
        Ok(serde_json::from_str(&stored.data)?)
    }

    /// The event as clients see it. Its id is the same whenever it is sent.
    pub(super) fn to_event(&self, stored: &Stored) -> String {
        let id = self.id.clone().unwrap_or_else(|| format!("{}-{}", self.at, stored.seq));
        let (id, method, ns) = (json!(id), json!(stored.event), json!(self.ns));
        let (seq, at, data) = (stored.seq, self.at, self.data.get());
        format!(
            r#"{{"type":"event","event_id":{id},"seq":{seq},"method":{method},"params":{{"namespace":{ns},"timestamp":{at},"data":{data}}}}}"#
        )
    }
}
