use std::sync::Arc;

/// The nodes at which a run stops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum At {
    #[default]
    Nowhere,
    Nodes(Vec<Arc<str>>),
    Everywhere,
}

impl At {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Nowhere => true,
            Self::Nodes(nodes) => nodes.is_empty(),
            Self::Everywhere => false,
        }
    }

    pub(crate) fn includes(&self, node: &str, hidden: bool) -> bool {
        match self {
            Self::Nowhere => false,
            Self::Nodes(nodes) => nodes.iter().any(|name| &**name == node),
            Self::Everywhere => !hidden,
        }
    }

    pub(crate) fn names(&self) -> &[Arc<str>] {
        match self {
            Self::Nodes(nodes) => nodes,
            Self::Nowhere | Self::Everywhere => &[],
        }
    }
}

/// The nodes of a breakpoint: named ones, or [all](Self::all).
#[derive(Clone, Debug)]
pub struct BreakAt(pub(crate) At);

impl BreakAt {
    /// At every node.
    pub fn all() -> Self {
        Self(At::Everywhere)
    }
}

impl<T: Into<Arc<str>>, const N: usize> From<[T; N]> for BreakAt {
    fn from(nodes: [T; N]) -> Self {
        Self(At::Nodes(nodes.into_iter().map(Into::into).collect()))
    }
}

impl<T: Into<Arc<str>>> From<Vec<T>> for BreakAt {
    fn from(nodes: Vec<T>) -> Self {
        Self(At::Nodes(nodes.into_iter().map(Into::into).collect()))
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Breakpoints {
    pub(crate) before: At,
    pub(crate) after: At,
}
