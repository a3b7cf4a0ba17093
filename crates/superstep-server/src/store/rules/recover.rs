use serde_json::json;

use super::{Changes, Edit, ThreadRows};
use crate::store::records::ThreadEnd;
use crate::store::{Run, RunStatus, ThreadStatus};
use crate::time::Micros;

/// Takes back runs whose process is dead, and ends those that were tried too often. Returns how many there were.
pub(in crate::store) fn recover(
    rows: ThreadRows,
    is_dead: impl Fn(&Run) -> bool,
    attempts_max: u32,
    now: Micros,
) -> (usize, Changes) {
    let is_left = |run: &&Run| run.status == RunStatus::Running && is_dead(run);
    let left: Vec<Run> = rows.open.iter().filter(is_left).cloned().collect();
    let count = left.len();
    let mut edit = Edit::new(rows, now);
    for mut run in left {
        if run.attempt < attempts_max {
            run.status = RunStatus::Pending;
            edit.put_run(run);
            continue;
        }
        let message =
            format!("the run was begun {} times, and its process died each time", run.attempt);
        let error = json!({ "error": "WorkerDied", "message": message });
        run.status = RunStatus::Error;
        run.result = Some(json!({ "__error__": error }));
        edit.put_run(run);
        let interrupts = edit.rows.thread.as_ref().map(|thread| thread.interrupts.clone());
        let interrupts = interrupts.unwrap_or_default();
        let status = ThreadStatus::Error;
        let end = ThreadEnd { status, values: None, interrupts, error, due: None };
        edit.settle(Some(end), None);
    }
    (count, edit.changes)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOW, rows, shown};
    use super::*;
    use crate::store::RunStatus::{Pending, Running};

    #[test]
    fn what_a_dead_process_left_runs_again_until_it_was_tried_too_often() {
        for (open, attempts_max, expected) in [
            (&[("r", Running)][..], 3, "r:pending"),
            (&[("r", Running)], 1, "r:error =error"),
            (&[("r", Running), ("next", Pending)], 1, "r:error =busy"),
            (&[("r", Pending)], 3, ""),
        ] {
            let (count, changes) = recover(rows(open), |_| true, attempts_max, NOW);
            assert_eq!(shown(&changes), expected, "{open:?}");
            assert_eq!(count, usize::from(!expected.is_empty()));
            let (count, changes) = recover(rows(open), |_| false, attempts_max, NOW);
            assert_eq!((count, shown(&changes).as_str()), (0, ""), "its process lives");
        }
    }
}
