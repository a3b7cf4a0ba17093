//! In which order the nodes of a layer stand, so that few edges cross.

use super::rank::{Link, Ranked};

/// A place in a layer: a node, or a bend of an edge that goes through the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Node(usize),
    /// A bend of the edge with this number.
    Bend(usize),
}

/// The places of each layer, from left to right.
#[derive(Debug)]
pub(super) struct Layers {
    pub(super) rows: Vec<Vec<Place>>,
    /// For each layer but the first: which places of the one above are joined with which of its own, by their numbers among `places`.
    pub(super) places: Vec<Place>,
    /// The neighbours of each place in the layer above and below.
    pub(super) above: Vec<Vec<usize>>,
    pub(super) below: Vec<Vec<usize>>,
    /// The same as `rows`, by number.
    pub(super) numbers: Vec<Vec<usize>>,
}

/// So often all layers are gone through, down and up.
const SWEEPS: usize = 12;

pub(super) fn order(ranked: &Ranked) -> Layers {
    let mut layers = filled(ranked);
    let mut best = layers.numbers.clone();
    let mut fewest = crossings(&layers);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        let down = sweep % 2 == 0;
        let depth = layers.numbers.len();
        for step in 1..depth {
            let row = if down { step } else { depth - 1 - step };
            sort_by_neighbours(&mut layers, row, down);
        }
        let now = crossings(&layers);
        if now < fewest {
            (fewest, best) = (now, layers.numbers.clone());
        }
    }
    layers.numbers = best;
    let place = |number: &usize| layers.places[*number];
    layers.rows = layers.numbers.iter().map(|row| row.iter().map(place).collect()).collect();
    layers
}

/// The layers in the order of the drawing, with a bend wherever an edge goes through one.
fn filled(ranked: &Ranked) -> Layers {
    let nodes = ranked.layer.len();
    let mut places: Vec<Place> = (0..nodes).map(Place::Node).collect();
    let mut numbers = vec![Vec::new(); ranked.depth()];
    for (node, layer) in ranked.layer.iter().enumerate() {
        numbers[*layer].push(node);
    }
    let mut pairs = Vec::new();
    for (nth, Link { upper, lower, .. }) in ranked.links.iter().enumerate() {
        if upper == lower {
            continue;
        }
        let mut from = *upper;
        for row in numbers.iter_mut().take(ranked.layer[*lower]).skip(ranked.layer[*upper] + 1) {
            let bend = places.len();
            places.push(Place::Bend(nth));
            row.push(bend);
            pairs.push((from, bend));
            from = bend;
        }
        pairs.push((from, *lower));
    }
    let mut above = vec![Vec::new(); places.len()];
    let mut below = vec![Vec::new(); places.len()];
    for (from, to) in pairs {
        below[from].push(to);
        above[to].push(from);
    }
    Layers { rows: Vec::new(), places, above, below, numbers }
}

/// Moves each place of a row towards the middle of its neighbours in the row before.
fn sort_by_neighbours(layers: &mut Layers, row: usize, down: bool) {
    let before = if down { row.checked_sub(1) } else { Some(row + 1) };
    let Some(before) = before.and_then(|before| layers.numbers.get(before)) else { return };
    let positions = positions(before, layers.places.len());
    let neighbours = if down { &layers.above } else { &layers.below };
    let weight = |(at, number): (usize, &usize)| {
        let all = &neighbours[*number];
        if all.is_empty() {
            return (at as f64, at, *number);
        }
        let sum: usize = all.iter().map(|one| positions[*one]).sum();
        (sum as f64 / all.len() as f64, at, *number)
    };
    let mut weighed: Vec<_> = layers.numbers[row].iter().enumerate().map(weight).collect();
    weighed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    layers.numbers[row] = weighed.into_iter().map(|(_, _, number)| number).collect();
}

/// Where each place stands in its row; of places of other rows nothing is known.
fn positions(row: &[usize], places: usize) -> Vec<usize> {
    let mut positions = vec![0; places];
    for (at, number) in row.iter().enumerate() {
        positions[*number] = at;
    }
    positions
}

/// How many pairs of edges cross.
fn crossings(layers: &Layers) -> usize {
    let mut found: usize = 0;
    for pair in layers.numbers.windows(2) {
        let [upper, lower] = pair else { continue };
        let positions = positions(lower, layers.places.len());
        // Edges from left to right; each crosses those before it that end further right.
        let mut ends: Vec<usize> = Vec::new();
        for number in upper {
            let mut own: Vec<usize> =
                layers.below[*number].iter().map(|to| positions[*to]).collect();
            own.sort_unstable();
            for end in &own {
                let before = ends.partition_point(|other| other <= end);
                found = found.saturating_add(ends.len() - before);
            }
            ends.extend(own);
            ends.sort_unstable();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::rank::rank;
    use super::*;

    #[test]
    fn edges_that_need_not_cross_do_not() {
        // 0 and 1 lead to 3 and 2, which stand the other way round.
        let ranked = rank(4, &[(0, 3), (1, 2)], None);
        let layers = order(&ranked);
        assert_eq!(crossings(&layers), 0);
    }

    #[test]
    fn an_edge_through_a_layer_has_a_place_in_it() {
        let ranked = rank(3, &[(0, 1), (1, 2), (0, 2)], None);
        let layers = order(&ranked);
        assert!(layers.rows[1].contains(&Place::Bend(2)));
    }
}
