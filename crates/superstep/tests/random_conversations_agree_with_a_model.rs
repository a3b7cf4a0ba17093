//! Shows that a thread is what it is described to be: a tree of checkpoints, each with the nodes that are to run after
//! it, the answers they were given, and what those that have finished wrote. Random inputs, answers, updates and
//! branches on random graphs do to the engine what they do to a model that keeps everything whole. Compared after every
//! operation are how it ended, the questions, the state, the whole history, and how often each node has run.
//!
//! It could break through anything that binds answers to questions: ids that change or do not,
//! answers that reach a sibling, work that is repeated or lost when a superstep is taken up again,
//! at the root or in a subgraph.
//!
//! `SUPERSTEP_CASES` is the number of conversations, `SUPERSTEP_SEED` the seed they are made from.

mod conversation;

use conversation::{plan, real};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number"))
}

fn check(cases: u64, misfits: bool) {
    let seed = number("SUPERSTEP_SEED", 1);
    let config = Config {
        cases: u32::try_from(number("SUPERSTEP_CASES", cases)).expect("a number of cases"),
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let tested = TestRunner::new_with_rng(config, rng).run(
        &(plan::plan(), plan::ops(misfits)),
        |(plan, ops)| {
            let conversation = real::converse(&plan, &ops);
            runtime.block_on(conversation).map_err(TestCaseError::fail)
        },
    );
    match tested {
        Ok(()) => {}
        Err(TestError::Fail(reason, (plan, ops))) => {
            panic!("seed {seed}: {reason}\n\nin the conversation {ops:?}\n\non the graph {plan:#?}")
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn whatever_is_asked_answered_and_changed() {
    check(4_000, false);
}

#[test]
fn with_answers_that_do_not_fit() {
    check(1_000, true);
}
