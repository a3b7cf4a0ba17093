//! One file for each promise of the server, named as a sentence.

mod live;
mod operators_see_what_the_server_does;
mod the_document_lists_every_endpoint;
mod too_many_readers_are_refused_before_anything_is_created;
mod world;

mod a_reader_that_leaves_takes_its_run_with_it_only_if_asked;
mod a_run_that_was_acknowledged_reaches_its_end;
mod a_stream_of_a_thread_shows_run_after_run;
mod a_thread_is_followed_over_all_its_runs;
mod bad_requests_create_nothing;
mod foreign_threads_are_taken_in;
mod nobody_gets_in_without_a_key;
