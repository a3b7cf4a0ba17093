//! Semantic search with vectors that a user function makes from texts.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use super::{PutItem, StoreOp, path};
use crate::{Error, Value};

/// The error of a function that makes vectors.
type Cause = Box<dyn std::error::Error + Send + Sync>;
type Embedding = Pin<Box<dyn Future<Output = Result<Vec<Vec<f32>>, Cause>> + Send>>;

/// The distance measure of vectors. A nearer item has a greater score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Distance {
    /// Cosine similarity, from -1 to 1.
    #[default]
    Cosine,
    /// Euclidean distance; the score is its negative.
    L2,
    /// Inner product.
    InnerProduct,
}

impl Distance {
    /// The similarity of two vectors, greater for nearer ones.
    pub fn score(self, a: &[f32], b: &[f32]) -> f64 {
        let pairs = || a.iter().zip(b).map(|(a, b)| (f64::from(*a), f64::from(*b)));
        let product = || pairs().map(|(a, b)| a * b).sum::<f64>();
        let length = |v: &[f32]| v.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        match self {
            Self::Cosine => {
                let lengths = length(a) * length(b);
                if lengths > 0.0 { product() / lengths } else { 0.0 }
            }
            Self::L2 => -pairs().map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt(),
            Self::InnerProduct => product(),
        }
    }
}

/// Which texts of an item are indexed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Indexing {
    /// Those at the store's paths.
    #[default]
    Default,
    /// None: the item is not found by a query.
    Off,
    /// Those at these paths; see [`VectorIndex::fields`].
    Fields(Vec<String>),
}

/// The configuration of semantic search.
///
/// A user function makes a vector from each text. The score of an item is that of its nearest
/// vector.
#[derive(Clone)]
#[doc(alias = "IndexConfig")]
pub struct VectorIndex {
    embed: Arc<dyn Fn(Vec<String>) -> Embedding + Send + Sync>,
    dims: usize,
    fields: Vec<String>,
    distance: Distance,
}

impl VectorIndex {
    /// An index over whole values, with a function that makes a vector of `dims` numbers of each text, in their order.
    pub fn new<F, R, E>(dims: usize, embed: F) -> Self
    where
        F: Fn(Vec<String>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<Vec<f32>>, E>> + Send + 'static,
        E: Into<Cause>,
    {
        let embed = move |texts| -> Embedding {
            let made = embed(texts);
            Box::pin(async move { made.await.map_err(Into::into) })
        };
        Self { embed: Arc::new(embed), dims, fields: vec!["$".into()], distance: Distance::Cosine }
    }

    /// Only the texts at these paths: `$` (the whole value as JSON), `a.b`, `a[0]`, `a[-1]`, `a[*]`, `*`, `{a,b}`.
    #[must_use]
    pub fn fields<P: Into<String>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.fields = paths.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the distance measure. The default is cosine similarity.
    #[must_use]
    pub fn distance(mut self, distance: Distance) -> Self {
        self.distance = distance;
        self
    }

    /// The dimension of the vectors.
    pub fn dims(&self) -> usize {
        self.dims
    }

    /// The distance measure.
    pub fn measure(&self) -> Distance {
        self.distance
    }

    /// Makes the vectors a batch needs, with one call of the function and each text once.
    ///
    /// Stores call it before they touch what they keep. `None` stands for a store without an index.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there is no index and the batch needs one; [`Error::Backend`] if the function fails or gives
    /// something else than a vector of the right length for each text.
    pub async fn prepare(index: Option<&Self>, ops: &[StoreOp]) -> Result<Vec<Vectors>, Error> {
        let Some(index) = index else {
            return ops.iter().try_for_each(refuse).map(|()| vec![Vectors::default(); ops.len()]);
        };
        let texts: Vec<Vec<(String, String)>> = ops.iter().map(|op| index.texts(op)).collect();
        let all = texts.iter().flatten().map(|(_, text)| text.clone());
        let known = index.embed_each(all.collect()).await?;
        let vectors = texts.into_iter().map(|texts| {
            let vectors = texts
                .into_iter()
                .filter_map(|(name, text)| known.get(&text).map(|vector| (name, vector.clone())));
            Vectors(vectors.collect())
        });
        Ok(vectors.collect())
    }

    /// The texts of an operation of which vectors are made, by name.
    fn texts(&self, op: &StoreOp) -> Vec<(String, String)> {
        match op {
            StoreOp::Search(search) => {
                search.query.iter().map(|query| (String::new(), query.clone())).collect()
            }
            StoreOp::Put(PutItem { value, index, .. }) => match index {
                Indexing::Off => Vec::new(),
                Indexing::Default => named(value, &self.fields),
                Indexing::Fields(paths) => named(value, paths),
            },
            StoreOp::Get { .. } | StoreOp::Delete { .. } | StoreOp::Namespaces(_) => Vec::new(),
        }
    }

    async fn embed_each(
        &self,
        mut texts: Vec<String>,
    ) -> Result<BTreeMap<String, Vec<f32>>, Error> {
        texts.sort();
        texts.dedup();
        if texts.is_empty() {
            return Ok(BTreeMap::new());
        }
        let vectors = (self.embed)(texts.clone()).await;
        let vectors = vectors
            .map_err(|cause| Error::backend("making vectors of texts for a store", cause))?;
        let wrong = vectors.iter().map(Vec::len).find(|len| *len != self.dims);
        if vectors.len() != texts.len() || wrong.is_some() {
            let what = "making vectors of texts for a store";
            let found = wrong.map_or_else(
                || format!("{} vectors for {} texts", vectors.len(), texts.len()),
                |len| format!("a vector of {len} numbers where the index has {}", self.dims),
            );
            return Err(Error::backend(what, format!("the function gave {found}")));
        }
        Ok(texts.into_iter().zip(vectors).collect())
    }
}

impl fmt::Debug for VectorIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VectorIndex")
            .field("dims", &self.dims)
            .field("fields", &self.fields)
            .field("distance", &self.distance)
            .finish_non_exhaustive()
    }
}

/// The vectors that belong to an operation: those of the texts of an item, by the name of their field, or that of a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectors(pub Vec<(String, Vec<f32>)>);

impl Vectors {
    /// The vector of a query; `None` if there is none.
    pub fn query(&self) -> Option<&[f32]> {
        self.0.first().map(|(_, vector)| vector.as_slice())
    }
}

fn named(value: &Value, paths: &[String]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for path in paths {
        let texts = path::texts(value, path);
        let many = texts.len() > 1;
        for (nth, text) in texts.into_iter().enumerate() {
            let name = if many { format!("{path}.{nth}") } else { path.clone() };
            all.push((name, text));
        }
    }
    all
}

/// Refuses options that need an index.
fn refuse(op: &StoreOp) -> Result<(), Error> {
    match op {
        StoreOp::Search(search) if search.query.is_some() => Err(Error::invalid(
            "this store has no index, so it cannot search for a query; make it with `with_index`",
        )),
        StoreOp::Put(PutItem { key, index: Indexing::Fields(_), .. }) => {
            Err(Error::invalid(format_args!(
                "this store has no index, so the fields of item `{key}` cannot be indexed; make it with `with_index`"
            )))
        }
        _ => Ok(()),
    }
}
