//! What agents promise, one file for each promise.

mod common;

mod a_cancelled_run_leaves_no_call_without_a_result;
mod a_model_that_misbehaves_leaves_a_thread_that_goes_on;
mod a_person_is_asked_before_a_tool_runs;
mod a_tool_is_a_function;
mod an_agent_answers_with_a_type;
mod middleware_wraps_the_model_and_the_tools;
mod several_agents_work_together;
mod tokens_of_the_model_are_streamed;
