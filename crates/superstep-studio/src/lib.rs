//! The studio: a page in which people answer questions, watch runs, look into threads and branch off.
//!
//! [`router`] serves the page at `/studio`. It is static: every figure that it shows comes from the API of the server it is mounted
//! beside, through LangGraph's own JavaScript client, so it sees what any client with the same key sees.
//!
//! `web/` has the sources, in TypeScript; `dist/` has what is made of them and is part of this crate, so building it needs no Node.
//! `cargo xtask studio` writes `dist/` anew, and a test compares.
//!
//! ```
//! let router: axum::Router = superstep_studio::router();
//! # let _ = router;
//! ```

mod files;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use files::{FILES, File};

/// What the page may load and do: its own files, and requests to its own server. No script or style stands in the document.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Serves the page at `/studio`. Nobody needs a key for these files: there is nothing in them that is not in this crate.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        // Relative, so that it holds for a router that is nested under a prefix.
        .route("/studio", get(async || (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "studio/")])))
        .route("/studio/", get(async |headers: HeaderMap| send("index.html", &headers)))
        .route(
            "/studio/{file}",
            get(async |Path(name): Path<String>, headers: HeaderMap| send(&name, &headers)),
        )
}

fn send(name: &str, asked: &HeaderMap) -> Response {
    let Some(file) = FILES.iter().find(|file| file.name == name) else {
        return (StatusCode::NOT_FOUND, "there is no such file in the studio").into_response();
    };
    let etag = file.etag();
    let known = asked.get_all(header::IF_NONE_MATCH).iter();
    let known = known.filter_map(|known| known.to_str().ok()).flat_map(|known| known.split(','));
    let mut response = if known.map(str::trim).any(|known| known == "*" || weak(known) == etag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        body(file, asked)
    };
    let headers = response.headers_mut();
    let mut put = |name, value| drop(headers.insert(name, HeaderValue::from_static(value)));
    put(header::CACHE_CONTROL, "no-cache");
    put(header::VARY, "accept-encoding");
    put(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    put(header::REFERRER_POLICY, "no-referrer");
    put(header::CONTENT_SECURITY_POLICY, POLICY);
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// A tag without the mark that proxies put before one when they compress.
fn weak(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

fn body(file: &File, asked: &HeaderMap) -> Response {
    let kind = HeaderValue::from_static(file.kind);
    if takes_gzip(asked) {
        let encoding = HeaderValue::from_static("gzip");
        let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_ENCODING, encoding)];
        return (headers, file.gzipped).into_response();
    }
    ([(header::CONTENT_TYPE, kind)], file.plain).into_response()
}

fn takes_gzip(asked: &HeaderMap) -> bool {
    let accepted = asked.get_all(header::ACCEPT_ENCODING).iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        let gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let refused = parts
            .filter_map(|part| part.strip_prefix("q=")?.parse::<f32>().ok())
            .any(|weight| weight == 0.0);
        gzip && !refused
    })
}
