//! Requests that come at the same time are committed together. What fails is taken back alone, and every other request is
//! stored.

mod world;

use superstep_checkpoint::{Checkpointer, Error, Query};
use superstep_sqlite::SqliteSaver;
use world::{Dir, Line, writes};

#[tokio::test(flavor = "multi_thread")]
async fn one_conflict_takes_nothing_from_the_others() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let mut taken = Line::new("taken");
    taken.put(&checkpointer).await;
    let tasks: Vec<_> = (0..300)
        .map(|nth| {
            let checkpointer = checkpointer.clone();
            tokio::spawn(async move {
                // Every third writer begins a thread that is there already.
                let bad = nth % 3 == 0;
                let thread = if bad { "taken".to_owned() } else { format!("t{nth}") };
                let put = Line::new(&thread).next();
                let id = put.checkpoint.id;
                match checkpointer.put(put).await {
                    Ok(()) if !bad => {
                        let beside = writes(&[("a", nth), ("b", nth)]);
                        checkpointer.put_writes(&thread, "", id, beside).await.expect("stored");
                    }
                    Err(Error::Conflict { thread, .. }) if bad => assert_eq!(thread, "taken"),
                    other => panic!("{nth}: {other:?}"),
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let all = checkpointer.list(Query::default()).await.expect("a list");
    assert_eq!(all.len(), 201);
    assert_eq!(all.iter().map(|stored| stored.writes.len()).sum::<usize>(), 400);
}

/// The checkpointer may go away while requests are under way; what was answered is there.
#[tokio::test]
async fn a_checkpointer_that_goes_away_finishes_what_it_was_given() {
    let dir = Dir::new();
    let checkpointer = SqliteSaver::open(dir.file()).await.expect("a file");
    let mut line = Line::new("t");
    let id = line.put(&checkpointer).await;
    drop(checkpointer);
    let again = SqliteSaver::open(dir.file()).await.expect("a file");
    let head = again.get("t", "", None).await.expect("read").expect("a head");
    assert_eq!(head.checkpoint.id, id);
}
