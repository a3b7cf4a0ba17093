use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use serde_json::Map;

use super::secret::{Hash, id_of};
use super::{Denied, SharedAuth, by_role};
use crate::access::{Access, Action, Caller, Filter, Identity, Resource, Role};
use crate::app::App;
use crate::error::{ApiError, ApiResult};
use crate::store::{ApiKey, Store};
use crate::tenant;

/// Who lets requests in.
pub(crate) struct Gatekeeper {
    /// Keys that were given when the server was started: admins of the default tenant.
    fixed: Vec<Hash>,
    /// There are keys in the store.
    stored: bool,
    /// The user's own.
    own: Option<SharedAuth>,
}

impl Gatekeeper {
    pub(crate) fn new(keys: &[String], stored: bool, own: Option<SharedAuth>) -> Self {
        Self { fixed: keys.iter().map(|key| Hash::of(key)).collect(), stored, own }
    }

    /// Whether everybody is let in.
    pub(crate) fn is_open(&self) -> bool {
        self.fixed.is_empty() && !self.stored && self.own.is_none()
    }

    /// Who sends a request.
    async fn identify(&self, store: &dyn Store, request: &Parts) -> Result<Identity, Denied> {
        for given in credentials(&request.headers) {
            if let Some(identity) = self.by_key(store, given).await? {
                return Ok(identity);
            }
        }
        match &self.own {
            Some(own) => own.authenticate(request).await,
            None => Err(Denied::Unauthenticated(
                "no valid API key; send one as `x-api-key` or as `authorization: Bearer`"
                    .to_owned(),
            )),
        }
    }

    async fn by_key(&self, store: &dyn Store, given: &str) -> Result<Option<Identity>, Denied> {
        let hash = Hash::of(given);
        // All are compared, so that the time does not say which one it was.
        if self.fixed.iter().fold(false, |any, key| any | key.is(&hash)) {
            return Ok(Some(Identity::new("api-key").role(Role::Admin)));
        }
        let Some(id) = id_of(given).filter(|_| self.stored) else { return Ok(None) };
        // Each request asks the store, so a key that was revoked, by any process, works no more.
        let found = store.key(id).await.map_err(|error| {
            tracing::error!(%error, "a key could not be looked up");
            Denied::Unavailable("the server's database does not answer; try again".to_owned())
        })?;
        let works = found.filter(|key| key.revoked_at.is_none() && hash.is_hex(&key.hash));
        let identity = |key: ApiKey| match key.role.parse() {
            Ok(role) => Ok(Identity::new(key.name).tenant(key.tenant).role(role)),
            Err(error) => Err(Denied::Forbidden(format!("the key has a role of its own: {error}"))),
        };
        works.map(identity).transpose()
    }

    async fn authorise(&self, identity: &Identity, access: Access) -> Result<Filter, Denied> {
        match &self.own {
            Some(own) => own.authorise(identity, access).await,
            None => by_role(identity, access),
        }
    }
}

/// What a request says to show who sends it.
fn credentials(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let own = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    own.into_iter().chain(bearer(headers))
}

/// What a request sends as `authorization: Bearer`.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")
}

/// What stands before an operation.
#[derive(Clone)]
pub(crate) struct Gate {
    pub(crate) app: Arc<App>,
    pub(crate) access: Access,
}

pub(crate) async fn check(
    State(Gate { app, access }): State<Gate>,
    request: Request,
    next: Next,
) -> ApiResult<Response> {
    let (mut head, body) = request.into_parts();
    if access.action != Action::Open {
        head.extensions.insert(admit(&app, &head, access).await?);
    }
    Ok(next.run(Request::from_parts(head, body)).await)
}

async fn admit(app: &App, head: &Parts, access: Access) -> ApiResult<Caller> {
    if app.gatekeeper.is_open() {
        return Ok(Caller::new(None, Map::new()));
    }
    let identity = app.gatekeeper.identify(&*app.store, head).await?;
    tenant::check_name(&identity.tenant).map_err(Denied::Forbidden)?;
    let Filter(filter) = app.gatekeeper.authorise(&identity, access).await?;
    if access.resource == Resource::Store && !filter.is_empty() {
        tracing::error!("a filter was given for the store, whose items have no metadata");
        return Err(Denied::Forbidden("items of the store cannot be filtered".to_owned()).into());
    }
    app.prepare(&identity.tenant).await?;
    Ok(Caller::new(Some(identity), filter))
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        let (status, detail) = match denied {
            Denied::Unauthenticated(detail) => (StatusCode::UNAUTHORIZED, detail),
            Denied::Forbidden(detail) => (StatusCode::FORBIDDEN, detail),
            Denied::Unavailable(detail) => (StatusCode::SERVICE_UNAVAILABLE, detail),
        };
        Self::new(status, detail)
    }
}
