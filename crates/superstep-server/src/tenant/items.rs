use std::sync::Arc;

use superstep::checkpoint::{
    AnyStore, Error, Item, NamespaceQuery, Search, Store, StoreAnswer, StoreOp,
};

/// What the label begins with below which a tenant has its items.
const LABEL: &str = "tenant:";

/// The long-term memory of one tenant.
///
/// That of the default tenant is the memory as it is, without what other tenants keep in it. That of another tenant lies
/// below a label of its own, which neither its graphs nor its clients see.
pub(crate) struct TenantItems {
    inner: AnyStore,
    /// The label; none for the default tenant.
    label: Option<Arc<str>>,
}

fn is_foreign(namespace: &[String]) -> bool {
    namespace.first().is_some_and(|label| label.starts_with(LABEL))
}

fn reserved() -> Error {
    Error::invalid(format_args!("a namespace cannot begin with `{LABEL}`"))
}

fn own_items(answer: StoreAnswer) -> Result<Vec<Item>, Error> {
    match answer {
        StoreAnswer::Items(items) => Ok(items),
        other => Err(Error::codec(format_args!("the store answered {other:?} to a search"))),
    }
}

/// A page of what is left without foreign rows. All rows are needed for that unless the first page has none of them.
fn page<T>(
    rows: Vec<T>,
    foreign: impl Fn(&T) -> bool,
    offset: usize,
    limit: Option<usize>,
) -> Vec<T> {
    let own = rows.into_iter().filter(|row| !foreign(row)).skip(offset);
    own.take(limit.unwrap_or(usize::MAX)).collect()
}

impl TenantItems {
    pub(crate) fn new(inner: AnyStore, tenant: &str) -> Self {
        let label = match tenant {
            super::DEFAULT => None,
            tenant => Some(format!("{LABEL}{tenant}").into()),
        };
        Self { inner, label }
    }

    async fn one(&self, op: StoreOp) -> Result<StoreAnswer, Error> {
        let answer = self.inner.batch(vec![op]).await?.into_iter().next();
        answer.ok_or_else(|| Error::codec("the store did not answer"))
    }

    /// A search of the default tenant over everything.
    async fn search_all(&self, search: Search) -> Result<StoreAnswer, Error> {
        if search.offset == 0 {
            let first = own_items(self.one(StoreOp::Search(search.clone())).await?)?;
            if !first.iter().any(|item| is_foreign(&item.namespace)) {
                return Ok(StoreAnswer::Items(first));
            }
        }
        let (offset, limit) = (search.offset, search.limit);
        let all = Search { offset: 0, limit: i32::MAX as usize, refresh: Some(false), ..search };
        let all = own_items(self.one(StoreOp::Search(all)).await?)?;
        let own = page(all, |item| is_foreign(&item.namespace), offset, Some(limit));
        Ok(StoreAnswer::Items(own))
    }

    async fn all_namespaces(&self, query: NamespaceQuery) -> Result<StoreAnswer, Error> {
        let (offset, limit) = (query.offset, query.limit);
        let mut all = query;
        (all.offset, all.limit) = (0, None);
        match self.one(StoreOp::Namespaces(all)).await? {
            StoreAnswer::Namespaces(all) => {
                let own = page(all, |namespace| is_foreign(namespace), offset, limit);
                Ok(StoreAnswer::Namespaces(own))
            }
            other => Ok(other),
        }
    }

