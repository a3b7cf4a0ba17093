//! What a run of the bench measures: every workload on every checkpointer on which it makes sense.

use crate::protocol::{Checkpointer, Durability};

/// A workload, and how large it is where.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// What a figure is for one of.
    pub(crate) unit: &'static str,
    /// Without a database.
    light: Sizes,
    /// On a database, where each superstep waits for the disk.
    stored: Sizes,
    /// On which checkpointers.
    checkpointers: Checkpointers,
    /// Theirs, where the same size would take minutes. Figures are for one unit all the same.
    theirs: Option<Sizes>,
}

/// In a full and in a quick run; nothing where it is left out.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    full: Option<usize>,
    quick: Option<usize>,
}

const fn sizes(full: usize, quick: usize) -> Sizes {
    Sizes { full: Some(full), quick: Some(quick) }
}

const fn full(full: usize) -> Sizes {
    Sizes { full: Some(full), quick: None }
}

const NOWHERE: Sizes = Sizes { full: None, quick: None };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checkpointers {
    All,
    /// Those that keep anything.
    Keeping,
    /// Nothing is kept, so there is nothing to choose.
    None,
    /// Without a checkpointer and in memory.
    Light,
    /// In memory, and each superstep in a database.
    Steps,
}

impl Checkpointers {
    fn has(self, checkpointer: Checkpointer, durability: Durability) -> bool {
        match self {
            Self::All => true,
            Self::Keeping => checkpointer != Checkpointer::None,
            Self::None => checkpointer == Checkpointer::None,
            Self::Light => !checkpointer.is_database(),
            Self::Steps => checkpointer != Checkpointer::None && durability == Durability::Sync,
        }
    }
}

const fn workload(name: &'static str, unit: &'static str, light: Sizes, stored: Sizes) -> Workload {
    Workload { name, unit, light, stored, checkpointers: Checkpointers::All, theirs: None }
}

const WORKLOADS: [Workload; 21] = [
    workload("sequence", "superstep", sizes(1000, 1000), sizes(300, 30)),
    workload("loop", "superstep", sizes(1000, 1000), sizes(300, 30)),
    Workload {
        checkpointers: Checkpointers::None,
        ..workload("loop-untraced", "superstep", sizes(1000, 1000), NOWHERE)
    },
    workload("fan", "task", sizes(100, 100), sizes(100, 100)),
    workload("fan", "task", sizes(1000, 1000), full(1000)),
    workload("subgraphs", "task", sizes(100, 100), sizes(100, 10)),
    workload("subgraphs", "task", full(1000), NOWHERE),
    workload("wide", "superstep", sizes(300, 300), sizes(300, 300)),
    workload("wide", "superstep", sizes(1200, 1200), full(1200)),
    workload("react", "round", sizes(100, 100), sizes(100, 20)),
    workload("agent", "round", sizes(100, 100), sizes(100, 20)),
    Workload {
        checkpointers: Checkpointers::Keeping,
        ..workload("turn", "turn", sizes(10, 10), sizes(10, 10))
    },
    Workload {
        checkpointers: Checkpointers::Keeping,
        ..workload("turn", "turn", sizes(10_000, 10_000), full(10_000))
    },
    Workload {
        checkpointers: Checkpointers::Light,
        ..workload("superstep", "superstep", sizes(10, 10), NOWHERE)
    },
    Workload {
        checkpointers: Checkpointers::Light,
        ..workload("superstep", "superstep", sizes(10_000, 10_000), NOWHERE)
    },
    Workload {
        checkpointers: Checkpointers::Keeping,
        ..workload("interrupt", "round trip", sizes(10, 10), sizes(10, 5))
    },
    workload("first-event", "event", sizes(10, 10), sizes(10, 3)),
    Workload {
        checkpointers: Checkpointers::None,
        ..workload("compile", "graph", sizes(1000, 1000), NOWHERE)
    },
    Workload {
        theirs: Some(sizes(100, 10)),
        ..workload("concurrent", "superstep", sizes(1000, 1000), sizes(1000, 100))
    },
    Workload {
        checkpointers: Checkpointers::Steps,
        ..workload("long", "superstep", full(1000), full(1000))
    },
    Workload {
        checkpointers: Checkpointers::Light,
        ..workload("held", "superstep", sizes(10_000, 10_000), NOWHERE)
    },
];

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) workload: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) size: usize,
    pub(crate) theirs: Option<usize>,
    pub(crate) checkpointer: Checkpointer,
    pub(crate) durability: Durability,
}

