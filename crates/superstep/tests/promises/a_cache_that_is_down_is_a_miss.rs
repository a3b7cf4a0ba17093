//! A cache saves work and is not needed for it. If it cannot be reached, or holds what cannot be read, nodes and calls run as if
//! there were none, unless their policy is strict; then the error blames the cache.

use std::sync::Arc;
use std::time::Duration;

use superstep::checkpoint::{Blob, Cache, CacheKey, Error, Tag};
use superstep::prelude::*;
use superstep::{CachePolicy, CompiledGraph};

use crate::world::{Log, LogUpdate, World, assert_says, done, failed, in_memory, log};

type CachedWrites = Vec<(Arc<str>, Blob)>;

/// What is wrong with a cache.
#[derive(Clone, Copy)]
enum Fault {
    Read,
    Write,
    /// It has something for every key, and none of it can be read.
    Garbage,
}

impl Cache for Fault {
    async fn get(&self, _: &CacheKey) -> Result<Option<CachedWrites>, Error> {
        match self {
            Self::Read => Err(Error::backend("cannot read", "connection refused")),
            Self::Write => Ok(None),
            Self::Garbage => {
                let damaged = || Blob::new(Tag::Msgpack, vec![0xc1]);
                Ok(Some(vec![("log".into(), damaged()), ("__return__".into(), damaged())]))
            }
        }
    }

    async fn put(&self, _: CacheKey, _: CachedWrites, _: Option<Duration>) -> Result<(), Error> {
        match self {
            Self::Write => Err(Error::backend("cannot write", "connection refused")),
            Self::Read | Self::Garbage => Ok(()),
        }
    }

    async fn clear(&self, _: Option<&[String]>) -> Result<(), Error> {
        Err(Error::backend("cannot clear", "connection refused"))
    }
}

fn node(world: &World, fault: Fault, policy: CachePolicy) -> CompiledGraph<Log> {
    let graph = StateGraph::<Log>::new()
        .add_node("work", |Ctx(world): Ctx<World>| {
            world.ran("work");
            log("worked")
        })
        .cache(policy)
        .add_edge(START, "work");
    in_memory(graph.compile().expect("a graph").with_cache(fault), world)
}

fn call(world: &World, fault: Fault, policy: CachePolicy) -> CompiledGraph<Log> {
    let work = move |Ctx(world): Ctx<World>, task: Task| {
        let policy = policy.clone();
        async move {
            let call = task.call("work", || async {
                world.ran("work");
                Ok::<_, NodeError>("worked".to_owned())
            });
            Ok::<LogUpdate, NodeError>(log(call.args(1).cache(policy).await?))
        }
    };
    let graph = StateGraph::<Log>::new().add_node("calls", work).add_edge(START, "calls");
    in_memory(graph.compile().expect("a graph").with_cache(fault), world)
}

#[tokio::test]
async fn for_nodes_and_calls() {
    for fault in [Fault::Read, Fault::Write, Fault::Garbage] {
        for make in [node, call] {
            let world = World::new();
            let thread = make(&world, fault, CachePolicy::new()).thread("1");
            assert_eq!(done(thread.invoke(log("in")).await).log, ["in", "worked"]);
            assert_eq!(world.take(), ["work"]);
        }
    }
}

#[tokio::test]
async fn unless_the_policy_is_strict() {
    for fault in [Fault::Read, Fault::Write, Fault::Garbage] {
        for make in [node, call] {
            let world = World::new();
            let thread = make(&world, fault, CachePolicy::new().strict()).thread("1");
            let (_, text) = failed(thread.invoke(log("in")).await);
            assert_says(&text, &["the cache failed"]);
            assert!(!text.contains("checkpointer"), "{text}");
        }
    }
}

#[tokio::test]
async fn and_clearing_it_says_that_it_failed() {
    let graph = node(&World::new(), Fault::Read, CachePolicy::new());
    for nodes in [None, Some(&["work"][..])] {
        let error = graph.clear_cache(nodes).await.expect_err("a cache that is down");
        assert!(matches!(error, RunError::Cache(_)), "{error:?}");
        assert_says(&format!("{error:#}"), &["the cache failed", "connection refused"]);
    }
}
