use std::borrow::Cow;
use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde_json::Value as Json;

use crate::error::{ApiError, ApiResult};

/// The query of a URL. Lists come as repeated keys, as JSON arrays, or with commas, depending on the client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = form_urlencoded::parse(query.as_bytes());
        Ok(Self(pairs.map(|(key, value)| (key.into_owned(), value.into_owned())).collect()))
    }
}

impl Query {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| &**value)
    }

    pub(crate) fn flag(&self, key: &str) -> ApiResult<bool> {
        match self.get(key).map(str::to_ascii_lowercase).as_deref() {
            None | Some("false" | "0" | "no") => Ok(false),
            Some("true" | "1" | "yes") => Ok(true),
            Some(other) => {
                Err(ApiError::invalid(format!("`{key}` is `{other}`, not true or false")))
            }
        }
    }

    pub(crate) fn number(&self, key: &str) -> ApiResult<Option<i64>> {
        let number = self.get(key).map(str::parse).transpose();
        number.map_err(|_| ApiError::invalid(format!("`{key}` is not a number")))
    }

    pub(crate) fn list(&self, key: &str) -> Option<Vec<String>> {
        let given: Vec<&String> =
            self.0.iter().filter(|(name, _)| name == key).map(|(_, value)| value).collect();
        if given.is_empty() {
            return None;
        }
        let words = given.into_iter().flat_map(|value| match serde_json::from_str(value) {
            Ok(Json::Array(words)) => words
                .into_iter()
                .map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned))
                .collect::<Vec<_>>(),
            _ => value.split(',').map(|word| Cow::from(word.trim()).into_owned()).collect(),
        });
        Some(words.filter(|word| !word.is_empty()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_come_in_three_spellings() {
        let query = |pairs: &[(&str, &str)]| {
            Query(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect())
        };
        for spelled in [
            query(&[("select", "a"), ("select", "b")]),
            query(&[("select", r#"["a","b"]"#)]),
            query(&[("select", "a, b")]),
        ] {
            assert_eq!(spelled.list("select"), Some(vec!["a".to_owned(), "b".to_owned()]));
        }
        assert_eq!(query(&[]).list("select"), None);
        assert!(query(&[("wait", "True")]).flag("wait").expect("a flag"));
        assert!(query(&[("wait", "perhaps")]).flag("wait").is_err());
    }
}
