//! What is promised of timers and deadlines, one file for each promise. All of them have the clock of the test kit.

mod common;

mod a_sleep_ends_the_run_and_goes_on_when_it_is_due;
mod an_early_answer_beats_the_deadline_and_a_late_one_is_refused;
mod replay_does_not_move_the_due_time;
