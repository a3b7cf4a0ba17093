//! The list of threads is ordered by their heads, whichever program stored or deleted them.
//!
//! A checkpointer with such a list must keep it correct when another program writes. [`compare`]
//! stores and deletes as [`Outside`] does, and compares the list with the checkpoints themselves.

use std::future::Future;

use superstep_checkpoint::{Checkpointer, ThreadQuery};

/// A writer that uses the tables without the checkpointer, as LangGraph does.
pub trait Outside {
    /// Stores a checkpoint of no further interest.
    fn store(&self, thread: &str, ns: &str, id: &str) -> impl Future<Output = ()>;

    /// Deletes the newest checkpoint of a thread, in whichever namespace it is.
    fn delete_newest(&self, thread: &str) -> impl Future<Output = ()>;

    /// The threads and the newest checkpoints of their outermost graphs, newest first.
    fn heads(&self) -> impl Future<Output = Vec<(String, String)>>;
}

/// The time of the first id, in units of 100 nanoseconds.
pub const BEGIN: u64 = 139_000_000_000_000_000 >> 24 << 24;

/// The id of a checkpoint that was made so many units of 100 nanoseconds after [`BEGIN`].
pub fn id(after: u64, nth: u64) -> String {
    let time = BEGIN + after;
    let (high, mid, low) = (time >> 28, time >> 12 & 0xffff, time & 0xfff);
    format!("{high:08x}-{mid:04x}-6{low:03x}-8001-{nth:012x}")
}

/// All pages of the list, one after the other.
///
/// # Panics
/// A page cannot be had, or is too long.
pub async fn listed(checkpointer: &impl Checkpointer) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut query = ThreadQuery::new(3);
    loop {
        let page = checkpointer.threads(query).await.expect("a page");
        assert!(page.threads.len() <= 3);
        let infos = page.threads.into_iter();
        all.extend(infos.map(|info| (info.thread.to_string(), info.head.to_string())));
        match page.next {
            Some(next) => query = ThreadQuery::new(3).after(next),
            None => return all,
        }
    }
}

/// Stores and deletes at random, and compares.
///
/// # Panics
/// They differ.
pub async fn compare(checkpointer: &impl Checkpointer, outside: &impl Outside, seed: u64) {
    let (mut dice, mut now) = (Dice(seed), 1_000_000_000);
    for nth in 0..150 {
        now += [1, 5_000, 4_000_000, 20_000_000, 300_000_000][dice.below(5) as usize];
        let thread = format!("thread {}", dice.below(8));
        match dice.below(10) {
            // As a writer whose clock is behind.
            0 => outside.store(&thread, "", &id(now - dice.below(400_000_000), nth)).await,
            1 => outside.store(&thread, "child:1", &id(now, nth)).await,
            2 => outside.delete_newest(&thread).await,
            3 if dice.below(4) == 0 => checkpointer.delete_thread(&thread).await.expect("deleted"),
            4 if dice.below(4) == 0 => {
                // Nothing is copied over a thread that is there.
                drop(
                    checkpointer
                        .copy_thread(&thread, &format!("thread {}", 8 + dice.below(3)))
                        .await,
                );
            }
            _ => outside.store(&thread, "", &id(now, nth)).await,
        }
        if nth % 10 == 9 {
            assert_eq!(
                listed(checkpointer).await,
                outside.heads().await,
                "seed {seed}, after {nth}"
            );
        }
    }
}

/// Numbers that are the same in each run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
