//! The files of the page: compressed for those who take that, not sent twice, and under a policy that lets nothing else in. A file
//! that loses its policy or its type is a hole, and nobody would see it.

use axum::body::{Body, to_bytes};
use axum::http::{Request, Response, StatusCode, header};
use tower::ServiceExt as _;

async fn get(path: &str, headers: &[(header::HeaderName, &str)]) -> Response<Body> {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(name, *value);
    }
    let request = request.body(Body::empty()).expect("a request");
    superstep_studio::router().oneshot(request).await.expect("an answer")
}

fn header_of<'a>(response: &'a Response<Body>, name: &header::HeaderName) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().expect("text"))
}

const FILES: [(&str, &str); 4] = [
    ("/studio/", "text/html"),
    ("/studio/studio.js", "text/javascript"),
    ("/studio/studio.css", "text/css"),
    ("/studio/icon.svg", "image/svg+xml"),
];

#[tokio::test]
async fn every_file_has_its_type_and_the_policy() {
    for (path, kind) in FILES {
        for encoding in ["gzip, br", "identity", "gzip;q=0"] {
            let response = get(path, &[(header::ACCEPT_ENCODING, encoding)]).await;
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert!(header_of(&response, &header::CONTENT_TYPE).starts_with(kind), "{path}");
            let policy = header_of(&response, &header::CONTENT_SECURITY_POLICY);
            assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
            assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
            assert_eq!(header_of(&response, &header::X_CONTENT_TYPE_OPTIONS), "nosniff");
            let gzipped = header_of(&response, &header::CONTENT_ENCODING) == "gzip";
            assert_eq!(gzipped, encoding == "gzip, br", "{path} {encoding}");
            let body = to_bytes(response.into_body(), usize::MAX).await.expect("a body");
            assert_eq!(body.starts_with(&[0x1f, 0x8b]), gzipped, "{path} {encoding}");
        }
    }
}

#[tokio::test]
async fn a_file_that_is_known_is_not_sent_again() {
    for (path, _) in FILES {
        let first = get(path, &[]).await;
        let tag = header_of(&first, &header::ETAG).to_owned();
        let weak = format!("\"other\", W/{tag}");
        for known in [&tag, &weak, "*"] {
            let again = get(path, &[(header::IF_NONE_MATCH, known)]).await;
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path} {known}");
            assert_eq!(header_of(&again, &header::ETAG), tag);
        }
        let other = get(path, &[(header::IF_NONE_MATCH, "\"other\"")]).await;
        assert_eq!(other.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn the_page_is_found_without_its_slash_and_nothing_else_is() {
    let moved = get("/studio", &[]).await;
    assert_eq!(moved.status(), StatusCode::PERMANENT_REDIRECT);
    assert_eq!(header_of(&moved, &header::LOCATION), "studio/");
    for path in ["/studio/nothing.js", "/studio/..%2fCargo.toml", "/studio/studio.js.gz"] {
        assert_eq!(get(path, &[]).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

/// What everybody who opens the page has to load.
#[test]
fn the_page_is_small() {
    let dist = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("dist");
    let files = std::fs::read_dir(dist).expect("the built page").flatten();
    let sizes: Vec<u64> = files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "gz"))
        .map(|file| file.metadata().expect("a size").len())
        .collect();
    assert_eq!(sizes.len(), FILES.len());
    assert!(sizes.iter().sum::<u64>() <= 120 * 1024, "{sizes:?}");
}
