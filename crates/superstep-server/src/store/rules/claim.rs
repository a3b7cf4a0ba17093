use crate::store::{Claimed, Run, RunStatus};
use crate::time::Micros;

/// Begins an attempt of a run that is due and whose thread has no running run. Changes only the run.
pub(in crate::store) fn claim(mut run: Run, more: bool, now: Micros) -> Claimed {
    let again = std::mem::replace(&mut run.begun, true);
    run.status = RunStatus::Running;
    run.attempt = run.attempt.saturating_add(1);
    run.updated_at = now;
    Claimed { run, again, more }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOW, run};
    use super::*;

    #[test]
    fn each_claim_begins_an_attempt_and_only_the_first_is_the_first() {
        let first = claim(run("r", RunStatus::Pending), false, NOW);
        assert_eq!(
            (first.run.attempt, first.run.status, first.again),
            (1, RunStatus::Running, false)
        );
        let second = claim(Run { status: RunStatus::Pending, ..first.run }, false, NOW);
        assert_eq!((second.run.attempt, second.again), (2, true));
    }
}
