//! Patterns of tool names.

/// Whether a name matches a pattern, in which `*` stands for any text.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(name) = name.strip_prefix(first) else { return false };
    let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    ends.into_iter().any(|at| matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, name, fits) in [
            ("write_*", "write_file", true),
            ("write_*", "write_", true),
            ("write_*", "rewrite_x", false),
            ("*_file", "write_file", true),
            ("*i*e*", "write_file", true),
            ("*", "", true),
            ("read", "reader", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} and {name}");
        }
    }
}
