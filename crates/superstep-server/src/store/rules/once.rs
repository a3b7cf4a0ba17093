use serde_json::Value as Json;

use crate::store::idempotency::IDEMPOTENCY_KEPT;
use crate::store::{Admitted, Asked, Kept, Made, Once, StoreError};
use crate::time::Micros;

/// When something was kept that is too old by now.
pub(in crate::store) fn oldest(now: Micros) -> Micros {
    #[expect(clippy::disallowed_methods, reason = "a constant: a day")]
    let kept = i64::try_from(IDEMPOTENCY_KEPT.as_micros()).unwrap_or(i64::MAX);
    Micros(now.0.saturating_sub(kept))
}

/// What a request gets without anything being made: what is kept for its key, or a refusal. Nothing if it is to be carried
/// out.
pub(in crate::store) fn known(kept: Option<Kept>, asked: &Asked, now: Micros) -> Option<Once> {
    let kept = kept.filter(|kept| kept.at >= oldest(now))?;
    Some(if kept.fingerprint == asked.fingerprint { Once::Known(kept) } else { Once::Other })
}

/// What is kept of a request that was carried out; nothing of one that was refused.
pub(in crate::store) fn keep(
    asked: &Asked,
    made: &Made,
    now: Micros,
) -> Result<Option<Kept>, StoreError> {
    let rows = match made {
        Made::Thread(Ok(thread)) => serde_json::to_value(thread),
        Made::Assistant(Ok(assistant)) => serde_json::to_value(assistant),
        Made::Cron(cron) => serde_json::to_value(cron),
        Made::Runs(admitted) => {
            let run = |admitted: &Admitted| match admitted {
                Admitted::Stored { run, .. } => Some(serde_json::to_value(run)),
                _ => None,
            };
            match admitted.iter().map(run).collect::<Option<Vec<_>>>() {
                Some(runs) => runs.into_iter().collect::<Result<_, _>>().map(Json::Array),
                None => return Ok(None),
            }
        }
        Made::Thread(Err(_)) | Made::Assistant(Err(_)) => return Ok(None),
    };
    let made =
        rows.map_err(|error| StoreError::Failed(format!("a row cannot be written: {error}")))?;
    Ok(Some(Kept { fingerprint: asked.fingerprint.clone(), at: now, made, result: None }))
}

/// Whether so many runs can be admitted, if so many wait.
pub(in crate::store) fn has_room(runs: usize, pending: u64, pending_max: usize) -> bool {
    usize::try_from(pending)
        .is_ok_and(|pending| pending.checked_add(runs).is_some_and(|all| all <= pending_max))
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::store::Thread;

    #[test]
    fn a_key_stands_for_one_request_for_a_while() {
        let asked =
            |fingerprint: &str| Asked { key: "k".to_owned(), fingerprint: fingerprint.to_owned() };
        let now = Micros(IDEMPOTENCY_KEPT.as_micros() as i64 + 10);
        let kept = |at| Kept {
            fingerprint: "a".to_owned(),
            at: Micros(at),
            made: json!({}),
            result: None,
        };
        assert!(matches!(known(Some(kept(10)), &asked("a"), now), Some(Once::Known(_))));
        assert!(matches!(known(Some(kept(10)), &asked("b"), now), Some(Once::Other)));
        assert!(known(Some(kept(9)), &asked("b"), now).is_none(), "it is too old");
        assert!(known(None, &asked("a"), now).is_none());
    }

    #[test]
    fn refusals_are_not_kept() {
        let asked = Asked { key: "k".to_owned(), fingerprint: "f".to_owned() };
        let thread = || Thread::new("t".to_owned(), Map::new(), Micros(1));
        let keeps = |made| keep(&asked, &made, Micros(2)).expect("rows").is_some();
        assert!(keeps(Made::Thread(Ok(thread()))));
        assert!(!keeps(Made::Thread(Err(Box::new(thread())))));
        assert!(!keeps(Made::Runs(vec![Admitted::Full])));
        assert!(has_room(2, 8, 10) && !has_room(3, 8, 10));
    }
}
