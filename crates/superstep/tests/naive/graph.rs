//! Plain descriptions of graphs, and how random ones are made. Everything is a number or a list, so that a failing graph
//! shrinks to a small one.

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// Nodes are not named in the order of their definition, and one name begins with another.
pub(crate) const NAMES: [&str; 6] = ["m", "c", "x", "a", "ab", "B"];

/// With this many entries in the log nobody goes anywhere but along plain edges, so dispatches do not grow without end.
pub(crate) const LOG_MAX: usize = 12;

#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Node>,
    pub(crate) start: Vec<usize>,
    pub(crate) start_router: Option<Router>,
    pub(crate) joins: Vec<JoinPlan>,
    pub(crate) kinds: Kinds,
    pub(crate) inputs: Vec<i64>,
    /// How often a thread is run for each input: once with it, then on with nothing.
    pub(crate) tries: u32,
    pub(crate) limit: u64,
    pub(crate) concurrency: Option<usize>,
    pub(crate) sleeps: bool,
    pub(crate) exit: bool,
    pub(crate) seed: u64,
}

/// How many of its members a join needs is counted from all of them downwards.
#[derive(Clone, Debug)]
pub(crate) struct JoinPlan {
    pub(crate) from: Vec<usize>,
    pub(crate) to: Option<usize>,
    pub(crate) fewer: usize,
    pub(crate) across: bool,
}

/// A join by names.
#[derive(Clone, Debug)]
pub(crate) struct PlannedJoin {
    pub(crate) members: Vec<&'static str>,
    pub(crate) target: Option<&'static str>,
    pub(crate) needed: usize,
    pub(crate) across: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Kinds {
    /// The log stores its writes, and its value after this many.
    pub(crate) delta: Option<u64>,
    /// Two writes to the ephemeral channel are an error.
    pub(crate) guard: bool,
    pub(crate) accumulate: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// Writes nothing to the log, so possibly nothing at all.
    pub(crate) silent: bool,
    pub(crate) writes: Vec<Write>,
    pub(crate) goto: Vec<Place>,
    pub(crate) edges: Vec<Option<usize>>,
    pub(crate) routers: Vec<Router>,
    pub(crate) defer: bool,
    pub(crate) fails: Option<Fails>,
}

/// The node fails in the first runs when what it sees has this remainder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fails {
    pub(crate) remainder: u64,
    pub(crate) runs: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    End,
    Node(usize),
    Dispatch(usize, i64),
}

/// Goes one of several ways, depending on what it sees.
#[derive(Clone, Debug)]
pub(crate) struct Router {
    pub(crate) ways: Vec<Vec<Place>>,
    pub(crate) declared: bool,
    pub(crate) awaited: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Channel {
    Sum,
    Max,
    Last,
    Ephemeral,
    Topic,
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Plain,
    /// As a list, which a topic takes item by item.
    List,
    Overwrite,
    /// Something that the reducer does not take.
    Misfit,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) channel: Channel,
    pub(crate) how: How,
    /// Only in runs before this one: so that a conflict is gone when the superstep is run again.
    pub(crate) until: u32,
}

impl Graph {
    pub(crate) fn at(&self, index: usize) -> usize {
        index % self.nodes.len()
    }

    pub(crate) fn name(&self, index: usize) -> &'static str {
        NAMES[self.at(index)]
    }

    pub(crate) fn can_fail(&self) -> bool {
        self.nodes.iter().any(|node| {
            let misfit = |write: &Write| write.how == How::Misfit;
            node.fails.is_some() || node.writes.iter().any(misfit)
        })
    }

    /// The joins without repetitions.
    pub(crate) fn joins(&self) -> Vec<PlannedJoin> {
        let mut all: Vec<PlannedJoin> = Vec::new();
        for JoinPlan { from, to, fewer, across } in &self.joins {
            let mut members: Vec<_> = Vec::new();
            for name in from.iter().map(|from| self.name(*from)) {
                if !members.contains(&name) {
                    members.push(name);
                }
            }
            let target = to.map(|to| self.name(to));
            let needed = members.len().saturating_sub(*fewer).max(1);
            let same = |join: &PlannedJoin| {
                (&join.members, join.target, join.needed) == (&members, target, needed)
            };
            if !all.iter().any(same) {
                all.push(PlannedJoin { members, target, needed, across: *across });
            }
        }
        all
    }
}

