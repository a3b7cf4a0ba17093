//! One file for each promise of the server, named as a sentence.

mod world;

mod a_reader_that_leaves_takes_its_run_with_it_only_if_asked;
mod a_run_that_was_acknowledged_reaches_its_end;
mod bad_requests_create_nothing;
mod foreign_threads_are_taken_in;
mod nobody_gets_in_without_a_key;
