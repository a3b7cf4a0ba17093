use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Time;
use crate::error::{ApiError, ApiResult};
use crate::store::{OnExpiry, Thread, Ttl};

/// How long a thread lives after it was last used: minutes, or minutes and what becomes of it then.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ThreadTtl")]
pub(crate) enum TtlArg {
    Minutes(f64),
    Full { ttl: f64, strategy: Option<OnExpiry> },
}

impl TtlArg {
    pub(crate) fn read(self) -> ApiResult<Ttl> {
        let (minutes, on_expiry) = match self {
            Self::Minutes(minutes) => (minutes, None),
            Self::Full { ttl, strategy } => (ttl, strategy),
        };
        if !(0.0..=1e9).contains(&minutes) {
            return Err(ApiError::invalid(format!(
                "`ttl` is {minutes}; it is a number of minutes from 0 to 1000000000"
            )));
        }
        Ok(Ttl { minutes, on_expiry: on_expiry.unwrap_or(OnExpiry::Delete), done_at: None })
    }
}

/// When a thread expires.
pub(crate) fn ttl_json(ttl: Ttl, thread: &Thread) -> Json {
    json!({
        "strategy": ttl.on_expiry,
        "ttl_minutes": ttl.minutes,
        "expires_at": Time(ttl.expires_at(thread.updated_at)),
    })
}
