use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::access::Role;
use crate::auth::secret::{Hash, new_key};
use crate::server::{Database, ServerError, open_store};
use crate::store::{ApiKey, Store};
use crate::tenant;
use crate::time::Micros;

/// An API key, without what lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyInfo {
    /// The part of the key after `superstep_`. It is no secret, and finds the key in a list.
    pub id: String,
    /// What it is called. Answers that are given with it are recorded under this name.
    pub name: String,
    /// The tenant; empty for the default one.
    pub tenant: String,
    /// What it allows.
    pub role: Role,
    /// When it was made.
    pub created_at: SystemTime,
    /// Since when it does not work any more.
    pub revoked_at: Option<SystemTime>,
}

impl TryFrom<ApiKey> for KeyInfo {
    type Error = ServerError;

    fn try_from(key: ApiKey) -> Result<Self, ServerError> {
        let ApiKey { id, name, tenant, role, created_at, revoked_at, .. } = key;
        let role = role.parse().map_err(|error| {
            ServerError::Database(format!("the key `{name}` cannot be read: {error}"))
        })?;
        let (created_at, revoked_at) = (time(created_at), revoked_at.map(time));
        Ok(Self { id, name, tenant, role, created_at, revoked_at })
    }
}

fn time(at: Micros) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(at.0).unwrap_or(0))
}

/// The API keys in a server's database. Servers that use the database need not be stopped: they look a key up for each
/// request, so one that was revoked stops at once. Only a server that was started before there was any key lets everybody in until
/// it is started again.
#[derive(Clone)]
pub struct KeyRing {
    store: Arc<dyn Store>,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyRing")
    }
}

impl KeyRing {
    /// Opens the keys in a database.
    ///
    /// # Errors
    /// The database cannot be opened, or keeps nothing.
    pub async fn open(database: &Database) -> Result<Self, ServerError> {
        if *database == Database::Memory {
            return Err(ServerError::Setup(
                "a database in memory keeps no keys; name one with --db".to_owned(),
            ));
        }
        Ok(Self { store: open_store(database).await? })
    }

    /// Makes a key. Returns it with the text that lets in, which is not kept.
    ///
    /// # Errors
    /// The name is taken or empty, or the tenant cannot be one.
    pub async fn add(
        &self,
        name: &str,
        tenant: &str,
        role: Role,
    ) -> Result<(KeyInfo, String), ServerError> {
        tenant::check_name(tenant).map_err(ServerError::Setup)?;
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(ServerError::Setup("a key needs a name, in one line".to_owned()));
        }
        let (id, text) = new_key().map_err(|error| {
            ServerError::Setup(format!("the system gives no random bytes: {error}"))
        })?;
        let key = ApiKey {
            id,
            name: name.to_owned(),
            tenant: tenant.to_owned(),
            role: role.as_str().to_owned(),
            hash: Hash::of(&text).to_hex(),
            created_at: Micros::now(),
            revoked_at: None,
        };
        if self.store.add_key(key.clone()).await? {
            return Ok((key.try_into()?, text));
        }
        Err(ServerError::Setup(format!(
            "there is a key `{name}` already; revoke it, or choose another name"
        )))
    }

    /// All keys, oldest first, also those that were revoked.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn list(&self) -> Result<Vec<KeyInfo>, ServerError> {
        self.store.keys().await?.into_iter().map(KeyInfo::try_from).collect()
    }

    /// Revokes the key with this name or id.
    ///
    /// # Errors
    /// There is none that works.
    pub async fn revoke(&self, name_or_id: &str) -> Result<KeyInfo, ServerError> {
        let revoked = self.store.revoke_key(name_or_id, Micros::now()).await?;
        let missing = || ServerError::Setup(format!("no key that works is called `{name_or_id}`"));
        revoked.ok_or_else(missing)?.try_into()
    }
}
