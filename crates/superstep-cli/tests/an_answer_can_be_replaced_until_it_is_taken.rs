//! Somebody who answers sees that the question is answered, and can change the answer until a run takes it. What does not fit the
//! schema of the question is refused, and the answer that was there stays.

mod world;

use serde_json::json;
use world::{Dir, failed, json as json_of, said, superstep};

#[test]
fn an_answer_can_be_replaced_until_it_is_taken() {
    let dir = Dir::new();
    dir.run_demo("");
    let db = dir.demo_db();
    let on = |args: &[&str]| superstep(&[&["--db", &db][..], args].concat());
    let (line, _) = failed(&on(&["answer", "mail-1", "--replace", "approve"]));
    assert!(line.contains("no answer was left"), "{line}");
    let shown = json_of(&on(&["--json", "show", "mail-1"]));
    assert_eq!(shown["questions"][0]["answered"], false);

    said(&on(&["answer", "mail-1", "reject"]));
    let shown = json_of(&on(&["--json", "show", "mail-1"]));
    assert_eq!(shown["questions"][0]["answer"], "reject");
    assert_eq!(shown["status"], "ready");
    let text = said(&on(&["show", "mail-1"]));
    assert!(text.contains("answered with \"reject\"") && text.contains("--replace"), "{text}");
    let (line, _) = failed(&on(&["answer", "mail-1", "approve"]));
    assert!(line.contains("answered already") && line.contains("--replace"), "{line}");

    let (line, code) = failed(&on(&["answer", "mail-1", "--replace", "perhaps"]));
    assert!(line.contains("does not fit the schema"), "{line}");
    assert_eq!(code, 1);
    assert_eq!(json_of(&on(&["--json", "show", "mail-1"])), shown, "nothing was changed");

    let told = said(&on(&["answer", "mail-1", "--replace", r#"{"edit": "Sorry!"}"#]));
    assert!(told.contains("is answered with {\"edit\":\"Sorry!\"}"), "{told}");
    let ended = dir.run_demo("");
    assert!(ended.contains("sent: accepted for"), "{ended}");
    let shown = json_of(&on(&["--json", "show", "mail-1"]));
    assert_eq!((&shown["values"]["draft"], &shown["questions"]), (&json!("Sorry!"), &json!([])));
    let (line, _) = failed(&on(&["answer", "mail-1", "--replace", "reject"]));
    assert!(line.contains("no answer was left"), "{line}");
}
