//! Shows that a key of `superstep keys add` lets into a running `superstep serve`, that it stops at once when another process
//! revokes it, and that `superstep.toml` is read and its mistakes are named.

#[path = "world/served.rs"]
mod served;
mod world;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value as Json;
use served::Served;
use world::{Dir, command, failed, json, said, superstep, text};

/// The status that a look at the threads is answered with.
fn look(url: &str, key: &str) -> String {
    let address = url.strip_prefix("http://").expect("an address");
    let mut socket = TcpStream::connect(address).expect("a connection");
    let head = format!(
        "POST /threads/count HTTP/1.1\r\nhost: x\r\nx-api-key: {key}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
    );
    socket.write_all(head.as_bytes()).expect("a request");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).expect("a status").to_owned()
}

#[test]
fn as_a_process_beside_the_server() {
    let dir = Dir::new();
    let file = dir.path().join("server.db");
    let db = format!("sqlite:{}", text(&file));
    let keys = |args: &[&str]| superstep(&[&["--db", &*db, "keys"][..], args].concat());
    let key = said(&keys(&["add", "ada", "--tenant", "acme"])).trim().to_owned();
    assert!(key.starts_with("superstep_") && !key.contains('\n'), "{key}");
    let second = json(&keys(&["add", "bob", "--role", "viewer", "--json"]));
    let server = Served::start(&file, None);
    assert_eq!(look(&server.url, &key), "200");
    assert_eq!(look(&server.url, second["key"].as_str().expect("a key")), "200");
    assert_eq!(look(&server.url, "superstep_0_0"), "401");

    let listed = json(&keys(&["list", "--json"]));
    assert_eq!((&listed[0]["name"], &listed[0]["tenant"]), (&"ada".into(), &"acme".into()));
    assert_eq!((&listed[1]["role"], &listed[1]["revoked_at"]), (&"viewer".into(), &Json::Null));
    assert!(!listed.to_string().contains(&key), "keys are not kept");
    assert!(said(&keys(&["list"])).contains("user of tenant acme"));
    assert!(said(&keys(&["revoke", "ada"])).contains("`ada`"));
    assert_eq!(look(&server.url, &key), "401", "at once");
    for (args, says) in [
        (&["add", "bob"][..], "`bob`"),
        (&["add", "eve", "--tenant", "a:b"], "`a:b`"),
        (&["revoke", "ada"], "`ada`"),
        (&["add", "eve", "--role", "king"], "`king`"),
    ] {
        let (error, _) = failed(&keys(args));
        assert!(error.contains(says), "{error}");
    }
    let (error, _) = failed(&superstep(&["--db", "memory", "keys", "list"]));
    assert!(error.contains("memory"), "{error}");
    let (error, code) = failed(&superstep(&["keys", "list"]));
    assert!(error.contains("--db") && code == 2, "{error}");
}

#[test]
fn a_file_says_what_no_argument_does() {
    let dir = Dir::new();
    let serve = |args: &[&str]| {
        let mut command = command(&[&["serve"][..], args].concat());
        command.current_dir(dir.path()).output().expect("the program runs")
    };
    dir.file("superstep.toml", "workers = 3\nlisten = \"127.0.0.1:0\"\nwokers = 4\n");
    let (error, _) = failed(&serve(&[]));
    assert!(error.contains("`superstep.toml`, line 3") && error.contains("`wokers`"), "{error}");
    let named = dir.file("named.toml", "\nlisten = 7\n");
    let (error, _) = failed(&serve(&["--config", text(&named)]));
    assert!(error.contains("line 2"), "{error}");
    let (error, _) = failed(&serve(&["--config", "missing.toml"]));
    assert!(error.contains("`missing.toml`"), "{error}");
    // Without a key the address of the file is refused; an argument wins over the file.
    dir.file("superstep.toml", "listen = \"0.0.0.0:0\"\ndb = \"memory\"\n");
    let (error, _) = failed(&serve(&[]));
    assert!(error.contains("0.0.0.0"), "{error}");
    let (error, _) = failed(&serve(&["--listen", "here"]));
    assert!(error.contains("`here`") || error.contains("'here'"), "{error}");
}
