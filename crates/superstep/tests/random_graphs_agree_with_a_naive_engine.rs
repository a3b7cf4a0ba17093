//! Shows that planning and applying are what they are described to be: on random graphs, with
//! random completion orders, with failures and conflicts that are gone when the thread continues,
//! the engine does what a naive one does that works with strings and whole copies of the state.
//! Compared are the tasks of each superstep and what they see and write, the state after it, how
//! the run ends, what is stored, and which tasks run again.
//!
//! It could break through anything the engine does to be fast: positions instead of names, states folded in place, marks
//! for what has to be emptied, writes staged for a router and taken back, records that keep only what changed.
//!
//! `SUPERSTEP_CASES` is the number of graphs, `SUPERSTEP_SEED` the seed they are made from.

mod naive;

use std::sync::Arc;

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(future)
}

fn check(
    cases: u64,
    seed: u64,
    run: impl AsyncFn(&Arc<naive::graph::Graph>) -> Result<(), String>,
) {
    let config = Config {
        cases: u32::try_from(cases).expect("a number of cases"),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let tested = runner.run(&naive::graph::graph(), |graph| {
        block_on(run(&Arc::new(graph))).map_err(TestCaseError::fail)
    });
    match tested {
        Ok(()) => {}
        Err(TestError::Fail(reason, graph)) => panic!("{reason}\n\non the graph {graph:#?}"),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn without_a_checkpointer() {
    let (cases, seed) = (number("SUPERSTEP_CASES", 20_000), number("SUPERSTEP_SEED", 1));
    check(cases / 2, seed, naive::compare::without_a_checkpointer);
}

#[test]
fn on_a_thread() {
    let (cases, seed) = (number("SUPERSTEP_CASES", 20_000), number("SUPERSTEP_SEED", 2));
    check(cases / 2, seed, naive::compare::on_a_thread);
}
