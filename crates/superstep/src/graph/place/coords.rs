//! Where everything stands.

use super::Area;
use super::order::{Layers, Place};
use super::rank::Ranked;

/// Between neighbours of a layer.
const BESIDE: f64 = 28.0;
/// Between a bend and its neighbour.
const BESIDE_BEND: f64 = 16.0;
/// Between layers.
const BELOW: f64 = 44.0;
/// How far an edge from a node to itself goes out.
pub(super) const LOOP: f64 = 26.0;

/// So often places are moved towards their neighbours.
const ROUNDS: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Positions {
    pub(super) areas: Vec<Area>,
    /// The bends of each link, from its source to its target.
    pub(super) ways: Vec<Vec<(f64, f64)>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

pub(super) fn coords(ranked: &Ranked, layers: &Layers, sizes: &[(f64, f64)]) -> Positions {
    let size = |place: Place| match place {
        Place::Node(node) => sizes.get(node).copied().unwrap_or_default(),
        Place::Bend(_) => (0.0, 0.0),
    };
    let widths: Vec<f64> = layers.places.iter().map(|place| size(*place).0).collect();
    let mut centres = centres(layers, &widths);
    let lefts = centres.iter().zip(&widths).map(|(centre, width)| centre - width / 2.0);
    let left = lefts.fold(f64::INFINITY, f64::min);
    let left = if left.is_finite() { left } else { 0.0 };
    for centre in &mut centres {
        *centre -= left;
    }
    let mut positions = Positions {
        areas: vec![Area::default(); sizes.len()],
        ways: vec![Vec::new(); ranked.links.len()],
        ..Positions::default()
    };
    let mut top = 0.0;
    for row in &layers.numbers {
        let height = row.iter().map(|number| size(layers.places[*number]).1).fold(0.0, f64::max);
        for number in row {
            let centre = centres[*number];
            match layers.places[*number] {
                Place::Node(node) => {
                    let (width, own) = size(Place::Node(node));
                    let (x, y) = (centre - width / 2.0, top + (height - own) / 2.0);
                    positions.areas[node] = Area { x, y, width, height: own };
                    positions.width = positions.width.max(x + width);
                }
                Place::Bend(link) => {
                    // A straight line through the layer keeps the edge off the nodes in it.
                    positions.ways[link].extend([(centre, top), (centre, top + height)]);
                    positions.width = positions.width.max(centre);
                }
            }
        }
        positions.height = top + height;
        top += height + BELOW;
    }
    for (link, way) in ranked.links.iter().zip(&mut positions.ways) {
        if !link.back {
            continue;
        }
        if link.upper == link.lower {
            let area = positions.areas[link.upper];
            positions.width = positions.width.max(area.x + area.width + LOOP);
            continue;
        }
        // Beside both nodes, so that it is not taken for a way down.
        let (upper, lower) = (positions.areas[link.upper], positions.areas[link.lower]);
        let right = (upper.x + upper.width).max(lower.x + lower.width);
        let bends = way.iter().map(|point| point.0);
        let x = bends.fold(right, f64::max) + LOOP;
        let (high, low) = (upper.y + upper.height / 2.0, lower.y + lower.height / 2.0);
        *way = vec![(x, low - (low - high) * 0.25), (x, high + (low - high) * 0.25)];
        positions.width = positions.width.max(x + 4.0);
    }
    positions
}

/// The middle of each place from left to right.
fn centres(layers: &Layers, widths: &[f64]) -> Vec<f64> {
    let mut centres = vec![0.0; layers.places.len()];
    for row in &layers.numbers {
        let wanted: Vec<f64> = row.iter().map(|_| 0.0).collect();
        spread(row, &wanted, layers, widths, &mut centres);
    }
    for round in 0..ROUNDS {
        let down = round % 2 == 0;
        let depth = layers.numbers.len();
        for step in 0..depth {
            let at = if down { step } else { depth - 1 - step };
            let row = &layers.numbers[at];
            let last = round + 2 >= ROUNDS;
            let wanted: Vec<f64> = row
                .iter()
                .map(|number| {
                    let (above, below) = (&layers.above[*number], &layers.below[*number]);
                    let near = match (down, last) {
                        (_, true) => middle(&centres, above.iter().chain(below)),
                        (true, false) => middle(&centres, above.iter()),
                        (false, false) => middle(&centres, below.iter()),
                    };
                    near.unwrap_or(centres[*number])
                })
                .collect();
            spread(row, &wanted, layers, widths, &mut centres);
        }
    }
    centres
}

fn middle<'a>(centres: &[f64], of: impl Iterator<Item = &'a usize>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for number in of {
        sum += centres[*number];
        count += 1.0;
    }
    (count > 0.0).then(|| sum / count)
}

/// Puts the places of a row as near as possible to where they want to be, without moving one past another: neighbours that would
/// overlap are put beside each other, with the middle of them where they want to be on average.
fn spread(row: &[usize], wanted: &[f64], layers: &Layers, widths: &[f64], centres: &mut [f64]) {
    struct Block {
        sum: f64,
        count: f64,
        members: usize,
    }
    // How far each place is from the first one if all stand side by side.
    let mut offsets = Vec::with_capacity(row.len());
    let mut offset = 0.0;
    for (at, number) in row.iter().enumerate() {
        if let Some(before) = at.checked_sub(1).and_then(|before| row.get(before)) {
            let bend = |number: &usize| matches!(layers.places[*number], Place::Bend(_));
            let gap = if bend(number) || bend(before) { BESIDE_BEND } else { BESIDE };
            offset += (widths[*before] + widths[*number]) / 2.0 + gap;
        }
        offsets.push(offset);
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (wanted, offset) in wanted.iter().zip(&offsets) {
        let mut block = Block { sum: wanted - offset, count: 1.0, members: 1 };
        while let Some(before) = blocks.last() {
            if before.sum / before.count <= block.sum / block.count {
                break;
            }
            block.sum += before.sum;
            block.count += before.count;
            block.members += before.members;
            blocks.pop();
        }
        blocks.push(block);
    }
    let starts =
        blocks.iter().flat_map(|block| std::iter::repeat_n(block.sum / block.count, block.members));
    for ((number, offset), start) in row.iter().zip(&offsets).zip(starts) {
        centres[*number] = start + offset;
    }
}
