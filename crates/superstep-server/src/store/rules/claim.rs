use crate::store::{Claimed, Run, RunStatus};
use crate::time::Micros;

/// Begins an attempt of a run that is due and whose thread has no running run. Changes only the run.
pub(in crate::store) fn claim(mut run: Run, worker: &str, more: bool, now: Micros) -> Claimed {
    let again = std::mem::replace(&mut run.begun, true);
    run.status = RunStatus::Running;
    run.attempt = run.attempt.saturating_add(1);
    run.epoch = run.epoch.saturating_add(1);
    run.worker = Some(worker.to_owned());
    run.followed |= run.admitted_by.as_deref() != Some(worker);
    run.updated_at = now;
    Claimed { run, again, more }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOW, run};
    use super::*;

    #[test]
    fn each_claim_begins_an_attempt_and_only_the_first_is_the_first() {
        let first = claim(run("r", RunStatus::Pending), "w", false, NOW);
        assert_eq!(
            (first.run.attempt, first.run.status, first.again),
            (1, RunStatus::Running, false)
        );
        let second = claim(Run { status: RunStatus::Pending, ..first.run }, "v", false, NOW);
        assert_eq!((second.run.attempt, second.again), (2, true));
        assert_eq!((second.run.epoch, second.run.worker.as_deref()), (2, Some("v")));
    }

    #[test]
    fn a_run_that_was_admitted_elsewhere_may_have_readers_there() {
        for (by, followed) in [("here", false), ("elsewhere", true)] {
            let admitted = Run { admitted_by: Some(by.to_owned()), ..run("r", RunStatus::Pending) };
            assert_eq!(claim(admitted, "here", false, NOW).run.followed, followed);
        }
    }
}
