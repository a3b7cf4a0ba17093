use super::{Changes, Edit, ThreadRows};
use crate::store::{Ended, RunStatus, Webhook};
use crate::time::Micros;

/// Ends an attempt of a run, or does nothing if the run was claimed again since. Returns whether it was not.
pub(in crate::store) fn finish(
    rows: ThreadRows,
    id: &str,
    epoch: u64,
    end: Ended,
    now: Micros,
) -> (bool, Changes) {
    let is_current = |run: &&crate::store::Run| {
        run.run_id == id && run.status == RunStatus::Running && run.epoch == epoch
    };
    let Some(mut run) = rows.open.iter().find(is_current).cloned() else {
        return (false, Changes::default());
    };
    let mut edit = Edit::new(rows, now);
    if let (Ended::Deleted { result, .. }, true) = (&end, run.followed) {
        edit.changes.kept_end = Some((run.run_id.clone(), result.clone()));
    }
    match end {
        Ended::PutBack => {
            run.status = RunStatus::Pending;
            run.attempt = run.attempt.saturating_sub(1);
            edit.put_run(run);
        }
        Ended::Over { status, result, thread } => {
            run.status = status;
            run.result = Some(result);
            edit.put_run(run.clone());
            if let (Some(webhook), Some(values)) =
                (edit.changes.webhooks.last_mut(), &thread.values)
            {
                webhook.values = values.clone();
            }
            edit.settle(Some(*thread), Some(&run));
        }
        Ended::Deleted { thread_too: true, status, result, .. } => {
            edit.changes.delete_thread = Some(run.thread_id.clone());
            edit.changes.results.extend(run.origin.once.clone().map(|key| (key, result.clone())));
            if let Some(status) = status {
                let since = std::mem::replace(&mut run.updated_at, now);
                run.status = status;
                run.result = Some(result);
                edit.changes.webhooks.extend(Webhook::of(&run, since, now));
            }
        }
        Ended::Deleted { thread_too: false, thread, result, .. } => {
            edit.changes.results.extend(run.origin.once.clone().map(|key| (key, result)));
            edit.remove_run(id);
            edit.settle(thread.map(|thread| *thread), Some(&run));
        }
    }
    (true, edit.changes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::super::tests::{NOW, rows, shown};
    use super::*;
    use crate::store::RunStatus::{Pending, Running};
    use crate::store::ThreadStatus;
    use crate::store::records::ThreadEnd;

    fn thread_end() -> Box<ThreadEnd> {
        let values = Some(json!({ "x": 1 }));
        Box::new(ThreadEnd {
            status: ThreadStatus::Interrupted,
            values,
            interrupts: Map::new(),
            error: json!(null),
            due: None,
        })
    }

    fn over() -> Ended {
        Ended::Over { status: RunStatus::Success, result: json!({}), thread: thread_end() }
    }

    #[test]
    fn a_run_ends_once_and_only_by_its_current_attempt() {
        for (open, epoch, expected) in [
            (&[("r", Running)][..], 1, "r:success =interrupted"),
            (&[("r", Running), ("next", Pending)], 1, "r:success =busy"),
            (&[("r", Running)], 2, ""),
            (&[("r", Pending)], 1, ""),
            (&[("other", Running)], 1, ""),
        ] {
            let (current, changes) = finish(rows(open), "r", epoch, over(), NOW);
            assert_eq!(shown(&changes), expected, "{open:?}, epoch {epoch}");
            assert_eq!(current, !expected.is_empty());
        }
    }

    #[test]
    fn a_run_can_be_put_back_or_deleted_instead() {
        let deleted = |thread_too| Ended::Deleted {
            status: Some(RunStatus::Success),
            result: json!({ "x": 1 }),
            thread_too,
            thread: Some(thread_end()),
        };
        for (end, expected) in [
            (Ended::PutBack, "r:pending"),
            (deleted(false), "-r =interrupted"),
            (deleted(true), "--t"),
        ] {
            let (current, changes) = finish(rows(&[("r", Running)]), "r", 1, end, NOW);
            assert_eq!((shown(&changes).as_str(), current), (expected, true));
            if expected == "r:pending" {
                assert_eq!(changes.put_runs[0].attempt, 0, "it is no attempt");
            }
        }
    }

    #[test]
    fn the_end_of_a_deleted_run_is_kept_for_readers_elsewhere() {
        for followed in [false, true] {
            let mut open = rows(&[("r", Running)]);
            open.open[0].followed = followed;
            let (result, thread) = (json!({ "x": 1 }), None);
            let deleted = Ended::Deleted { status: None, result, thread_too: true, thread };
            let (_, changes) = finish(open, "r", 1, deleted, NOW);
            assert_eq!(changes.kept_end.is_some(), followed);
        }
    }

    #[test]
    fn the_end_of_a_run_is_to_be_told_if_its_request_says_so() {
        let mut asked = rows(&[("r", Running)]);
        asked.open[0].kwargs.insert("webhook".to_owned(), "https://example.com".into());
        let deleted = |status, thread_too| Ended::Deleted {
            status,
            result: json!({ "x": 2 }),
            thread_too,
            thread: None,
        };
        for (end, told) in [
            (over(), Some(json!({ "x": 1 }))),
            (deleted(Some(RunStatus::Success), true), Some(json!({ "x": 2 }))),
            (deleted(None, false), None),
            (Ended::PutBack, None),
        ] {
            let (_, changes) = finish(asked.clone(), "r", 1, end.clone(), NOW);
            let values = changes.webhooks.first().map(|webhook| webhook.values.clone());
            assert_eq!(values, told, "{end:?}");
            let (_, changes) = finish(rows(&[("r", Running)]), "r", 1, end, NOW);
            assert!(changes.webhooks.is_empty(), "nobody asked");
        }
    }
}
