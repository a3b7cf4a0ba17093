//! A chapter that is not in the summary is not in the book, and one that this crate does not include has programs that nobody runs.

use std::collections::BTreeSet;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn chapters() -> BTreeSet<String> {
    let files = std::fs::read_dir(Path::new(ROOT).join("docs/guide/src")).expect("the guide");
    let names = files.map(|file| file.expect("a file").file_name().into_string().expect("text"));
    names.filter(|name| name.ends_with(".md") && name != "SUMMARY.md").collect()
}

#[test]
fn the_summary_lists_every_chapter_once() {
    let summary = Path::new(ROOT).join("docs/guide/src/SUMMARY.md");
    let summary = std::fs::read_to_string(summary).expect("a summary");
    let targets =
        summary.lines().filter_map(|line| Some(line.split_once("](")?.1.split_once(')')?.0));
    let listed: Vec<_> = targets.map(str::to_owned).collect();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), chapters());
    assert_eq!(listed.len(), chapters().len(), "{listed:?}");
}

#[test]
fn the_programs_of_every_chapter_are_run() {
    let run =
        superstep_guide::CHAPTERS.iter().filter_map(|file| file.strip_prefix("docs/guide/src/"));
    assert_eq!(run.map(str::to_owned).collect::<BTreeSet<_>>(), chapters());
}
