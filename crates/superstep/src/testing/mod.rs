//! Tools for testing graphs: virtual time, every order, every crash.
//!
//! | | |
//! | --- | --- |
//! | [`virtual_time`] | sleeps, retries and timeouts take no real time |
//! | [`Clock`] | sleeps of tasks and deadlines of questions end when the test says so |
//! | [`CompletionOrder`] | the tasks of a superstep complete in a seeded order |
//! | [`CrashSaver`] | the process crashes at the k-th storage operation |
//! | [`FaultSaver`] | the k-th storage operation fails |
//! | [`Script`] | questions are answered from a list |
//! | [`Journal`] | what ran, and what ran again |
//!
//! They are independent: the savers are checkpointers, the order and the journal are added to the
//! context of a graph or run, the script runs a thread. Enable the feature `testing` as a
//! dev-dependency:
//!
//! ```toml
//! [dev-dependencies]
//! superstep = { version = "0.1", features = ["testing"] }
//! ```
//!
//! # A whole test
//!
//! Two nodes check an order concurrently, a recorded call pays for it, and a person approves the
//! shipping. In every completion order and after every crash, the customer pays once and gets one
//! parcel.
//!
//! ```
//! use superstep::prelude::*;
//! use superstep::testing::{CompletionOrder, Crash, CrashSaver, Journal, Script, virtual_time};
//! use superstep::CompiledGraph;
//!
//! #[derive(State, Clone, Debug, Default, PartialEq)]
//! struct Order {
//!     #[channel(reduce = Append)]
//!     checks: Vec<String>,
//!     paid: Option<u64>,
//!     sent: bool,
//! }
//!
//! async fn pay(task: Task) -> Result<OrderUpdate, NodeError> {
//!     let paid = task.call("charge", || async { Ok::<u64, NodeError>(42) }).await?;
//!     Ok(Order::update().paid(paid))
//! }
//!
//! async fn send(order: Arc<Order>, task: Task) -> OrderUpdate {
//!     let sent: bool = task.interrupt(format!("paid {:?}, send it?", order.paid)).await;
//!     Order::update().sent(sent)
//! }
//!
//! fn shop() -> CompiledGraph<Order> {
//!     let graph = StateGraph::new()
//!         .add_node("stock", || Order::update().checks(["in stock".to_owned()]))
//!         .add_node("fraud", || Order::update().checks(["not a fraud".to_owned()]))
//!         .add_node("pay", pay)
//!         .add_node("send", send)
//!         .add_edge(START, "stock")
//!         .add_edge(START, "fraud")
//!         .add_edge(["stock", "fraud"], "pay")
//!         .add_edge("pay", "send");
//!     graph.compile().expect("a graph")
//! }
//!
//! // In your tests: #[test]
//! fn a_customer_pays_once() {
//!     virtual_time(async {
//!         let script = || Script::new().answer("send it?", true);
//!         let undisturbed = CrashSaver::new(MemorySaver::new(), Crash::Never);
//!         let thread = shop().with_checkpointer(undisturbed.clone()).thread("order-1");
//!         let expected = script().run(&thread, Order::update()).await.expect("a run");
//!         assert_eq!(expected.checks, ["not a fraud", "in stock"]);
//!
//!         for (seed, crash) in Crash::points(undisturbed.operations()).enumerate() {
//!             let journal = Journal::new();
//!             let shop = shop()
//!                 .with_context(CompletionOrder::seeded(seed as u64))
//!                 .with_context(journal.clone());
//!
//!             let checkpointer = CrashSaver::new(MemorySaver::new(), crash);
//!             let thread = shop.clone().with_checkpointer(checkpointer.clone()).thread("order-1");
//!             let ended = checkpointer.run(script().run(&thread, Order::update())).await;
//!             assert!(ended.is_none(), "the process ended {crash:?}");
//!
//!             let thread = shop.with_any_checkpointer(checkpointer.survivor()).thread("order-1");
//!             let order = script().take_up(&thread, Order::update()).await.expect("a run");
//!             assert_eq!(order, expected, "{crash:?}");
//!             // A call runs again only if the process ended before its result was stored.
//!             assert!(journal.times("pay/charge") <= 2, "{crash:?}: {journal:?}");
//!         }
//!     });
//! }
//! # a_customer_pays_once();
//! ```

mod clock;
mod crash;
mod fault;
mod journal;
mod order;
mod script;
mod time;

pub use clock::Clock;
pub use crash::{Crash, CrashSaver};
pub use fault::{Fault, FaultSaver};
pub use journal::{Journal, Ran, RanEnd};
pub use order::CompletionOrder;
pub use script::Script;
pub use time::virtual_time;

use crate::Task;
use crate::engine::node_names;

/// The names on the way to a task.
fn place(task: &Task) -> String {
    node_names(task.namespace()).replace('|', "/")
}
