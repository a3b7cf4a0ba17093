//! A value that cannot be serialized is an error that names what it belongs to. It would be
//! worse if something else took its place: empty arguments find the result of another call, and
//! null is an answer to a question with an `Option`.

use superstep::checkpoint::{AnyCheckpointer, Blob, MemoryCache, Tag, TaskWrites};
use superstep::prelude::*;
use superstep::{CachePolicy, Data, Mode, task};

use crate::world::{Log, LogUpdate, World, asked, assert_says, done, failed, in_memory, log, look};

/// Greater than any number that can be stored.
const HUGE: u128 = u128::MAX;

#[derive(State, Clone, Default, Debug)]
struct Account {
    balance: u128,
}

#[task]
async fn twice(n: u128) -> Result<String, NodeError> {
    Ok((n / 2).to_string())
}

#[tokio::test]
async fn arguments_of_a_call() {
    let world = World::new();
    let work = |state: Arc<Log>, Ctx(world): Ctx<World>, task: Task| async move {
        let n = u128::MAX - u128::try_from(state.n)?;
        let call = task.call("price", || async {
            world.ran("price");
            Ok::<_, NodeError>(n.to_string())
        });
        let price = call.args(n).cache(CachePolicy::new()).await?;
        Ok::<_, NodeError>(log(price))
    };
    let graph = StateGraph::<Log>::new().add_node("work", work).add_edge(START, "work");
    let graph = graph.compile().expect("a graph").with_cache(MemoryCache::new());
    let graph = in_memory(graph, &world);
    for n in [1, 2] {
        let (_, text) = failed(graph.thread(n.to_string()).invoke(Log::update().n(n)).await);
        assert_says(&text, &["arguments", "`price`", "`work`", "cannot be recorded"]);
    }
    assert!(world.take().is_empty(), "the call does not run");
}

#[tokio::test]
async fn arguments_of_a_function_that_is_a_call() {
    async fn work(task: Task) -> Result<LogUpdate, NodeError> {
        Ok(log(twice(&task, HUGE).await?))
    }
    let graph = StateGraph::<Log>::new().add_node("work", work).add_edge(START, "work");
    let graph = in_memory(graph.compile().expect("a graph"), &World::new());
    let (_, text) = failed(graph.thread("1").invoke(log("in")).await);
    assert_says(&text, &["arguments", "`twice`", "`work`", "cannot be recorded"]);
}

#[tokio::test]
async fn the_result_of_a_call() {
    async fn work(task: Task) -> Result<LogUpdate, NodeError> {
        let n = task.call("price", || async { Ok::<_, NodeError>(HUGE) }).await?;
        Ok(log(n.to_string()))
    }
    let graph = StateGraph::<Log>::new().add_node("work", work).add_edge(START, "work");
    let graph = in_memory(graph.compile().expect("a graph"), &World::new());
    let (_, text) = failed(graph.thread("1").invoke(log("in")).await);
    assert_says(&text, &["result", "`price`", "`work`", "cannot be stored"]);
}

/// A record that is there and cannot be read is not a call that has not run yet.
#[tokio::test]
async fn a_damaged_record_of_a_call() {
    async fn work(Ctx(world): Ctx<World>, task: Task) -> Result<LogUpdate, NodeError> {
        let pay = task.call("pay", || async {
            world.ran("pay");
            Ok::<_, NodeError>(7)
        });
        let n: i64 = pay.await?;
        Ok(log(format!("{n} {}", task.interrupt::<String>("fine?").await)))
    }
    let world = World::new();
    let graph = StateGraph::<Log>::new().add_node("work", work).add_edge(START, "work");
    let checkpointer = AnyCheckpointer::new(MemorySaver::new());
    let graph = graph.compile().expect("a graph").with_context(world.clone());
    let thread = graph.with_any_checkpointer(checkpointer.clone()).thread("1");
    asked(thread.invoke(log("in")).await);
    let stored = checkpointer.get("1", "", None).await.expect("a look").expect("a thread");
    let record = stored.writes.iter().find(|write| &*write.channel == "__return__");
    let record = record.expect("the call is recorded");
    let damaged = Blob::new(Tag::Msgpack, vec![0xc1]);
    let damage = TaskWrites::new(record.task, &*record.path, vec![("__return__".into(), damaged)]);
    let damage = TaskWrites { replaces: true, ..damage };
    checkpointer.put_writes("1", "", stored.checkpoint.id, vec![damage]).await.expect("damage");
    let (_, text) = failed(thread.resume("yes").await);
    assert_says(&text, &[&record.task.to_string(), "cannot be read"]);
    assert_eq!(world.take(), ["pay"], "nobody pays twice");
}

