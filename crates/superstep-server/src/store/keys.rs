//! API keys: who has one, and what they may do with it.

use serde::{Deserialize, Serialize};

use super::Answer;
use crate::time::Micros;

/// An API key. The key itself is not stored, only its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ApiKey {
    /// The part of the key that finds its row. It is no secret.
    pub(crate) id: String,
    /// What people call it. No two keys that work have the same name.
    pub(crate) name: String,
    pub(crate) tenant: String,
    /// The word for it.
    pub(crate) role: String,
    /// SHA-256 of the whole key, in hexadecimal digits.
    pub(crate) hash: String,
    pub(crate) created_at: Micros,
    /// It does not work any more since then.
    pub(crate) revoked_at: Option<Micros>,
}

/// The table of API keys. A key that was revoked stays in the table, so that it can be seen, and so that a server whose last
/// key was revoked is not open to everybody.
pub(crate) trait ApiKeys: Send + Sync + 'static {
    /// Stores a key. If one that works has its name, or any has its id, nothing is stored, and the answer is false.
    fn add_key(&self, new: ApiKey) -> Answer<'_, bool>;
    /// The key with this id, whether it works or not.
    fn key(&self, id: &str) -> Answer<'_, Option<ApiKey>>;
    /// All keys, oldest first.
    fn keys(&self) -> Answer<'_, Vec<ApiKey>>;
    /// Revokes the key with this name, or this id. When this answers, no later [`ApiKeys::key`] of any process shows it as
    /// one that works. Returns the key, unless there is none that works.
    fn revoke_key(&self, name_or_id: &str, now: Micros) -> Answer<'_, Option<ApiKey>>;
}
