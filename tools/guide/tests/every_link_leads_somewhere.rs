//! Every link between files of the repository leads to a file that is there, and to a heading that is in it. Links to other places are
//! not followed: a test must not depend on the network.

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// All Markdown files below a directory, except those that are built or belong to git.
fn pages(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && name != "target" && name != ".git" {
            pages(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

/// The lines of a page that are prose.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// What the links of a line point to.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// What a heading is called in a link: lower case, without punctuation, spaces as hyphens.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

fn problem(page: &Path, target: &str) -> Option<String> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { page.to_owned() } else { page.parent()?.join(file) };
    if !file.exists() {
        return Some(format!("{}: there is no `{target}`", page.display()));
    }
    if heading.is_empty() {
        return None;
    }
    let text = std::fs::read_to_string(&file).expect("a link with a heading leads to a page");
    let known = prose(&text)
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line.trim_start_matches('#').trim()) == heading);
    (!known).then(|| format!("{}: there is no heading `{target}`", page.display()))
}

#[test]
fn between_the_pages_of_the_repository() {
    let mut found = Vec::new();
    pages(Path::new(ROOT), &mut found);
    let mut links = 0;
    let mut problems = Vec::new();
    for page in &found {
        let text = std::fs::read_to_string(page).expect("text");
        for target in prose(&text).flat_map(targets) {
            if !target.contains("://") {
                links += 1;
                problems.extend(problem(page, target));
            }
        }
    }
    assert!(problems.is_empty(), "{problems:#?}");
    assert!(links > 50, "only {links} links were found in {} pages", found.len());
}

#[test]
fn what_leads_nowhere_is_found() {
    let page = Path::new(ROOT).join("README.md");
    assert!(problem(&page, "docs/nowhere.md").is_some());
    assert!(problem(&page, "CONTRIBUTING.md#nothing-of-this-name").is_some());
    assert_eq!(problem(&page, "CONTRIBUTING.md#what-we-look-for"), None);
    assert_eq!(targets("[a](b.md#c) and [d](e)").collect::<Vec<_>>(), ["b.md#c", "e"]);
}