    /// Carries out operations of the default tenant.
    async fn batch_of_default(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreAnswer>, Error> {
        let names_foreign = |op: &StoreOp| match op {
            StoreOp::Get { namespace, .. } | StoreOp::Delete { namespace, .. } => {
                is_foreign(namespace)
            }
            StoreOp::Put(put) => is_foreign(&put.namespace),
            StoreOp::Search(search) => is_foreign(&search.prefix),
            StoreOp::Namespaces(query) => is_foreign(&query.prefix),
        };
        if ops.iter().any(names_foreign) {
            return Err(reserved());
        }
        let sees_all = |op: &StoreOp| match op {
            StoreOp::Search(search) => search.prefix.is_empty(),
            StoreOp::Namespaces(query) => query.prefix.first().is_none_or(|label| label == "*"),
            _ => false,
        };
        if !ops.iter().any(sees_all) {
            return self.inner.batch(ops).await;
        }
        ops.iter().try_for_each(StoreOp::check)?;
        // Reads see the state before the batch, so they come first. What is asked about everything is asked alone.
        let mut answers: Vec<Option<StoreAnswer>> = ops.iter().map(|_| None).collect();
        let mut rest = Vec::new();
        for (at, op) in ops.into_iter().enumerate() {
            match op {
                StoreOp::Search(search) if search.prefix.is_empty() => {
                    answers[at] = Some(self.search_all(search).await?);
                }
                StoreOp::Namespaces(query) => answers[at] = Some(self.all_namespaces(query).await?),
                op => rest.push(op),
            }
        }
        let mut rest = self.inner.batch(rest).await?.into_iter();
        let filled = answers.into_iter().map(|answer| answer.or_else(|| rest.next()));
        filled
            .collect::<Option<_>>()
            .ok_or_else(|| Error::codec("the store gave fewer answers than it was asked for"))
    }
}

/// An operation below a label.
fn below(op: StoreOp, label: &str) -> StoreOp {
    let inside = |mut namespace: Vec<String>| {
        namespace.insert(0, label.to_owned());
        namespace
    };
    match op {
        StoreOp::Get { namespace, key, refresh } => {
            StoreOp::Get { namespace: inside(namespace), key, refresh }
        }
        StoreOp::Delete { namespace, key } => StoreOp::Delete { namespace: inside(namespace), key },
        StoreOp::Put(mut put) => {
            put.namespace = inside(put.namespace);
            StoreOp::Put(put)
        }
        StoreOp::Search(mut search) => {
            search.prefix = inside(search.prefix);
            StoreOp::Search(search)
        }
        StoreOp::Namespaces(mut query) => {
            query.prefix = inside(query.prefix);
            query.max_depth = query.max_depth.map(|depth| depth.saturating_add(1));
            StoreOp::Namespaces(query)
        }
    }
}

/// An answer without the label.
fn without_label(answer: StoreAnswer) -> StoreAnswer {
    let outside = |namespace: Vec<String>| namespace.into_iter().skip(1).collect();
    let own = |item: Item| Item { namespace: outside(item.namespace.clone()), ..item };
    match answer {
        StoreAnswer::Item(item) => StoreAnswer::Item(item.map(own)),
        StoreAnswer::Items(items) => StoreAnswer::Items(items.into_iter().map(own).collect()),
        StoreAnswer::Namespaces(all) => {
            StoreAnswer::Namespaces(all.into_iter().map(outside).collect())
        }
        StoreAnswer::Done => StoreAnswer::Done,
    }
}

impl Store for TenantItems {
    async fn batch(&self, ops: Vec<StoreOp>) -> Result<Vec<StoreAnswer>, Error> {
        let Some(label) = &self.label else { return self.batch_of_default(ops).await };
        // What would be refused without a label is refused with one.
        ops.iter().try_for_each(StoreOp::check)?;
        let ops = ops.into_iter().map(|op| below(op, label)).collect();
        let answers = self.inner.batch(ops).await?;
        Ok(answers.into_iter().map(without_label).collect())
    }

    async fn sweep(&self) -> Result<usize, Error> {
        self.inner.sweep().await
    }
}

#[cfg(test)]
mod tests {
    use superstep::checkpoint::MemoryStore;

    use super::*;

    fn ns(labels: &[&str]) -> Vec<String> {
        labels.iter().map(|label| (*label).to_owned()).collect()
    }

    #[tokio::test]
    async fn each_tenant_has_a_memory_of_its_own() {
        let all = AnyStore::new(MemoryStore::new());
        let of = |tenant| AnyStore::new(TenantItems::new(all.clone(), tenant));
        let (default, a, b) = (of(""), of("a"), of("b"));
        for (store, value) in [(&a, "a"), (&b, "b"), (&default, "default")] {
            store.put(&ns(&["n"]), "k", value.into()).await.expect("put");
        }
        for n in 0..3 {
            a.put(&ns(&["n"]), &format!("more {n}"), n.into()).await.expect("put");
        }
        for (store, value, count) in [(&a, "a", 4), (&b, "b", 1), (&default, "default", 1)] {
            let item = store.get(&ns(&["n"]), "k").await.expect("an answer").expect("an item");
            assert_eq!((item.value, item.namespace), (value.into(), ns(&["n"])));
            let found = store.search(Search::below(ns(&[])).limit(10)).await.expect("an answer");
            assert_eq!(found.len(), count, "{value}");
            assert!(found.iter().all(|item| item.namespace == ns(&["n"])));
            let query = NamespaceQuery::below(ns(&[]));
            assert_eq!(store.namespaces(query).await.expect("an answer"), [ns(&["n"])]);
        }
        let second = Search::below(ns(&[])).limit(1).offset(1);
        assert!(default.search(second).await.expect("an answer").is_empty());
        for label in ["tenant:a", "tenant:"] {
            let foreign = ns(&[label, "n"]);
            assert!(default.get(&foreign, "k").await.is_err());
            assert!(default.put(&foreign, "k", 1.into()).await.is_err());
            assert!(default.search(Search::below(foreign.clone())).await.is_err());
        }
        let any = NamespaceQuery::below(ns(&["*"]));
        assert_eq!(default.namespaces(any).await.expect("an answer"), [ns(&["n"])]);
    }
}
