use super::{Changes, Edit, ThreadRows, WasCancelled};
use crate::store::{Cancel, Cancelled, Run, RunStatus};
use crate::time::Micros;

/// Cancels runs of a thread.
pub(in crate::store) fn cancel(
    rows: ThreadRows,
    is_meant: impl Fn(&Run) -> bool,
    action: Cancel,
    now: Micros,
) -> (Cancelled, Changes) {
    let meant: Vec<Run> = rows.open.iter().filter(|run| is_meant(run)).cloned().collect();
    let mut edit = Edit::new(rows, now);
    let mut cancelled = Cancelled::default();
    for run in meant {
        let id = run.run_id.clone();
        match edit.cancel(run, action) {
            WasCancelled::Running => cancelled.running.push(id),
            WasCancelled::Pending => cancelled.pending.push(id),
        }
    }
    if !cancelled.pending.is_empty() {
        edit.settle(None, None);
    }
    (cancelled, edit.changes)
}

/// Deletes a run of a thread. One that runs is marked instead, and deleted when it has stopped.
pub(in crate::store) fn delete_run(rows: ThreadRows, run: &Run, now: Micros) -> Changes {
    let mut edit = Edit::new(rows, now);
    match run.status {
        RunStatus::Running => {
            edit.cancel(run.clone(), Cancel::Rollback);
        }
        RunStatus::Pending => {
            edit.remove_run(&run.run_id);
            edit.settle(None, None);
        }
        _ => edit.remove_run(&run.run_id),
    }
    edit.changes
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOW, rows, run, shown};
    use super::*;
    use crate::store::RunStatus::{Pending, Running, Success};

    #[test]
    fn a_run_that_waits_is_gone_and_one_that_runs_is_marked() {
        let both = &[("r", Running), ("p", Pending)][..];
        for (open, meant, action, expected) in [
            (both, &["p"][..], Cancel::Interrupt, "p:interrupted =busy"),
            (both, &["p"], Cancel::Rollback, "-p =busy"),
            (both, &["r"], Cancel::Rollback, "r:running!rollback"),
            (both, &["r", "p"], Cancel::Interrupt, "r:running!interrupt p:interrupted =busy"),
            (&[("p", Pending)], &["p"], Cancel::Interrupt, "p:interrupted =idle"),
            (both, &["other"], Cancel::Interrupt, ""),
        ] {
            let is_meant = |run: &Run| meant.contains(&run.run_id.as_str());
            let (cancelled, changes) = cancel(rows(open), is_meant, action, NOW);
            assert_eq!(shown(&changes), expected, "{meant:?}");
            let told = cancelled.running.len() + cancelled.pending.len();
            assert_eq!(told, changes.put_runs.len() + changes.remove_runs.len());
        }
    }

    #[test]
    fn a_run_is_deleted_when_it_does_not_run() {
        for (status, expected) in
            [(Running, "r:running!rollback"), (Pending, "-r =idle"), (Success, "-r")]
        {
            let open = if status == Success { rows(&[]) } else { rows(&[("r", status)]) };
            assert_eq!(shown(&delete_run(open, &run("r", status), NOW)), expected);
        }
    }
}
