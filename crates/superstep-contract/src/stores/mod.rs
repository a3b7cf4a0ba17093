//! The promises of a [`Store`](superstep_checkpoint::Store).

mod expiry;
mod items;
mod meaning;
mod search;
mod spaces;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use superstep_checkpoint::{AnyStore, Namespace, VectorIndex};

use crate::Report;
use crate::cases::cases;
use crate::checkpointers::kit::{Case, Fault};

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The subject of a case.
#[derive(Clone)]
pub struct Subject {
    store: AnyStore,
    other: AnyStore,
    pass: Option<Arc<dyn Fn(Duration) -> Boxed<()> + Send + Sync>>,
    indexed: Option<Arc<dyn Fn(VectorIndex) -> Boxed<AnyStore> + Send + Sync>>,
}

impl Subject {
    /// An empty store, and another handle to the same storage: if the store has connections, one
    /// with connections of its own.
    pub fn new(store: AnyStore, other: AnyStore) -> Self {
        Self { store, other, pass: None, indexed: None }
    }

    /// Adds a way to advance the store's clock. Without it, the cases about expiry are skipped.
    #[must_use]
    pub fn passing<F, R>(mut self, pass: F) -> Self
    where
        F: Fn(Duration) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.pass = Some(Arc::new(move |time| Box::pin(pass(time))));
        self
    }

    /// Adds a way to open the same storage with this index. Without it, the cases about queries are
    /// skipped.
    #[must_use]
    pub fn indexed<F, R>(mut self, indexed: F) -> Self
    where
        F: Fn(VectorIndex) -> R + Send + Sync + 'static,
        R: Future<Output = AnyStore> + Send + 'static,
    {
        self.indexed = Some(Arc::new(move |index| Box::pin(indexed(index))));
        self
    }

    async fn pass(&self, minutes: u64) -> Case {
        let pass = self.pass.as_ref().ok_or(Fault::Unsupported)?;
        pass(Duration::from_secs(60 * minutes)).await;
        Ok(())
    }

    async fn with_index(&self, index: VectorIndex) -> Result<AnyStore, Fault> {
        Ok(self.indexed.as_ref().ok_or(Fault::Unsupported)?(index).await)
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").field("store", &self.store).finish_non_exhaustive()
    }
}

cases! {
    items:
        an_item_is_kept_until_it_is_deleted,
        a_value_comes_back_as_it_was,
        an_item_that_is_put_again_keeps_the_time_it_was_first_put,
        what_one_handle_put_the_other_sees,
        keys_of_any_text_are_apart,
        a_batch_reads_what_was_there_before,
        the_last_of_several_puts_of_a_batch_counts,
        a_batch_with_something_refused_does_nothing,
        namespaces_that_cannot_be_are_refused;
    search:
        items_are_found_by_whole_labels,
        items_come_in_the_order_of_their_last_put,
        limit_and_offset_cut_a_page,
        comparisons_know_numbers_from_text,
        null_is_the_value_of_a_missing_key,
        all_conditions_must_hold,
        filters_are_data;
    spaces:
        namespaces_are_listed_in_the_order_of_their_labels,
        namespaces_are_found_by_pattern,
        namespaces_are_cut_and_listed_once,
        an_empty_namespace_is_not_listed;
    expiry:
        an_item_whose_time_is_over_is_gone,
        reading_starts_the_time_anew,
        a_reader_may_leave_the_time_alone,
        sweeping_removes_what_is_over_and_nothing_else,
        an_item_that_is_put_after_its_end_is_a_new_one;
    meaning:
        the_nearest_comes_first,
        every_distance_puts_the_nearest_first,
        an_item_is_as_near_as_the_nearest_of_its_texts,
        a_vector_without_length_is_as_near_as_any,
        queries_and_filters_go_together,
        what_is_not_indexed_is_not_found_by_a_query,
        an_item_that_is_put_again_is_found_by_its_new_text,
        a_deleted_item_leaves_no_vectors,
        equal_texts_are_embedded_once,
        a_function_that_fails_stores_nothing,
        a_query_without_an_index_is_refused;
}

/// Runs every case, each on a fresh [`Subject`].
///
/// Needs a tokio runtime.
pub async fn run<F, S>(fresh: F) -> Report
where
    F: Fn() -> S,
    S: Future<Output = Subject>,
{
    crate::cases::run(CASES, fresh).await
}

fn ns(labels: &[&str]) -> Namespace {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

fn keys(items: &[superstep_checkpoint::Item]) -> Vec<&str> {
    items.iter().map(|item| item.key.as_str()).collect()
}

fn map(entries: &[(&str, superstep_checkpoint::Value)]) -> superstep_checkpoint::Value {
    let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
    superstep_checkpoint::Value::Map(entries.collect())
}
