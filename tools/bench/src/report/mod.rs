//! What was measured, for people and for programs.

mod chart;
mod json;
mod notes;
mod table;

pub(crate) use chart::chart;
pub(crate) use json::json;
pub(crate) use notes::notes;
pub(crate) use table::{table, time};

#[cfg(test)]
pub(crate) mod examples {
    use crate::figures::Figures;
    use crate::plan::Cell;
    use crate::protocol::{Checkpointer, Durability, Measured};

    /// A row of 1,000 supersteps with one round of each side, in nanoseconds for each superstep.
    pub(crate) fn row(
        checkpointer: Checkpointer,
        ours: u64,
        theirs: Option<u64>,
        floor: Option<u64>,
    ) -> Figures {
        let mut figures = Figures::of(&Cell {
            workload: "loop",
            unit: "superstep",
            size: 1000,
            theirs: Some(1000),
            checkpointer,
            durability: Durability::Sync,
        });
        let round = |nanos: u64| {
            Ok(Measured { nanos: vec![nanos * 1000], units: 1000, ..Measured::default() })
        };
        figures.ours.add(round(ours));
        if let Some(theirs) = theirs {
            figures.theirs.add(round(theirs));
        }
        if let Some(floor) = floor {
            figures.floor.add(round(floor));
        }
        figures
    }
}
