//! Futures that are dropped before they are done.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use superstep_checkpoint::Query;

use super::Subject;
use super::kit::*;

/// Begins something and goes away.
pub(crate) fn poll_once(future: impl Future) {
    let mut context = Context::from_waker(Waker::noop());
    drop(pin!(future).as_mut().poll(&mut context));
}

/// After each dropped call, the line is taken up from wherever it is; in the end, every checkpoint is there with the writes
/// that came with it, or neither.
pub(crate) async fn a_dropped_put_is_done_or_not_done(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    line.put().await?;
    for _ in 0..50 {
        let mut put = line.next();
        put.writes = vec![writes(1, &[("a", 1), ("b", 2)])];
        poll_once(subject.checkpointer.put(put));
        go_on(&mut line).await?;
    }
    let all = subject.checkpointer.list(of("t")).await?;
    for stored in &all {
        let Some(parent) = stored.parent else { continue };
        same(line.written(parent).await?.len(), 2, "writes beside the parent of a checkpoint")?;
    }
    ensure(all.len() > 50, "what was not dropped is stored")
}

/// Stores one more checkpoint on top of whatever the head is.
async fn go_on(line: &mut Line) -> Case {
    for _ in 0..100 {
        line.head = Some(line.read(None).await?.checkpoint.id);
        let mut put = line.next();
        put.writes = vec![writes(1, &[("a", 1), ("b", 2)])];
        match line.checkpointer.put(put).await {
            Ok(()) => return Ok(()),
            // What was dropped may still have been done in between.
            Err(superstep_checkpoint::Error::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    fail("the head moves on for ever")
}

pub(crate) async fn dropped_writes_are_done_or_not_done(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    for _ in 0..50 {
        let id = line.put().await?;
        let both = vec![writes(1, &[("a", 1), ("b", 2)]), writes(2, &[("c", 3)])];
        poll_once(subject.checkpointer.put_writes("t", "", id, both));
        line.add(id, vec![writes(3, &[("d", 4)])]).await?;
        let count = line.written(id).await?.len();
        ensure([1, 4].contains(&count), format_args!("{count} writes"))?;
    }
    Ok(())
}

pub(crate) async fn dropped_reads_leave_no_trace(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    for _ in 0..50 {
        let id = line.put().await?;
        poll_once(subject.checkpointer.get("t", "", None));
        poll_once(subject.checkpointer.list(Query::default()));
        poll_once(subject.checkpointer.delta_history("t", "", id, &["a".into()]));
        same(line.read(None).await?.checkpoint.id, id, "the head")?;
    }
    Ok(())
}
