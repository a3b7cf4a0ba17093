//! What follows from several figures together.

use crate::figures::{Figures, Side};

use super::time;

/// One sentence each; `None` for what was not measured.
pub(crate) fn notes(rows: &[Figures]) -> Vec<String> {
    let mut notes: Vec<String> = rows.iter().filter_map(growth).collect();
    notes.extend(rows.iter().filter_map(|row| together(row, rows)));
    notes.extend(rows.iter().filter_map(|row| whatever_the_length(row, rows)));
    notes.extend(rows.iter().filter_map(held));
    notes.extend(rows.iter().flat_map(failures));
    notes
}

/// Whether a thread gets slower as it grows.
fn growth(row: &Figures) -> Option<String> {
    let of = |side: &Side| Some((side.least("first")?, side.least("last")?));
    let told = |name: &str, (first, last): (f64, f64)| {
        format!("{name} {} at first, {} at the end ({:.2})", time(first), time(last), last / first)
    };
    let ours = told("ours", of(&row.ours)?);
    let theirs = of(&row.theirs).map(|theirs| told(", theirs", theirs)).unwrap_or_default();
    Some(format!(
        "{}, {}: a superstep of the first and of the last hundred: {ours}{theirs}",
        row.cell.title(),
        row.cell.place()
    ))
}

/// What many threads do in the time of one.
fn together(row: &Figures, rows: &[Figures]) -> Option<String> {
    if row.cell.workload != "concurrent" {
        return None;
    }
    let alone =
        rows.iter().find(|other| other.cell.workload == "loop" && is_same_place(other, row))?;
    let rate = |row: &Figures| Some(1e9 / row.ours.min()?);
    Some(format!(
        "{}, {}: {:.0} supersteps a second, {:.1} times the {:.0} of one thread",
        row.cell.title(),
        row.cell.place(),
        rate(row)?,
        rate(row)? / rate(alone)?,
        rate(alone)?
    ))
}

/// Whether what is already there makes a superstep slower.
fn whatever_the_length(row: &Figures, rows: &[Figures]) -> Option<String> {
    if !matches!(row.cell.workload, "superstep" | "turn") || row.cell.size != 10_000 {
        return None;
    }
    let short = rows.iter().find(|other| {
        other.cell.workload == row.cell.workload
            && other.cell.size == 10
            && is_same_place(other, row)
    })?;
    let times = |side: fn(&Figures) -> &Side| Some(side(row).min()? / side(short).min()?);
    let theirs = times(|row| &row.theirs).map(|times| format!(", theirs {times:.2}"));
    Some(format!(
        "{}, {}: 10,000 messages against 10: ours {:.2} times{}",
        row.cell.workload,
        row.cell.place(),
        times(|row| &row.ours)?,
        theirs.unwrap_or_default()
    ))
}

fn held(row: &Figures) -> Option<String> {
    let bytes = row.ours.least("bytes held")?;
    Some(format!(
        "{}, {}: holds {:.0} KiB more at its end than after a hundred supersteps ({:.1} bytes for each)",
        row.cell.title(),
        row.cell.place(),
        bytes / 1024.0,
        bytes / row.cell.size as f64
    ))
}

fn failures(row: &Figures) -> Vec<String> {
    let sides = [("ours", &row.ours), ("theirs", &row.theirs), ("floor", &row.floor)];
    let failed = sides.into_iter().filter_map(|(name, side)| Some((name, side.failure()?)));
    failed
        .map(|(name, why)| {
            format!("{}, {}: {name} failed: {why}", row.cell.title(), row.cell.place())
        })
        .collect()
}

fn is_same_place(one: &Figures, other: &Figures) -> bool {
    one.cell.checkpointer == other.cell.checkpointer && one.cell.durability == other.cell.durability
}
