//! An overwrite is an instruction, not a value: what is in the channel afterwards is what was inside it.

use crate::world::{Log, World, done, in_memory, log};
use superstep::CompiledGraph;
use superstep::checkpoint::Ext;
use superstep::prelude::*;
use superstep::state::{Deltas, Fold, Kind, Schema, Table, TableChannel};

fn overwrite(value: impl Into<Value>) -> Value {
    Ext::Overwrite(value.into()).into()
}

/// One node that overwrites every channel with 7 or [7].
fn table() -> CompiledGraph<Table> {
    let mut schema = Schema::<Table>::default();
    schema.table("last", TableChannel::last());
    schema.table("any", TableChannel::of_kind(Kind::Any));
    schema.table("sum", TableChannel::folded(Fold::Sum, None));
    schema.table("list", TableChannel::folded(Fold::Append, Some(Value::List(Vec::new()))));
    schema.table("delta", TableChannel::delta(Fold::Append, None, Deltas::Every(100)));
    for name in ["topic", "item"] {
        schema.table(name, TableChannel::of_kind(Kind::Topic { accumulate: true }));
    }
    let graph = StateGraph::with_schema(schema)
        .add_node("a", || {
            let list = || overwrite(vec![Value::from(7)]);
            let seven = || overwrite(7);
            let entries = [
                ("last", seven()),
                ("any", seven()),
                ("sum", seven()),
                ("list", list()),
                ("delta", list()),
                ("topic", list()),
                // A topic takes an item as a list of one.
                ("item", seven()),
            ];
            Value::Map(entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        })
        .add_edge(START, "a")
        .compile()
        .expect("a graph");
    in_memory(graph, &World::new())
}

fn assert_sevens(state: &Table) {
    for name in ["last", "any", "sum"] {
        assert_eq!(state.get(name), Some(&Value::from(7)), "{name}");
    }
    for name in ["list", "delta", "topic", "item"] {
        assert_eq!(state.get(name), Some(&Value::from(vec![Value::from(7)])), "{name}");
    }
}

/// F24: the reference stores the wrapper where a channel keeps its last value, and where it is the first write to a reducer
/// that begins with nothing.
#[tokio::test(start_paused = true)]
async fn as_the_first_write() {
    let thread = table().thread("1");
    assert_sevens(&done(thread.invoke(Value::Map(Default::default())).await));
    assert_sevens(thread.get_state().await.expect("a look").state());
}

/// F24, over values that are there, and once more.
#[tokio::test(start_paused = true)]
async fn as_a_later_write() {
    let thread = table().thread("1");
    let input = serde_json::json!({ "last": 1, "sum": 2, "list": [3], "delta": [4], "topic": [5, 6], "item": 8 });
    for _ in 0..2 {
        assert_sevens(&done(thread.invoke(input.clone()).await));
        assert_sevens(thread.get_state().await.expect("a look").state());
    }
}

/// F24, as input and as an update from outside.
#[tokio::test(start_paused = true)]
async fn as_input_and_as_an_update_from_outside() {
    let graph = StateGraph::<Log>::new()
        .add_node("a", || ())
        .add_edge(START, "a")
        .compile()
        .expect("a graph");
    let thread = in_memory(graph, &World::new()).thread("1");
    let log_only = |state: Log| state.log;
    assert_eq!(log_only(done(thread.invoke(log("in")).await)), ["in"]);
    let update = Log::update().overwrite_log(["new".to_owned()]);
    assert_eq!(log_only(done(thread.invoke(update).await)), ["new"]);
    let update = Log::update().overwrite_log(["newer".to_owned()]);
    thread.update_state(update).as_node("a").await.expect("an update");
    assert_eq!(thread.get_state().await.expect("a look").state().log, ["newer"]);
    let n = Value::Map([("n".to_owned(), overwrite(5))].into_iter().collect());
    assert_eq!(done(thread.invoke(n).await).n, 5);
}
