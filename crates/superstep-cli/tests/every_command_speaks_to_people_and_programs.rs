//! Each command, piped and with `--json`, on a database of ours and on one of LangGraph.

mod world;

use serde_json::{Value as Json, json};
use world::{Dir, failed, python, python_db, said, superstep, text};

struct Db(String);

impl Db {
    fn text(&self, args: &[&str]) -> String {
        said(&superstep(&[&["--db", &self.0][..], args].concat()))
    }

    fn json(&self, args: &[&str]) -> Json {
        world::json(&superstep(&[&["--db", &self.0, "--json"][..], args].concat()))
    }
}

#[test]
fn on_a_thread_of_ours_that_waits() {
    let dir = Dir::new();
    dir.run_demo("");
    let db = Db(dir.demo_db());
    let threads = db.json(&["threads"]);
    assert_eq!(threads["threads"][0]["thread"], "mail-1");
    assert_eq!(threads["threads"][0]["status"], "waiting");
    assert_eq!(threads["threads"][0]["questions"][0]["value"]["to"], "ada@example.org");
    assert_eq!(threads["next"], Json::Null);
    assert!(db.text(&["threads"]).starts_with("waiting  "));

    let show = db.json(&["show", "mail-1"]);
    assert_eq!(show["next"], json!(["review"]));
    assert_eq!(show["values"]["topic"], "a late order");
    assert_eq!(show["values"]["facts"].as_array().map(Vec::len), Some(2), "{show}");
    assert_eq!(show["rebuilt"], json!(["facts"]), "the list is stored as what was added to it");
    assert_eq!(show["tasks"][0]["node"], "review");
    let shown = db.text(&["show", "mail-1"]);
    assert!(shown.contains("by appending") && shown.contains("next: review"), "{shown}");

    let inbox = db.json(&["inbox"]);
    assert_eq!(inbox["questions"][0]["thread"], "mail-1");
    assert!(inbox["questions"][0]["response_schema"]["anyOf"].is_array());
    assert!(db.text(&["inbox"]).contains("Dear ada"));

    let history = db.json(&["history", "mail-1"]);
    let checkpoints = history["checkpoints"].as_array().expect("a list");
    assert_eq!(checkpoints.first().map(|first| &first["step"]), Some(&json!(-1)));
    assert_eq!(checkpoints.last().map(|last| &last["next"]), Some(&json!(["review"])));
    assert_eq!(checkpoints[2]["next"], json!(["handbook", "orders"]));
    assert_eq!(checkpoints[3]["next"], json!(["draft"]), "both members of the join were seen");
    assert!(db.text(&["history", "mail-1"]).contains("(head)"));

    let diff = db.json(&["diff", "mail-1", "head~2", "head~1"]);
    assert_eq!(diff["changes"]["facts"]["added"].as_array().map(Vec::len), Some(2), "{diff}");
    assert!(db.text(&["diff", "mail-1", "head", "head"]).contains("equal"));
    let id = checkpoints[0]["id"].as_str().expect("an id");
    assert!(db.json(&["diff", "mail-1", id, "head"])["changes"]["draft"]["after"].is_string());
    assert_eq!(db.json(&["show", "mail-1", "--at", id])["step"], -1);

    assert_eq!(db.json(&["check"])["problems"], json!([]));
    assert!(db.text(&["check"]).contains("0 problems"));
    assert!(db.json(&["graph"])["drawing"].as_str().expect("a drawing").contains("[review]"));
    assert!(db.text(&["graph"]).contains("to_mermaid()"));
    assert!(db.text(&["graph", "--format", "mermaid"]).starts_with("flowchart TD"));
}

#[test]
fn what_changes_something_says_so_first_and_then_does_it() {
    let dir = Dir::new();
    dir.run_demo("approve");
    let db = Db(dir.demo_db());
    assert_eq!(db.json(&["threads"])["threads"][0]["status"], "done");
    let would = db.text(&["copy", "mail-1", "mail-2"]);
    assert!(would.contains("would copy") && would.contains("--yes"), "{would}");
    assert_eq!(db.json(&["copy", "mail-1", "mail-2", "--yes"])["done"], true);
    let (line, _) = failed(&superstep(&["--db", &db.0, "copy", "mail-1", "mail-2"]));
    assert!(line.contains("choose another id"), "{line}");
    assert_eq!(db.json(&["threads", "--limit", "1"])["threads"].as_array().map(Vec::len), Some(1));
    let end = db.json(&["threads", "--limit", "1"])["next"].as_str().expect("more").to_owned();
    assert_eq!(db.json(&["threads", "--after", &end])["threads"].as_array().map(Vec::len), Some(1));

    let would = db.json(&["prune", "mail-2", "--keep", "2"]);
    assert_eq!(would["done"], false);
    assert_eq!(db.json(&["prune", "mail-2", "--keep", "2", "--yes"])["removed"], would["removed"]);
    assert_eq!(db.json(&["prune", "--all", "--older-than", "1d"])["removed"]["mail-1"], 0);
    assert_eq!(db.json(&["check"])["problems"], json!([]));
    let facts = &db.json(&["show", "mail-2"])["values"]["facts"];
    assert_eq!(facts.as_array().map(Vec::len), Some(2), "what is rebuilt can still be");

    assert_eq!(db.json(&["delete", "mail-2"])["done"], false);
    assert_eq!(db.json(&["delete", "mail-2", "--yes"])["done"], true);
    assert_eq!(db.json(&["threads"])["threads"].as_array().map(Vec::len), Some(1));
}

