use serde_json::Map;

use super::{Changes, ThreadRows, admit};
use crate::store::{Admission, Admitted, DueThread, Woken};
use crate::time::Micros;

/// Wakes a thread that was seen to be due, or leaves it.
pub(in crate::store) fn wake(
    mut rows: ThreadRows,
    seen: &DueThread,
    (run, worker): (String, &str),
    (pending, pending_max): (u64, usize),
    now: Micros,
) -> (Woken, Changes) {
    let Some(thread) = &mut rows.thread else { return (Woken::Elsewhere, Changes::default()) };
    if !rows.open.is_empty() {
        // The run that the thread has does what is due, and tells when the next is.
        return (Woken::Elsewhere, Changes::default());
    }
    let Some(wake) = thread.wake.take_if(|wake| wake.due == seen.due) else {
        return (Woken::Elsewhere, Changes::default());
    };
    let admission = Admission {
        run: wake.run(&thread.thread_id, run, worker, now),
        new_thread: None,
        thread_metadata: Map::new(),
        thread_config: thread.config.clone(),
        pending_max,
    };
    let (admitted, changes) = admit(rows, admission, pending, now);
    let changes =
        if matches!(admitted, Admitted::Stored { .. }) { changes } else { Changes::default() };
    (Woken::Admitted(admitted), changes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOW, rows, run, shown};
    use super::*;
    use crate::store::RunStatus::{self, Pending};
    use crate::store::Wake;

    fn asleep(open: &[(&str, RunStatus)]) -> ThreadRows {
        let mut rows = rows(open);
        let after = Box::new(run("before", RunStatus::Success));
        if let Some(thread) = &mut rows.thread {
            thread.wake = Some(Wake { due: Micros(7), after });
        }
        rows
    }

    #[test]
    fn a_thread_is_woken_once_and_only_at_the_time_that_was_seen() {
        let seen = |due| DueThread { thread_id: "t".to_owned(), due: Micros(due) };
        for (rows, due, room, expected) in [
            (asleep(&[]), 7, (0, 1), "new:pending =busy"),
            (asleep(&[]), 6, (0, 1), ""),
            (asleep(&[("r", Pending)]), 7, (1, 9), ""),
            (rows(&[]), 7, (0, 1), ""),
            (asleep(&[]), 7, (1, 1), ""),
        ] {
            let (_, changes) = wake(rows, &seen(due), ("new".to_owned(), "w"), room, NOW);
            assert_eq!(shown(&changes), expected, "due {due}, room {room:?}");
            let admitted = changes.put_runs.iter().all(|run| {
                run.epoch == 0 && !run.followed && run.admitted_by.as_deref() == Some("w")
            });
            assert!(admitted, "it is a run of its own");
            let thread = changes.put_thread.iter().all(|thread| thread.wake.is_none());
            assert!(thread, "it is not due any more");
        }
    }
}
