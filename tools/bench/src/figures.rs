//! What was measured, and what follows from it.

use serde::Serialize;

use crate::plan::Cell;
use crate::protocol::Measured;

/// The times of one side in nanoseconds for each unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Side {
    per_unit: Vec<f64>,
    /// What else was told, of each round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    also: Vec<(String, f64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    #[serde(skip)]
    round_min: Option<u64>,
}

impl Side {
    pub(crate) fn add(&mut self, answer: Result<Measured, String>) {
        match answer {
            Ok(measured) => {
                let units = measured.units.max(1) as f64;
                self.per_unit.extend(measured.nanos.iter().map(|nanos| *nanos as f64 / units));
                self.round_min = measured.nanos.iter().copied().chain(self.round_min).min();
                self.also.extend(measured.also);
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    /// The least time of a whole round.
    pub(crate) fn round_min(&self) -> Option<u64> {
        self.round_min
    }

    pub(crate) fn min(&self) -> Option<f64> {
        self.per_unit.iter().copied().min_by(f64::total_cmp)
    }

    pub(crate) fn median(&self) -> Option<f64> {
        let mut sorted = self.per_unit.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            even if even % 2 == 0 => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
            _ => Some(sorted[middle]),
        }
    }

    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The least of what else was told under a name.
    pub(crate) fn least(&self, name: &str) -> Option<f64> {
        let told = self.also.iter().filter(|(told, _)| told == name).map(|(_, value)| *value);
        told.min_by(f64::total_cmp)
    }
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) cell: Cell,
    pub(crate) ours: Side,
    pub(crate) theirs: Side,
    pub(crate) floor: Side,
}

impl Figures {
    pub(crate) fn of(cell: &Cell) -> Self {
        let side = Side::default;
        Self { cell: cell.clone(), ours: side(), theirs: side(), floor: side() }
    }

    /// How many times our time theirs is.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.theirs.min()? / self.ours.min()?)
    }

    /// The same of the medians, which a busy machine makes larger on both sides.
    pub(crate) fn ratio_of_medians(&self) -> Option<f64> {
        Some(self.theirs.median()? / self.ours.median()?)
    }

    /// How many times the floor our time is.
    pub(crate) fn above_floor(&self) -> Option<f64> {
        Some(self.ours.min()? / self.floor.min()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(nanos: &[u64]) -> Side {
        let mut side = Side::default();
        side.add(Ok(Measured { nanos: nanos.to_vec(), units: 10, ..Measured::default() }));
        side
    }

    #[test]
    fn figures_are_for_one_unit() {
        let odd = side(&[900, 100, 200]);
        assert_eq!((odd.min(), odd.median(), odd.round_min()), (Some(10.0), Some(20.0), Some(100)));
        assert_eq!(side(&[100, 400, 200, 300]).median(), Some(25.0));
        assert_eq!((side(&[]).min(), side(&[]).median()), (None, None));
    }

    #[test]
    fn ratios_compare_the_least_times() {
        let cell = crate::plan::cells(&crate::plan::Wanted {
            quick: false,
            checkpointers: &[crate::protocol::Checkpointer::None],
            only: &["loop 1000".to_owned()],
        });
        let mut figures = Figures::of(&cell[0]);
        assert_eq!((figures.ratio(), figures.above_floor()), (None, None));
        figures.ours = side(&[100, 900, 900]);
        figures.theirs = side(&[2000, 1800, 2700]);
        figures.floor = side(&[50]);
        assert_eq!((figures.ratio(), figures.above_floor()), (Some(18.0), Some(2.0)));
        assert_eq!(figures.ratio_of_medians(), Some(2000.0 / 900.0));
    }
}
