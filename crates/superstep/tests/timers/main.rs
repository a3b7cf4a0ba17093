//! What is promised of timers and deadlines, one file for each promise. All of them have the clock of the test kit.

mod common;

mod a_crash_around_a_sleep_loses_and_doubles_nothing;
mod a_sleep_ends_the_run_and_goes_on_when_it_is_due;
mod a_time_that_cannot_be_is_refused;
mod a_timer_in_a_subgraph_in_a_fan_out_fires;
mod an_early_answer_beats_the_deadline_and_a_late_one_is_refused;
mod calls_and_workflows_sleep_too;
mod each_timer_fires_once_whoever_calls;
mod replay_does_not_move_the_due_time;
mod threads_of_others_are_left_alone;
mod two_timers_and_a_question_wait_side_by_side;
