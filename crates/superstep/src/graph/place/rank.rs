//! Which layer each node is in.

/// An edge of one level, in the direction in which it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// The end in the upper layer.
    pub(super) upper: usize,
    /// The end in the lower layer.
    pub(super) lower: usize,
    /// It leads from the lower end to the upper one.
    pub(super) back: bool,
}

/// The layers of one level.
#[derive(Debug)]
pub(super) struct Ranked {
    /// The layer of each node, from 0.
    pub(super) layer: Vec<usize>,
    pub(super) links: Vec<Link>,
}

impl Ranked {
    pub(super) fn depth(&self) -> usize {
        self.layer.iter().max().map_or(0, |last| last + 1)
    }
}

/// Gives each node a layer below those of its predecessors. `last` is below everything.
pub(super) fn rank(nodes: usize, edges: &[(usize, usize)], last: Option<usize>) -> Ranked {
    let links = without_cycles(nodes, edges);
    let mut layer = vec![0_usize; nodes];
    // From the end of a depth-first walk, each node comes after those below it.
    let order = downwards(nodes, &links);
    for node in order.iter().copied() {
        for link in links.iter().filter(|link| link.upper == node && link.lower != node) {
            layer[link.lower] = layer[link.lower].max(layer[node] + 1);
        }
    }
    // A node without predecessors stands right above what it leads to.
    for node in order.iter().rev().copied() {
        if links.iter().any(|link| link.lower == node && link.upper != node) {
            continue;
        }
        let below = links.iter().filter(|link| link.upper == node && link.lower != node);
        if let Some(nearest) = below.map(|link| layer[link.lower]).min() {
            layer[node] = nearest.saturating_sub(1);
        }
    }
    if let Some(last) = last {
        let others = layer.iter().enumerate().filter(|(node, _)| *node != last);
        let lowest = others.map(|(_, layer)| *layer).max();
        layer[last] = layer[last].max(lowest.map_or(0, |lowest| lowest + 1));
    }
    Ranked { layer, links }
}

/// The edges; those that close a cycle are turned round.
fn without_cycles(nodes: usize, edges: &[(usize, usize)]) -> Vec<Link> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for (nth, (from, _)) in edges.iter().enumerate() {
        below[*from].push(nth);
    }
    let mut marks = vec![Mark::New; nodes];
    let mut back = vec![false; edges.len()];
    // Without recursion: a graph may be one long chain.
    for root in 0..nodes {
        if marks[root] != Mark::New {
            continue;
        }
        let mut stack = vec![(root, 0)];
        marks[root] = Mark::Open;
        while let Some((node, next)) = stack.pop() {
            let Some(edge) = below[node].get(next).copied() else {
                marks[node] = Mark::Done;
                continue;
            };
            stack.push((node, next + 1));
            let to = edges[edge].1;
            match marks[to] {
                Mark::New => {
                    marks[to] = Mark::Open;
                    stack.push((to, 0));
                }
                Mark::Open => back[edge] = true,
                Mark::Done => {}
            }
        }
    }
    let link = |((from, to), back): (&(usize, usize), bool)| match back {
        true => Link { upper: *to, lower: *from, back },
        false => Link { upper: *from, lower: *to, back },
    };
    edges.iter().zip(back).map(link).collect()
}

/// The nodes, each after all that lead to it.
fn downwards(nodes: usize, links: &[Link]) -> Vec<usize> {
    let mut waits = vec![0_usize; nodes];
    for link in links.iter().filter(|link| link.upper != link.lower) {
        waits[link.lower] += 1;
    }
    let mut ready: Vec<usize> = (0..nodes).filter(|node| waits[*node] == 0).collect();
    let mut next = 0;
    while let Some(node) = ready.get(next).copied() {
        next += 1;
        for link in links.iter().filter(|link| link.upper == node && link.lower != node) {
            waits[link.lower] -= 1;
            if waits[link.lower] == 0 {
                ready.push(link.lower);
            }
        }
    }
    ready
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_below_what_leads_to_it() {
        let ranked = rank(5, &[(0, 1), (0, 2), (1, 3), (2, 3), (0, 3), (3, 4)], Some(4));
        assert_eq!(ranked.layer, [0, 1, 1, 2, 3]);
    }

    #[test]
    fn a_cycle_has_one_edge_that_leads_back() {
        let ranked = rank(4, &[(0, 1), (1, 2), (2, 1), (2, 3), (1, 1)], Some(3));
        assert_eq!(ranked.layer, [0, 1, 2, 3]);
        let back: Vec<_> = ranked.links.iter().map(|link| link.back).collect();
        assert_eq!(back, [false, false, true, false, true]);
    }

    #[test]
    fn a_chain_of_many_nodes_has_as_many_layers() {
        let edges: Vec<_> = (0..2_999).map(|node| (node, node + 1)).collect();
        assert_eq!(rank(3_000, &edges, None).depth(), 3_000);
    }
}