#[test]
fn what_is_exported_comes_back_the_same() {
    let dir = Dir::new();
    dir.run_demo("");
    let mut sources = vec![dir.demo_db()];
    sources.extend(python_db(&dir));
    for (nth, source) in sources.into_iter().enumerate() {
        let export = Db(source).text(&["export"]);
        let file = dir.file(&format!("{nth}.jsonl"), &export);
        let copy = Db(format!("sqlite:{}", dir.path().join(format!("{nth}.db")).display()));
        assert!(copy.json(&["import", text(&file)])["imported"].is_object(), "the file is made");
        assert_eq!(copy.text(&["export"]), export);
        let (line, _) = failed(&superstep(&["--db", &copy.0, "import", text(&file)]));
        assert!(line.contains("is there already"), "{line}");
    }
    let noise = dir.file("noise.jsonl", "{}\n");
    let new = dir.path().join("new.db");
    for db in [dir.demo_db(), format!("sqlite:{}", new.display())] {
        let (line, _) = failed(&superstep(&["--db", &db, "import", text(&noise)]));
        assert!(line.contains("not an export"), "{line}");
    }
    assert!(!new.exists(), "nothing is made for what is no export");
}

/// The commands one after the other on a database with this thread, which waits for an answer. `run` gives what one prints.
fn all_commands(dir: &Dir, thread: &str, run: impl Fn(&[&str]) -> String) {
    let export = dir.file("export.jsonl", &run(&["export", thread]));
    for args in [
        &["threads"][..],
        &["show", thread],
        &["history", thread],
        &["diff", thread, "head~1", "head"],
        &["inbox"],
        &["answer", thread, "approve"],
        &["check"],
        &["copy", thread, "copy", "--yes"],
        &["prune", "copy", "--keep", "1", "--yes"],
        &["delete", thread, "--yes"],
        &["import", text(&export)],
        &["show", "copy"],
        &["migrate"],
        &["graph"],
    ] {
        assert!(!run(args).is_empty(), "{args:?} said nothing");
    }
    assert_eq!(run(&["export", thread]), std::fs::read_to_string(export).expect("an export"));
}

#[test]
fn every_command_in_both_forms_on_databases_of_both_engines() {
    for json in [false, true] {
        let ours = Dir::new();
        ours.run_demo("");
        let theirs = Dir::new();
        let databases = [
            Some((&ours, ours.demo_db(), "mail-1")),
            python_db(&theirs).map(|db| (&theirs, db, "waits")),
        ];
        for (dir, db, thread) in databases.into_iter().flatten() {
            all_commands(dir, thread, |args| {
                let form: &[&str] = if json { &["--json"] } else { &[] };
                let said = said(&superstep(&[&["--db", &db][..], args, form].concat()));
                let lines = said.lines().filter(|line| serde_json::from_str::<Json>(line).is_ok());
                let (lines, all) = (lines.count(), said.lines().count());
                match (json, args[0]) {
                    (_, "export") => assert_eq!(lines, all, "{args:?}: {said}"),
                    (true, _) => assert_eq!((lines, all), (1, 1), "{args:?}: {said}"),
                    (false, _) => assert_ne!(lines, all, "{args:?}: {said}"),
                }
                said
            });
        }
    }
}

#[test]
fn on_threads_of_langgraph() {
    let dir = Dir::new();
    let Some(db) = python_db(&dir).map(Db) else { return };
    let threads = db.json(&["threads"]);
    let status = |name: &str| {
        let mut all = threads["threads"].as_array().expect("a list").iter();
        all.find(|thread| thread["thread"] == name).expect("the thread")["status"].clone()
    };
    assert_eq!(status("waits"), "waiting");
    assert_eq!(status("done"), "done");
    assert_eq!(status("failed"), "failed");
    let show = db.json(&["show", "waits"]);
    assert_eq!(show["values"]["log"], json!(["in", "first"]));
    assert_eq!(show["next"], json!(["second"]));
    let message = &show["values"]["message"];
    assert_eq!(message["type"], "langchain_core.messages.human.HumanMessage", "{message}");
    assert_eq!(message["value"]["content"], "hi", "{message}");
    assert!(db.text(&["show", "failed"]).contains("the line went dead"));
    assert_eq!(db.json(&["inbox"])["questions"][0]["value"]["send?"], json!(["in", "first"]));
    assert_eq!(db.json(&["check"])["problems"], json!([]));
    assert!(db.text(&["history", "done"]).contains("(head)"));
    assert!(db.json(&["diff", "done", "head~1", "head"])["changes"]["log"]["added"].is_array());
    // Python continues with an answer that we left.
    db.text(&["answer", "waits", "yes, do"]);
    assert_eq!(db.json(&["inbox"])["questions"], json!([]));
    let said = python(db.0.trim_start_matches("sqlite:"), &["resume"]);
    assert_eq!(said.expect("there was a Python before").trim(), "yes, do");
}
