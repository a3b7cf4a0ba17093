//! Random graphs whose nodes ask, and random sequences of what people do with a thread.

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) name: &'static str,
    /// How many questions it asks, one after the other.
    pub(crate) asks: usize,
    /// The nodes that come after it.
    pub(crate) edges: Vec<usize>,
    /// Whether an edge leads to it from the start.
    pub(crate) first: bool,
    /// It runs a graph of nodes in a row when it has its answers; each asks that many questions.
    pub(crate) inner: Option<Vec<usize>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) nodes: Vec<Node>,
    /// Two members, and the node that waits for both.
    pub(crate) join: Option<([usize; 2], usize)>,
}

impl Plan {
    /// The nodes in the order in which their writes are folded: by name.
    pub(crate) fn by_name(&self) -> Vec<usize> {
        let mut order: Vec<_> = (0..self.nodes.len()).collect();
        order.sort_by_key(|node| self.nodes[*node].name);
        order
    }
}

/// The name of a node of the subgraph `node`.
pub(crate) fn inside(node: &str, at: usize) -> String {
    format!("{node}.{at}")
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    /// Runs with an input, at the head or at an older checkpoint.
    Input(Option<usize>),
    /// Runs without one.
    Go(Option<usize>),
    /// Answers without saying what.
    Answer,
    /// Answers the open questions whose bits are set, by id.
    AnswerSome(u8),
    /// The same, with an answer to a question that nobody asked.
    AnswerUnknown(u8),
    /// The same, with another answer to the question that was answered last.
    AnswerAgain(u8),
    /// Answers the one open question with something that does not fit.
    Misfit,
    /// Updates the state as a node, at the head or at an older checkpoint.
    Update(Option<usize>, usize),
}

fn node() -> impl Strategy<Value = (usize, u8, bool)> {
    (prop_oneof![3 => Just(0), 3 => Just(1), 1 => Just(2)], any::<u8>(), prop::bool::weighted(0.3))
}

/// The joins of at most four nodes in which edges lead forward.
const JOINS: [([usize; 2], usize); 4] = [([0, 1], 2), ([0, 1], 3), ([0, 2], 3), ([1, 2], 3)];

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let inner = prop::option::weighted(0.5, (0..4usize, prop::collection::vec(0..3usize, 1..3)));
    let join = prop::option::weighted(0.5, 0..JOINS.len());
    (prop::collection::vec(node(), 1..5), 0..4usize, any::<bool>(), inner, join).prop_map(
        |(raw, turn, back, inner, join)| {
            let count = raw.len();
            let mut names = ["a", "b", "c", "d"][..count].to_vec();
            names.rotate_left(turn % count);
            if back {
                names.reverse();
            }
            let join = join.map(|join| JOINS[join]).filter(|(_, target)| *target < count);
            let edge = |from: usize, to: usize| from < to && raw[from].1 & (1 << to) != 0;
            let reached = |node: usize| {
                (0..node).any(|from| edge(from, node))
                    || join.is_some_and(|(_, target)| target == node)
            };
            let nodes = raw.iter().enumerate().map(|(at, (asks, _, first))| {
                let inner = inner.clone().filter(|(node, _)| node % count == at);
                Node {
                    name: names[at],
                    asks: *asks,
                    edges: (0..count).filter(|to| edge(at, *to)).collect(),
                    first: *first || !reached(at),
                    inner: inner.map(|(_, asks)| asks),
                }
            });
            Plan { nodes: nodes.collect(), join }
        },
    )
}

/// A sequence of operations; places in the history are counted from the newest.
pub(crate) fn ops(misfits: bool) -> impl Strategy<Value = Vec<Op>> {
    let past = || prop_oneof![2 => Just(None), 1 => (0..12usize).prop_map(Some)];
    let op = prop_oneof![
        3 => past().prop_map(Op::Input),
        3 => past().prop_map(Op::Go),
        6 => Just(Op::Answer),
        6 => (1..8u8).prop_map(Op::AnswerSome),
        1 => (0..8u8).prop_map(Op::AnswerUnknown),
        1 => (0..8u8).prop_map(Op::AnswerAgain),
        3 => Just(if misfits { Op::Misfit } else { Op::Answer }),
        3 => (past(), 0..4usize).prop_map(|(at, node)| Op::Update(at, node)),
    ];
    prop::collection::vec(op, 1..16)
}
