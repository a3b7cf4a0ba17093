use std::future::Future;

/// Runs a future to completion in virtual time: whenever everything waits, the clock jumps to where
/// something happens next.
///
/// Nodes that sleep, retry after an hour or run into a time limit are tested in no time, and always
/// in the same order. It does what `#[tokio::test(start_paused = true)]` does, for tests that are
/// plain functions, loops or properties.
///
/// The clock also jumps while a thread of its own works for the future, unless Tokio's `spawn_blocking` started it.
///
/// ```
/// use std::time::Duration;
/// use superstep::prelude::*;
/// use superstep::testing::virtual_time;
///
/// #[derive(State, Clone, Default)]
/// struct Letter {
///     sent: bool,
/// }
///
/// let sent = virtual_time(async {
///     let app = StateGraph::<Letter>::new()
///         .add_node("send", || async {
///             tokio::time::sleep(Duration::from_secs(86_400)).await;
///             Letter::update().sent(true)
///         })
///         .add_edge(START, "send")
///         .compile()?;
///     Ok::<_, Box<dyn std::error::Error>>(app.invoke(Letter::update()).await?.done())
/// });
/// assert!(sent.unwrap().is_some_and(|letter| letter.sent));
/// ```
///
/// # Panics
/// When it is called inside a Tokio runtime.
pub fn virtual_time<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    runtime.expect("the system has room for a runtime").block_on(future)
}
