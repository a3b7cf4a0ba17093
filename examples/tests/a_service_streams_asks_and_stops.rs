//! The service over real HTTP: tokens with the id of their message, the question in the inbox, an answer, and SIGTERM.

#![cfg(unix)]

mod world;

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;
use world::{Program, dir};

/// The body of the response. HTTP 1.0, so that the body ends with the connection.
fn request(address: &str, line: &str, kind: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the service listens");
    let length = body.len();
    write!(
        stream,
        "{line} HTTP/1.0\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("the service reads");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("text");
    let (head, body) = response.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains(" 200 "), "{head}\n{body}");
    body.to_owned()
}

/// The name and data of each event of a stream.
fn events(body: &str) -> Vec<(String, Value)> {
    let event = |text: &str| {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        let name = field("event: ").expect("a name").to_owned();
        (name, serde_json::from_str(field("data: ").expect("data")).expect("JSON"))
    };
    body.split("\n\n").filter(|text| !text.trim().is_empty()).map(event).collect()
}

#[test]
fn as_its_page_says() {
    let dir = dir("service");
    let file = dir.join("desk.db");
    let file = file.to_str().expect("a path that is text");
    let mut service = Program::start(env!("CARGO_BIN_EXE_service"), &[file, "127.0.0.1:0"]);
    let url = service.line();
    let address = url.strip_prefix("http://").expect("an address");

    let asked = events(&request(address, "POST /threads/mail-1", "text/plain", "where is it?"));
    let chunks: Vec<&Value> =
        asked.iter().filter(|(name, _)| name == "messages").map(|(_, data)| &data[0]).collect();
    let text: String = chunks.iter().filter_map(|chunk| chunk["content"].as_str()).collect();
    assert_eq!(text, "You asked: where is it?", "no token is missing or repeated");
    assert!(chunks.len() > 1, "{chunks:?}");
    let (_, written) = asked.iter().find(|(name, _)| name == "updates").expect("an update");
    let id = &written["draft"]["messages"][0]["id"];
    assert!(id.is_string() && chunks.iter().all(|chunk| chunk["id"] == *id), "{asked:?}");
    let (name, outcome) = asked.last().expect("an outcome");
    assert_eq!((name.as_str(), &outcome["status"]), ("outcome", &"interrupted".into()));

    let inbox = request(address, "GET /inbox", "text/plain", "");
    let inbox: Value = serde_json::from_str(&inbox).expect("JSON");
    assert_eq!(inbox[0]["thread"], "mail-1");
    assert_eq!(inbox[0]["question"], "send it?");
    assert_eq!(inbox.as_array().map(Vec::len), Some(1));

    let answered =
        events(&request(address, "POST /threads/mail-1/answer", "application/json", "true"));
    let (_, outcome) = answered.last().expect("an outcome");
    assert_eq!((&outcome["status"], &outcome["output"]["sent"]), (&"done".into(), &true.into()));
    assert_eq!(request(address, "GET /inbox", "text/plain", ""), "[]");

    service.terminate();
    assert_eq!(service.rest(), ["every run has stopped"]);
}