fn join() -> impl Strategy<Value = JoinPlan> {
    let fewer = prop_oneof![2 => Just(0), 1 => Just(1), 1 => Just(2)];
    let to = prop::option::weighted(0.9, 0..6usize);
    (vec(0..6usize, 1..=3), to, fewer, any::<bool>())
        .prop_map(|(from, to, fewer, across)| JoinPlan { from, to, fewer, across })
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        1 => Just(Place::End),
        4 => (0..6usize).prop_map(Place::Node),
        3 => (0..6usize, 0..6i64).prop_map(|(node, arg)| Place::Dispatch(node, arg)),
    ]
}

fn router() -> impl Strategy<Value = Router> {
    let way = vec(place(), 0..=2);
    (vec(way, 1..=3), any::<bool>(), any::<bool>()).prop_map(|(ways, declared, awaited)| Router {
        ways,
        declared,
        awaited,
    })
}

fn write() -> impl Strategy<Value = Write> {
    use Channel::{Any, Ephemeral, Last, Max, Sum, Topic};
    let channel = prop_oneof![
        3 => Just(Sum),
        3 => Just(Max),
        3 => Just(Last),
        3 => Just(Ephemeral),
        3 => Just(Topic),
        3 => Just(Any),
    ];
    let how = prop_oneof![
        12 => Just(How::Plain),
        3 => Just(How::List),
        2 => Just(How::Overwrite),
        1 => Just(How::Misfit),
    ];
    let until = prop_oneof![2 => Just(9u32), 1 => Just(1), 1 => Just(2)];
    (channel, how, until).prop_map(|(channel, how, until)| Write { channel, how, until })
}

fn node() -> impl Strategy<Value = Node> {
    let fails = (0..4u64, 1..4u32).prop_map(|(remainder, runs)| Fails { remainder, runs });
    (
        prop::bool::weighted(0.2),
        vec(write(), 0..=3),
        vec(place(), 0..=2),
        vec(of(0..6usize), 0..=2),
        vec(router(), 0..=2),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.2, fails),
    )
        .prop_map(|(silent, writes, goto, edges, routers, defer, fails)| Node {
            silent,
            writes,
            goto,
            edges,
            routers,
            defer,
            fails,
        })
}

pub(crate) fn graph() -> impl Strategy<Value = Graph> {
    let kinds = (of(1..4u64), any::<bool>(), any::<bool>())
        .prop_map(|(delta, guard, accumulate)| Kinds { delta, guard, accumulate });
    let shape = (
        vec(node(), 1..=6),
        vec(0..6usize, 1..=3),
        prop::option::weighted(0.2, router()),
        vec(join(), 0..=2),
    );
    let run = (
        vec(0..5i64, 1..=2),
        1..=3u32,
        1..=6u64,
        prop::option::weighted(0.3, 1..4usize),
        prop::bool::weighted(0.8),
        prop::bool::weighted(0.25),
        0..1_000_000u64,
    );
    (shape, kinds, run).prop_map(|(shape, kinds, run)| {
        let (nodes, start, start_router, joins) = shape;
        let (inputs, tries, limit, concurrency, sleeps, exit, seed) = run;
        let mut graph = Graph {
            nodes,
            start,
            start_router,
            joins,
            kinds,
            inputs,
            tries,
            limit,
            concurrency,
            sleeps,
            exit,
            seed,
        };
        // Without waiting, nothing says which siblings have finished when a task fails.
        graph.sleeps |= graph.can_fail();
        graph
    })
}