#[tokio::test]
async fn an_answer() {
    async fn ask(task: Task) -> LogUpdate {
        let answer = task.interrupt::<Option<u64>>("how much?").await;
        log(format!("{answer:?}"))
    }
    let graph = StateGraph::<Log>::new().add_node("ask", ask).add_edge(START, "ask");
    let thread = in_memory(graph.compile().expect("a graph"), &World::new()).thread("1");
    asked(thread.invoke(log("in")).await);
    let question = look(&thread).await.interrupts[0].id.clone();
    let (error, text) = failed(thread.resume(HUGE).await);
    assert_says(&text, &[question.as_str(), "cannot be serialized"]);
    assert!(matches!(error, RunError::Resume { pending, .. } if pending[0].id == question));
    let (error, text) = failed(thread.resume_all([(question.clone(), HUGE)]).await);
    assert_says(&text, &[question.as_str(), "cannot be serialized"]);
    assert!(matches!(error, RunError::Resume { pending, .. } if pending[0].id == question));
    assert_eq!(look(&thread).await.interrupts.len(), 1, "the question is open");
    assert_eq!(done(thread.resume(3).await).log, ["in", "Some(3)"]);
}

#[tokio::test]
async fn the_schema_of_a_question() {
    async fn ask(task: Task) -> LogUpdate {
        log(task.interrupt::<String>("how much?").schema(HUGE).await)
    }
    let graph = StateGraph::<Log>::new().add_node("ask", ask).add_edge(START, "ask");
    let thread = in_memory(graph.compile().expect("a graph"), &World::new()).thread("1");
    let (_, text) = failed(thread.invoke(log("in")).await);
    assert_says(&text, &["`ask`", "schema"]);
}

#[tokio::test]
async fn the_key_of_a_cached_node() {
    let world = World::new();
    let graph = StateGraph::<Account>::new()
        .add_node("add", |Ctx(world): Ctx<World>| {
            world.ran("add");
            Account::update().balance(1)
        })
        .cache(CachePolicy::new())
        .add_edge(START, "add")
        .compile()
        .expect("a graph")
        .with_context(world.clone())
        .with_cache(MemoryCache::new());
    let (_, text) = failed(graph.invoke(Account::update().balance(HUGE)).await);
    assert_says(&text, &["`add`", "input"]);
    assert!(world.take().is_empty());
}

fn rich() -> superstep::CompiledGraph<Account> {
    StateGraph::<Account>::new()
        .add_node("earn", || Account::update().balance(HUGE))
        .add_edge(START, "earn")
        .compile()
        .expect("a graph")
}

/// A graph without a checkpointer needs no data, unless somebody wants to see it.
#[tokio::test]
async fn what_a_stream_shows() {
    assert_eq!(done(rich().invoke(Account::update()).await).balance, HUGE);
    for mode in [Mode::Updates, Mode::Tasks, Mode::Debug] {
        let mut run = rich().invoke(Account::update()).stream([mode]);
        let mut ended = Ok(());
        while let Some(event) = run.next().await {
            ended = event.map(drop);
        }
        let (_, text) = failed(ended);
        assert_says(&text, &["`earn`", "`balance`", "cannot be serialized"]);
    }
}

#[tokio::test]
async fn the_state_in_a_stream() {
    let mut run = rich().invoke(Account::update()).stream([Mode::Values]);
    let mut shown = Vec::new();
    while let Some(event) = run.next().await {
        let Data::Values(values) = event.expect("an event").data else { break };
        let state = values.state::<Account>().expect("its type");
        shown.push((state.balance, values.to_value().map_err(|error| error.to_string())));
    }
    let (balance, data) = shown.pop().expect("a last state");
    assert_eq!(balance, HUGE, "the state itself is there");
    assert_says(&data.expect_err("no number that can be stored"), &["`balance`"]);
}