impl Cell {
    /// The workload with its size.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.workload, self.size)
    }

    /// The checkpointer, with the durability where it makes a difference.
    pub(crate) fn place(&self) -> String {
        if self.checkpointer.is_database() {
            format!("{} {}", self.checkpointer.name(), self.durability.name())
        } else {
            self.checkpointer.name().to_owned()
        }
    }
}

/// What is wanted of all that can be measured.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    pub(crate) quick: bool,
    pub(crate) checkpointers: &'a [Checkpointer],
    /// A part of a title and place, such as `loop` or `sqlite sync`.
    pub(crate) only: &'a [String],
}

/// Works without LangGraph: it has nothing of the kind, or not in a way that can be compared.
const OURS_ALONE: [&str; 2] = ["loop-untraced", "held"];

/// Whether LangGraph has this workload, too.
pub(crate) fn is_compared(workload: &str) -> bool {
    !OURS_ALONE.contains(&workload)
}

/// The rows of a run.
pub(crate) fn cells(wanted: &Wanted<'_>) -> Vec<Cell> {
    let places = places(wanted.checkpointers);
    let all = WORKLOADS.iter().flat_map(|workload| {
        places.iter().filter_map(|(checkpointer, durability)| {
            cell(workload, *checkpointer, *durability, wanted.quick)
        })
    });
    all.filter(|cell| wanted.only.is_empty() || wanted.only.iter().any(|part| is_in(part, cell)))
        .collect()
}

fn is_in(part: &str, cell: &Cell) -> bool {
    format!("{} {}", cell.title(), cell.place()).contains(part)
}

fn cell(
    workload: &Workload,
    checkpointer: Checkpointer,
    durability: Durability,
    quick: bool,
) -> Option<Cell> {
    let of = |sizes: Sizes| if quick { sizes.quick } else { sizes.full };
    let size = of(if checkpointer.is_database() { workload.stored } else { workload.light })?;
    let theirs = match workload.theirs {
        _ if !is_compared(workload.name) => None,
        Some(sizes) => of(sizes),
        None => Some(size),
    };
    workload.checkpointers.has(checkpointer, durability).then_some(Cell {
        workload: workload.name,
        unit: workload.unit,
        size,
        theirs,
        checkpointer,
        durability,
    })
}

fn places(checkpointers: &[Checkpointer]) -> Vec<(Checkpointer, Durability)> {
    let of = |checkpointer: &Checkpointer| {
        let all = [Durability::Sync, Durability::Async, Durability::Exit];
        let some = if checkpointer.is_database() { &all[..] } else { &all[..1] };
        some.iter().map(|durability| (*checkpointer, *durability)).collect::<Vec<_>>()
    };
    checkpointers.iter().flat_map(of).collect()
}

/// The names of all workloads; one with several sizes comes several times.
#[cfg(test)]
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|workload| workload.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(only: &str, quick: bool) -> Vec<String> {
        let checkpointers = [Checkpointer::None, Checkpointer::Memory, Checkpointer::Sqlite];
        let only = [only.to_owned()];
        let cells = cells(&Wanted { quick, checkpointers: &checkpointers, only: &only });
        cells.iter().map(|cell| format!("{} {}", cell.title(), cell.place())).collect()
    }

    #[test]
    fn a_workload_is_measured_on_every_checkpointer_on_which_it_makes_sense() {
        let loops = ["none", "memory"].map(|place| format!("loop 1000 {place}"));
        let stored =
            ["sync", "async", "exit"].map(|durability| format!("loop 300 sqlite {durability}"));
        assert_eq!(named("loop ", false), [&loops[..], &stored[..]].concat());
        assert_eq!(named("compile", false), ["compile 1000 none"]);
        assert_eq!(named("long", false), ["long 1000 memory", "long 1000 sqlite sync"]);
    }

    #[test]
    fn a_quick_run_leaves_the_slow_things_out() {
        assert_eq!(named("subgraphs 1000", true), Vec::<String>::new());
        assert_eq!(
            named("subgraphs 1000", false),
            ["subgraphs 1000 none", "subgraphs 1000 memory"]
        );
    }
}
