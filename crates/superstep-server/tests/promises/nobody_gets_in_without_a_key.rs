//! Shows that with a key, only those who have it get in, except to what says that the server is there; and that without one the
//! server listens on loopback addresses only.

use std::time::Duration;

use axum::http::StatusCode;
use superstep_server::Server;
use tokio::net::TcpListener;

use crate::world::{World, with_graphs};

#[tokio::test]
async fn a_key_is_needed_everywhere_but_where_health_is_asked() {
    let world = World::start(Server::new().api_key("first").api_key("second")).await;
    for (path, open) in [
        ("/ok", true),
        ("/info", true),
        ("/metrics", false),
        ("/", false),
        ("/threads/00000000-0000-0000-0000-000000000000", false),
        ("/store/items?namespace=a&key=k", false),
        ("/nothing", false),
    ] {
        let status = world.get(path).await.status;
        assert_eq!(status != StatusCode::UNAUTHORIZED, open, "{path}: {status}");
        for headers in [[("x-api-key", "second")], [("authorization", "Bearer first")]] {
            let status = world.send("GET", path, &headers, "").await.status;
            assert_ne!(status, StatusCode::UNAUTHORIZED, "{path}");
        }
        for headers in [[("x-api-key", "")], [("x-api-key", "firs")], [("authorization", "first")]]
        {
            let status = world.send("GET", path, &headers, "").await.status;
            assert_eq!(status != StatusCode::UNAUTHORIZED, open, "{path}: {headers:?}");
        }
    }
    // A browser asks first, without a key.
    let asks = [("origin", "http://ui"), ("access-control-request-method", "POST")];
    let allowed = world.send("OPTIONS", "/threads", &asks, "").await;
    assert_eq!(allowed.status, StatusCode::OK);
    let refused = world.send("GET", "/threads/x", &asks, "").await;
    assert_eq!(
        refused.headers["access-control-allow-origin"], "*",
        "a browser may read the refusal"
    );
}

#[tokio::test]
async fn without_a_key_only_this_machine_gets_in() {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("an address");
    let server = with_graphs(Server::new()).start().await.expect("a server");
    let refused = server.serve(listener, std::future::pending(), Duration::ZERO).await;
    let text = refused.expect_err("it is refused").to_string();
    assert!(text.contains("API key"), "{text}");

    let listener = TcpListener::bind("127.0.0.1:0").await.expect("an address");
    let server = with_graphs(Server::new()).start().await.expect("a server");
    server.serve(listener, std::future::ready(()), Duration::from_secs(5)).await.expect("it ends");
    let empty = Server::new().api_key("").start().await;
    assert!(empty.is_err(), "an empty key would let everybody in");
}
