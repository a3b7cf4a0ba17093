use super::answer::{answer, note};
use super::{Changes, Edit, ThreadRows, WasCancelled};
use crate::store::{Admission, Admitted, Cancel, Multitask, ThreadStatus};
use crate::time::Micros;

/// Stores a run, or refuses it. `pending` is how many runs wait on all threads.
pub(in crate::store) fn admit(
    rows: ThreadRows,
    admission: Admission,
    pending: u64,
    now: Micros,
) -> (Admitted, Changes) {
    let Admission { mut run, new_thread, thread_metadata, thread_config, pending_max } = admission;
    if usize::try_from(pending).map_or(true, |pending| pending >= pending_max) {
        return (Admitted::Full, Changes::default());
    }
    let mut edit = Edit::new(rows, now);
    let Some(mut thread) = edit.rows.thread.take().or(new_thread) else {
        return (Admitted::NoThread, Changes::default());
    };
    let action = match run.multitask {
        Multitask::Reject if !edit.rows.open.is_empty() => {
            return (Admitted::Busy, Changes::default());
        }
        Multitask::Reject | Multitask::Enqueue => None,
        Multitask::Interrupt => Some(Cancel::Interrupt),
        Multitask::Rollback => Some(Cancel::Rollback),
    };
    let given = match answer(&thread, &edit.rows.open, &run, now) {
        Ok(given) => given,
        Err(question) => return (Admitted::Answered(question), Changes::default()),
    };
    let (mut stop, mut dropped) = (Vec::new(), Vec::new());
    if let Some(action) = action {
        for open in edit.rows.open.clone() {
            let id = open.run_id.clone();
            match edit.cancel(open, action) {
                WasCancelled::Running => stop.push((id, action)),
                WasCancelled::Pending => dropped.push(id),
            }
        }
    }
    run.adopt(&thread);
    thread.metadata.extend(thread_metadata);
    thread.config = thread_config;
    thread.status = ThreadStatus::Busy;
    thread.updated_at = now;
    note(&mut thread, &run, &given);
    edit.changes.answers = given;
    edit.changes.put_thread = Some(thread);
    edit.changes.put_runs.push(run.clone());
    (Admitted::Stored { run: Box::new(run), stop, dropped }, edit.changes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::super::tests::{NOW, rows, run, shown};
    use super::*;
    use crate::store::RunStatus::{Pending, Running};
    use crate::store::Thread;

    fn asked(multitask: Multitask) -> Admission {
        let mut run = run("new", Pending);
        run.multitask = multitask;
        Admission {
            run,
            new_thread: None,
            thread_metadata: Map::new(),
            thread_config: json!({}),
            pending_max: 2,
        }
    }

    #[test]
    fn a_second_run_waits_is_refused_or_takes_the_place_of_others() {
        for (strategy, expected) in [
            (Multitask::Enqueue, "new:pending =busy"),
            (Multitask::Reject, ""),
            (Multitask::Interrupt, "r:running!interrupt p:interrupted new:pending =busy"),
            (Multitask::Rollback, "-p r:running!rollback new:pending =busy"),
        ] {
            let there = rows(&[("r", Running), ("p", Pending)]);
            let (admitted, changes) = admit(there, asked(strategy), 1, NOW);
            assert_eq!(shown(&changes), expected, "{strategy:?}");
            assert_eq!(matches!(admitted, Admitted::Busy), strategy == Multitask::Reject);
            if let Admitted::Stored { stop, dropped, .. } = admitted
                && strategy != Multitask::Enqueue
            {
                assert_eq!((stop[0].0.as_str(), dropped), ("r", vec!["p".to_owned()]));
            }
        }
    }

    #[test]
    fn what_is_refused_changes_nothing() {
        let (full, changes) = admit(rows(&[]), asked(Multitask::Enqueue), 2, NOW);
        assert!(matches!(full, Admitted::Full) && shown(&changes).is_empty());
        let (missing, changes) = admit(ThreadRows::default(), asked(Multitask::Enqueue), 0, NOW);
        assert!(matches!(missing, Admitted::NoThread) && shown(&changes).is_empty());
    }

    #[test]
    fn a_thread_is_made_if_asked_for_and_its_metadata_goes_to_the_run() {
        let metadata: Map<_, _> = [("of".to_owned(), json!("thread"))].into_iter().collect();
        let mut asked = asked(Multitask::Reject);
        asked.new_thread = Some(Thread::new("t".to_owned(), metadata, Micros(0)));
        asked.thread_metadata = [("graph_id".to_owned(), json!("g"))].into_iter().collect();
        let (admitted, changes) = admit(ThreadRows::default(), asked, 0, NOW);
        assert_eq!(shown(&changes), "new:pending =busy");
        let Admitted::Stored { run, .. } = admitted else { panic!("it is admitted") };
        assert_eq!(json!(run.metadata), json!({ "of": "thread" }));
        let thread = changes.put_thread.expect("a thread");
        assert_eq!(json!(thread.metadata), json!({ "of": "thread", "graph_id": "g" }));
    }
}
