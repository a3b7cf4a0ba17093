//! The same commands on PostgreSQL: looking makes no tables, threads move there and are the same, and a refused login is an
//! error of one line.

mod world;

use serde_json::json;
use world::server::{Database, client};
use world::{Dir, failed, none_opens, python, said, superstep, text};

#[tokio::test]
async fn threads_move_to_a_server() {
    let dir = Dir::new();
    dir.run_demo("");
    let export = said(&superstep(&["--db", &dir.demo_db(), "export"]));
    let file = dir.file("threads.jsonl", &export);
    let database = Database::new("ours").await;
    let db = database.url.as_str();
    for args in [&["threads"][..], &["check"], &["export"]] {
        let (line, code) = failed(&superstep(&[&["--db", db][..], args].concat()));
        assert!(line.contains("superstep migrate"), "{line}");
        assert_eq!(code, 1);
    }
    assert_eq!(database.tables().await, 0, "looking makes no tables");
    said(&superstep(&["--db", db, "import", text(&file)]));
    let show = world::json(&superstep(&["--db", db, "--json", "show", "mail-1"]));
    assert_eq!(
        show,
        world::json(&superstep(&["--db", &dir.demo_db(), "--json", "show", "mail-1"]))
    );
    let check = world::json(&superstep(&["--db", db, "--json", "check"]));
    assert_eq!(check["problems"], json!([]));
    said(&superstep(&["--db", db, "answer", "mail-1", "approve"]));
    assert!(said(&superstep(&["--db", db, "inbox"])).contains("no open questions"));
    let threads = world::json(&superstep(&["--db", db, "--json", "threads"]));
    assert_eq!(threads["threads"][0]["status"], "ready");

    database.delete().await;
}

/// Python makes the tables, and they are not the ones we would make first; it continues with what
/// was answered here.
#[tokio::test]
async fn threads_of_langgraph_are_on_a_server_too() {
    let database = Database::new("python").await;
    let db = database.url.as_str();
    if python(db, &[]).is_some() {
        let before = database.tables().await;
        let threads = world::json(&superstep(&["--db", db, "--json", "threads"]));
        let status = |name: &str| {
            let mut all = threads["threads"].as_array().expect("a list").iter();
            all.find(|thread| thread["thread"] == name).expect("the thread")["status"].clone()
        };
        assert_eq!(
            [status("waits"), status("done"), status("failed")],
            ["waiting", "done", "failed"]
        );
        let show = world::json(&superstep(&["--db", db, "--json", "show", "waits"]));
        assert_eq!(show["values"]["message"]["value"]["content"], "hi", "{show}");
        for args in [
            &["history", "done"][..],
            &["diff", "done", "head~1", "head"],
            &["inbox"],
            &["check"],
            &["export"],
        ] {
            assert!(!said(&superstep(&[&["--db", db][..], args].concat())).is_empty(), "{args:?}");
        }
        assert_eq!(database.tables().await, before, "looking makes no tables");
        said(&superstep(&["--db", db, "answer", "waits", "yes, do"]));
        assert_eq!(python(db, &["resume"]).expect("there was a Python before").trim(), "yes, do");
    }
    database.delete().await;
}

/// A server of its own, since it has to be told to ask for passwords.
#[tokio::test]
async fn a_wrong_password_is_told_in_one_line_and_not_shown() {
    let cluster = superstep_testdb::Cluster::start().expect("a server");
    let url = cluster.url();
    let admin = client(&url).await;
    let row = admin.query_one("SHOW hba_file", &[]).await.expect("a file");
    let rule = "host all all 127.0.0.1/32 scram-sha-256";
    let file: String = row.get(0);
    let sql = format!(
        "ALTER ROLE postgres PASSWORD 'right'; COPY (SELECT '{rule}') TO '{file}'; SELECT pg_reload_conf()"
    );
    admin.batch_execute(&sql).await.expect("told");
    let wrong = url.replacen("postgres@", "postgres:swordfish@", 1);
    // The server takes its new rules up in its own time; until then it does not look at passwords.
    let line = (0..1_000).find_map(|_| {
        let (line, code) = failed(&superstep(&["--db", &wrong, "threads"]));
        assert_eq!(code, 1);
        line.contains("password").then_some(line)
    });
    let line = line.expect("the server asks for a password");
    assert!(line.contains("password authentication failed for user \"postgres\""), "{line}");
    assert!(!line.contains("swordfish"), "{line}");
    assert_eq!(line.matches("password authentication").count(), 1, "said once: {line}");
    none_opens(&wrong, "password authentication failed");
    let (line, code) = failed(&superstep(&["--db", &wrong, "migrate"]));
    assert!(line.contains("password authentication failed") && code == 1, "{line}");
}
