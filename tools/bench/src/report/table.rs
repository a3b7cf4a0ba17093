//! The table, as Markdown that is also pleasant in a terminal.

use crate::figures::Figures;

const HEAD: [&str; 9] = [
    "workload",
    "checkpointer",
    "ours",
    "median",
    "theirs",
    "ratio",
    "floor",
    "ours/floor",
    "for one",
];

/// One line for each row, the columns lined up.
pub(crate) fn table(rows: &[Figures]) -> String {
    let mut lines = vec![HEAD.map(str::to_owned)];
    lines.extend(rows.iter().map(cells));
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        out.push_str(&joined(line, &widths));
        if number == 0 {
            out.push_str(&rule(&widths));
        }
    }
    out
}

fn cells(row: &Figures) -> [String; 9] {
    let ours = match row.ours.failure() {
        Some(_) => "failed".to_owned(),
        None => shown(row.ours.min(), time),
    };
    let theirs = match row.theirs.failure() {
        Some(_) => "failed".to_owned(),
        None => shown(row.theirs.min(), time),
    };
    [
        row.cell.title(),
        row.cell.place(),
        ours,
        shown(row.ours.median(), time),
        theirs,
        shown(row.ratio(), |ratio| format!("{}x", significant(ratio))),
        shown(row.floor.min(), time),
        shown(row.above_floor(), significant),
        row.cell.unit.to_owned(),
    ]
}

fn shown(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// Texts stand left, figures right.
fn joined(line: &[String; 9], widths: &[usize]) -> String {
    let cells = line.iter().zip(widths).enumerate().map(|(at, (cell, width))| match at {
        0 | 1 | 8 => format!(" {cell:<width$} |"),
        _ => format!(" {cell:>width$} |"),
    });
    format!("|{}\n", cells.collect::<String>())
}

fn rule(widths: &[usize]) -> String {
    let cells = widths.iter().enumerate().map(|(at, width)| match at {
        0 | 1 | 8 => format!(" {} |", "-".repeat(*width)),
        _ => format!(" {}: |", "-".repeat(width - 1)),
    });
    format!("|{}\n", cells.collect::<String>())
}

/// A time in the unit one would say it in.
pub(crate) fn time(nanos: f64) -> String {
    match nanos {
        nanos if nanos < 1e3 => format!("{} ns", significant(nanos)),
        nanos if nanos < 1e6 => format!("{} µs", significant(nanos / 1e3)),
        nanos if nanos < 1e9 => format!("{} ms", significant(nanos / 1e6)),
        nanos => format!("{} s", significant(nanos / 1e9)),
    }
}

/// Three digits that count.
fn significant(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Checkpointer;
    use crate::report::examples::row;

    #[test]
    fn a_table_shows_both_engines_and_the_floor() {
        let rows = [
            row(Checkpointer::None, 650, Some(130_000), Some(20)),
            row(Checkpointer::Sqlite, 1_300_000, None, Some(1_000_000)),
        ];
        assert_eq!(
            table(&rows),
            "\
| workload  | checkpointer |    ours |  median | theirs | ratio |   floor | ours/floor | for one   |
| --------- | ------------ | ------: | ------: | -----: | ----: | ------: | ---------: | --------- |
| loop 1000 | none         |  650 ns |  650 ns | 130 µs |  200x | 20.0 ns |       32.5 | superstep |
| loop 1000 | sqlite sync  | 1.30 ms | 1.30 ms |      - |     - | 1.00 ms |       1.30 | superstep |
"
        );
    }

    #[test]
    fn a_side_that_failed_says_so() {
        let mut failed = row(Checkpointer::None, 650, None, None);
        failed.theirs.add(Err("no such thing".to_owned()));
        assert!(table(&[failed]).contains("failed"));
    }
}
