//! The promises of a [`Checkpointer`](superstep_checkpoint::Checkpointer).

mod abandoned;
mod alarms;
mod delta;
mod hostile;
pub(crate) mod kit;
mod list;
mod maintain;
mod put;
mod status;
mod writers;
mod writes;

use std::future::Future;

use superstep_checkpoint::AnyCheckpointer;

use crate::Report;
use crate::cases::cases;

/// The subject of a case.
#[derive(Clone, Debug)]
pub struct Subject {
    /// An empty checkpointer.
    pub checkpointer: AnyCheckpointer,
    /// Another handle to the same storage: if the checkpointer has connections, one with connections of its own.
    pub other: AnyCheckpointer,
}

cases! {
    put:
        a_checkpoint_comes_back_as_it_was,
        values_come_back_with_their_tag_and_bytes,
        metadata_comes_back_with_what_was_attached,
        unknown_threads_namespaces_and_ids_are_nothing,
        the_head_is_the_greatest_id,
        every_checkpoint_stays_and_knows_its_parent,
        threads_and_namespaces_are_apart,
        unchanged_channels_are_read_from_where_they_were_stored,
        channels_may_come_and_go,
        a_checkpoint_stored_again_is_replaced_and_keeps_its_writes,
        versions_seen_and_updated_channels_come_back,
        several_checkpoints_are_stored_in_their_order,
        several_checkpoints_may_be_of_several_threads,
        what_one_handle_stored_the_other_sees;
    writes:
        writes_are_seen_beside_their_checkpoint,
        writes_are_ordered_by_path_then_task_then_slot,
        a_filled_slot_keeps_its_first_value,
        reserved_slots_are_replaced,
        reserved_slots_are_replaced_in_calls_with_other_writes,
        a_task_that_starts_over_loses_what_it_had,
        a_new_checkpoint_has_none,
        namespaces_do_not_share_them,
        an_unknown_checkpoint_is_refused,
        a_checkpoint_that_is_no_longer_the_head_takes_them,
        values_of_every_kind_come_back,
        questions_and_dispatches_come_back;
    writers:
        a_second_writer_gets_a_conflict,
        two_first_checkpoints_conflict,
        a_conflict_stores_no_writes,
        a_conflict_of_the_first_of_several_stores_none,
        several_are_stored_together_or_not_at_all,
        an_ordered_checkpointer_takes_operations_ahead,
        a_superseded_writer_can_read_and_go_on,
        a_branch_from_an_older_checkpoint_names_the_head,
        writes_come_with_their_checkpoint_or_not_at_all,
        writes_for_an_unknown_parent_are_refused,
        of_many_writers_one_wins_each_time,
        of_two_answers_one_is_kept,
        an_answer_names_the_answers_before_it,
        a_call_that_is_overtaken_stores_nothing,
        a_checkpoint_with_an_overtaken_answer_is_not_stored,
        only_reserved_slots_can_be_expected,
        of_many_answers_one_wins;
    list:
        newest_first,
        by_thread_and_namespace,
        by_id,
        before_and_limit,
        by_metadata,
        all_keys_of_a_filter_must_match,
        with_their_writes,
        nothing_where_nothing_matches,
        an_abandoned_list_blocks_nobody;
    maintain:
        a_deleted_thread_is_gone_with_everything,
        deleting_an_unknown_thread_is_no_error,
        a_deleted_thread_can_begin_again,
        a_copy_has_everything_and_leaves_the_source,
        a_copy_goes_its_own_way,
        a_copy_of_nothing_is_nothing,
        a_copy_to_a_thread_that_exists_is_refused,
        runs_are_deleted_with_their_writes,
        runs_that_later_ones_are_built_on_are_kept,
        runs_are_deleted_in_every_namespace,
        unknown_runs_are_no_error,
        pruning_keeps_the_heads_and_their_writes,
        pruning_keeps_as_many_as_asked,
        pruning_keeps_what_is_newer,
        pruning_leaves_other_threads_alone,
        pruning_keeps_what_deltas_are_rebuilt_from,
        pruning_takes_the_namespaces_of_calls_with_their_callers,
        threads_are_listed_by_their_last_change,
        threads_are_listed_page_by_page,
        threads_show_their_open_questions,
        threads_that_were_deleted_are_not_listed,
        threads_are_not_moved_by_what_is_stored_late,
        everything_that_is_stored_is_named;
    status:
        threads_tell_their_status,
        dispatches_and_joins_count_for_the_status,
        the_status_follows_every_change,
        threads_are_found_by_metadata;
    delta:
        writes_come_oldest_first,
        the_seed_is_the_nearest_value,
        writes_of_the_checkpoint_itself_are_left_out,
        channels_end_independently,
        no_channels_no_history,
        without_a_seed_the_walk_goes_to_the_root,
        writes_beside_the_seed_count,
        branches_do_not_mix,
        a_missing_ancestor_is_an_error,
        a_ring_of_parents_ends,
        a_long_chain_is_walked;
    alarms:
        alarms_go_off_in_the_order_of_time,
        an_alarm_is_moved_by_one_caller_only,
        an_alarm_that_is_off_is_not_found,
        alarms_go_with_their_threads,
        a_head_that_comes_back_has_its_alarm;
    hostile:
        ids_of_any_text_are_apart,
        very_long_ids_are_kept_or_refused,
        names_of_any_text_are_kept,
        large_values_are_kept,
        filters_are_data;
    abandoned:
        a_dropped_put_is_done_or_not_done,
        dropped_writes_are_done_or_not_done,
        dropped_reads_leave_no_trace;
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

/// The names of all cases, in the order they run.
pub fn names() -> impl Iterator<Item = &'static str> {
    CASES.iter().map(|(name, _)| *name)
}
