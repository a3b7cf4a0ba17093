//! Edges from several nodes.

use std::sync::Arc;

/// When the target of an edge from several nodes runs: when all, one, or some of them have.
///
/// ```
/// use superstep::Join;
/// use superstep::prelude::*;
///
/// #[derive(State, Clone, Default)]
/// struct Quotes {
///     #[channel(reduce = Append)]
///     prices: Vec<u32>,
///     best: Option<u32>,
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let app = StateGraph::<Quotes>::new()
///     .add_node("north", || Quotes::update().prices([31]))
///     .add_node("south", || Quotes::update().prices([29]))
///     .add_node("ask_around", || ())
///     .add_node("west", || Quotes::update().prices([12]))
///     .add_node("choose", |quotes: Arc<Quotes>| {
///         Quotes::update().best(quotes.prices.iter().min().copied())
///     })
///     .add_edge(START, "north")
///     .add_edge(START, "south")
///     .add_edge(START, "ask_around")
///     .add_edge("ask_around", "west")
///     .add_edge(Join::at_least(2, ["north", "south", "west"]), "choose")
///     .compile()?;
/// // `west` is too late for the choice, which is made once.
/// let quotes = app.invoke(Quotes::update()).await?.done().expect("nothing is asked");
/// assert_eq!((quotes.best, quotes.prices.len()), (Some(29), 3));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
///
/// # Rounds
///
/// A join counts which of its sources have run, each once. When enough have, it *fires*: its target runs in the next
/// superstep. A source that several tasks of a superstep run, as dispatches do, counts once.
///
/// A join fires once in a round. Sources that run after it has fired are late: they neither run the target again nor count for the
/// next round. The round is over, and the join counts from zero, when
///
/// - all sources have run (a join of [`all`](Self::all) fires at this moment, so it has no late sources);
/// - it has fired, and no node under way can lead to a source that is missing, as far as edges, routers and
///   [`destinations`](crate::StateGraph::destinations) say, other than through the target;
/// - it has fired, and a source runs for the second time: this is the first arrival of the next round;
/// - the thread gets new input.
///
/// In a loop that passes the join several times, arrivals carry no number: a late source of one pass counts in the next if that has
/// begun.
///
/// # Joins that cannot fire any more
///
/// A run that has nothing left to run while a join has some but not enough of its sources ends with
/// [`RunError::UnfilledJoin`](crate::RunError::UnfilledJoin), also if the join has fired before and only some of the sources
/// ran again after that. What the run did is stored. If a later run is to bring the
/// others, say so with [`across_runs`](Self::across_runs). In a [`lenient`](crate::StateGraph::lenient) graph every join
/// waits across runs, as in LangGraph.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Join {
    pub(super) sources: Vec<Arc<str>>,
    pub(super) needed: Needed,
    pub(super) across_runs: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    All,
    AtLeast(usize),
}

impl Join {
    /// The target runs when all of these nodes have run. A list of nodes as the source of an edge means the same.
    pub fn all<T: Into<Arc<str>>>(sources: impl IntoIterator<Item = T>) -> Self {
        Self::new(Needed::All, sources)
    }

    /// The target runs when one of these nodes has run.
    ///
    /// Plain edges from each of them differ if several nodes are under way: then the target runs for each superstep in which
    /// one of them does.
    pub fn any<T: Into<Arc<str>>>(sources: impl IntoIterator<Item = T>) -> Self {
        Self::new(Needed::AtLeast(1), sources)
    }

    /// The target runs when so many of these nodes have run.
    pub fn at_least<T: Into<Arc<str>>>(
        needed: usize,
        sources: impl IntoIterator<Item = T>,
    ) -> Self {
        Self::new(Needed::AtLeast(needed), sources)
    }

    fn new<T: Into<Arc<str>>>(needed: Needed, sources: impl IntoIterator<Item = T>) -> Self {
        let sources = sources.into_iter().map(Into::into).collect();
        Self { sources, needed, across_runs: false }
    }

    /// Lets sources that have run count in later runs of the thread, until enough have: a run may end before that, and new input
    /// does not begin a new round.
    pub fn across_runs(mut self) -> Self {
        self.across_runs = true;
        self
    }

    /// How many sources have to run.
    pub(super) fn count(&self) -> usize {
        match self.needed {
            Needed::All => self.sources.len(),
            Needed::AtLeast(needed) => needed,
        }
    }

    /// The kind of the join in drawings.
    pub(super) fn kind(&self) -> String {
        match (self.count(), self.sources.len()) {
            (needed, all) if needed == all => "all".to_owned(),
            (1, _) => "any".to_owned(),
            (needed, all) => format!("{needed} of {all}"),
        }
    }
}

/// The source of an edge: a node, or a [`Join`] of several. A list of nodes is [`Join::all`].
pub trait EdgeSource {
    #[doc(hidden)]
    fn into_source(self) -> Source;
}

#[doc(hidden)]
#[derive(Debug)]
pub enum Source {
    Node(Arc<str>),
    Join(Join),
}

impl EdgeSource for &str {
    fn into_source(self) -> Source {
        Source::Node(self.into())
    }
}

impl EdgeSource for String {
    fn into_source(self) -> Source {
        Source::Node(self.into())
    }
}

impl EdgeSource for Join {
    fn into_source(self) -> Source {
        Source::Join(self)
    }
}

impl<T: Into<Arc<str>>, const N: usize> EdgeSource for [T; N] {
    fn into_source(self) -> Source {
        Source::Join(Join::all(self))
    }
}

impl<T: Into<Arc<str>>> EdgeSource for Vec<T> {
    fn into_source(self) -> Source {
        Source::Join(Join::all(self))
    }
}
