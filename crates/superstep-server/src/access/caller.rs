use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde_json::{Map, Value as Json};
use uuid::Uuid;

use super::Identity;
use crate::error::{ApiError, ApiResult};
use crate::store::ListQuery;
use crate::tenant;

/// Who asks for an operation, and which objects there are for them.
#[derive(Clone, Debug)]
pub(crate) struct Caller(Arc<Known>);

#[derive(Debug)]
struct Known {
    /// Nothing if the server does not ask who somebody is.
    identity: Option<Identity>,
    tenant: String,
    filter: Map<String, Json>,
}

impl Caller {
    pub(crate) fn new(identity: Option<Identity>, filter: Map<String, Json>) -> Self {
        let tenant = identity.as_ref().map(|identity| identity.tenant.clone()).unwrap_or_default();
        Self(Arc::new(Known { identity, tenant, filter }))
    }

    /// Whoever owns an object that acts by itself, such as a cron.
    pub(crate) fn owner(tenant: &str, by: Option<&str>, filter: Map<String, Json>) -> Self {
        let identity = by.map(|by| Identity::new(by).tenant(tenant));
        Self(Arc::new(Known { identity, tenant: tenant.to_owned(), filter }))
    }

    pub(crate) fn tenant(&self) -> &str {
        &self.0.tenant
    }

    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.0.identity.as_ref()
    }

    /// Who it is, if the server asks.
    pub(crate) fn id(&self) -> Option<&str> {
        self.0.identity.as_ref().map(|identity| &*identity.id)
    }

    /// What the metadata of objects must contain to be seen.
    pub(crate) fn filter(&self) -> &Map<String, Json> {
        &self.0.filter
    }

    /// The key of an object with an id that must be a UUID.
    pub(crate) fn key(&self, what: &str, id: &str) -> ApiResult<String> {
        match Uuid::try_parse(id) {
            Ok(id) => Ok(tenant::key(self.tenant(), &id.to_string())),
            Err(_) => Err(ApiError::invalid(format!("the {what} id `{id}` is not a UUID"))),
        }
    }

    pub(crate) fn thread(&self, id: &str) -> ApiResult<String> {
        self.key("thread", id)
    }

    /// A new key.
    pub(crate) fn new_key(&self) -> String {
        tenant::key(self.tenant(), &Uuid::now_v7().to_string())
    }

    /// Whether the object with this key belongs to the tenant.
    pub(crate) fn owns(&self, key: &str) -> bool {
        tenant::tenant_of(key) == self.tenant()
    }

    /// Whether an object of the tenant with this metadata is seen.
    pub(crate) fn sees(&self, metadata: &Map<String, Json>) -> bool {
        let contained = |(key, part): (&String, &Json)| {
            metadata.get(key).is_some_and(|whole| crate::store::contains(whole, part))
        };
        self.0.filter.iter().all(contained)
    }

    /// Makes the caller see an object with this metadata.
    pub(crate) fn stamp(&self, metadata: &mut Map<String, Json>) {
        metadata.extend(self.0.filter.clone());
    }

    /// A list of what the caller sees; nothing if what is asked for cannot be among it.
    pub(crate) fn narrow(&self, mut query: ListQuery) -> Option<ListQuery> {
        query.equal.push(("tenant", vec![self.tenant().to_owned()]));
        query.metadata = both(query.metadata, self.0.filter.clone())?;
        Some(query)
    }
}

/// What contains both parts; nothing if they exclude each other.
fn both(mut one: Map<String, Json>, other: Map<String, Json>) -> Option<Map<String, Json>> {
    for (key, value) in other {
        let merged = match (one.remove(&key), value) {
            (None, value) => value,
            (Some(Json::Object(one)), Json::Object(other)) => Json::Object(both(one, other)?),
            (Some(Json::Array(mut one)), Json::Array(other)) => {
                one.extend(other);
                Json::Array(one)
            }
            (Some(one), other) if one == other => one,
            (Some(_), _) => return None,
        };
        one.insert(key, merged);
    }
    Some(one)
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> ApiResult<Self> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            // The gate stands before every operation that is not open.
            ApiError::new(StatusCode::UNAUTHORIZED, "this operation needs an identity")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::contains_all;

    fn map(json: Json) -> Map<String, Json> {
        json.as_object().expect("an object").clone()
    }

    #[test]
    fn a_list_is_of_what_was_asked_for_and_is_seen() {
        for (asked, filter, expected) in [
            (json!({}), json!({ "o": 1 }), Some(json!({ "o": 1 }))),
            (json!({ "o": 1, "x": 2 }), json!({ "o": 1 }), Some(json!({ "o": 1, "x": 2 }))),
            (json!({ "o": 2 }), json!({ "o": 1 }), None),
            (
                json!({ "o": { "a": 1 } }),
                json!({ "o": { "b": 1 } }),
                Some(json!({ "o": { "a": 1, "b": 1 } })),
            ),
            (json!({ "o": { "a": 1 } }), json!({ "o": { "a": 2 } }), None),
            (json!({ "o": [1] }), json!({ "o": [2] }), Some(json!({ "o": [1, 2] }))),
        ] {
            let found = both(map(asked.clone()), map(filter.clone()));
            assert_eq!(found.map(Json::Object), expected, "{asked} {filter}");
        }
    }

    #[test]
    fn what_is_made_is_seen_by_who_made_it() {
        let caller = Caller::owner("t", Some("ada"), map(json!({ "owner": "ada" })));
        let mut metadata = map(json!({ "owner": "bob", "x": 1 }));
        assert!(!caller.sees(&metadata));
        caller.stamp(&mut metadata);
        assert!(caller.sees(&metadata) && contains_all(&json!(metadata), caller.filter()));
        let id = "0192f5a0-0000-7000-8000-000000000000";
        assert_eq!(caller.thread(id).expect("a key"), format!("t:{id}"));
        assert!(caller.owns(&format!("t:{id}")) && !caller.owns(id));
        assert!(caller.thread(&format!("u:{id}")).is_err(), "an id is no key");
    }
}
