//! `fork` makes an older checkpoint the head again, and the program continues from there. The program is an example; its page
//! gives these commands.

#[path = "../../../examples/src/bin/time_travel.rs"]
#[allow(dead_code, reason = "its `main` is not called")]
mod time_travel;
mod world;

use world::{Dir, failed, json, said, superstep, text};

#[tokio::test]
async fn and_the_program_continues_it() {
    let dir = Dir::new();
    let file = dir.path().join("story.db");
    let (file, db) = (text(&file), format!("sqlite:{}", file.display()));
    let run = |args: &[&str]| superstep(&[&["--db", &db], args].concat());

    let told = time_travel::tell(file, None).await.expect("a story");
    assert_eq!(told, "Once there was a knight. The knight lived happily ever after.");
    let history = said(&run(&["history", "story-1"]));
    let before = said(&run(&["show", "story-1", "--at", "head~1"]));
    assert!(before.contains("next: end") && before.contains("knight"), "{before}");

    let would = said(&run(&["fork", "story-1", "head~1"]));
    assert!(would.contains("would begin a branch") && would.contains("--yes"), "{would}");
    assert_eq!(said(&run(&["history", "story-1"])), history, "nothing was changed");

    let forked = json(&run(&["--json", "fork", "story-1", "head~1", "--yes"]));
    let now = json(&run(&["--json", "show", "story-1"]));
    assert_eq!((&now["checkpoint"], &now["source"]), (&forked["head"], &"fork".into()));
    assert_eq!(now["next"], serde_json::json!(["end"]));
    assert_eq!(now["values"]["lines"], serde_json::json!(["Once there was a knight."]));

    let told = time_travel::tell(file, Some("dragon".to_owned())).await.expect("a story");
    assert_eq!(told, "Once there was a knight. The dragon lived happily ever after.");
    assert_eq!(said(&run(&["check"])).lines().count(), 1, "no damage");
    let tree = said(&run(&["history", "story-1"]));
    assert!(tree.contains("├─●"), "the old line stays: {tree}");

    let (line, _) = failed(&run(&["fork", "story-1", "head~99", "--yes"]));
    assert!(line.contains("`head~99`") && line.contains("superstep history"), "{line}");
}
