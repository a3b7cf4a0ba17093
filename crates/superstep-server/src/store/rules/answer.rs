use serde_json::{Map, Value as Json};

use crate::store::{Answered, Multitask, Run, Thread};
use crate::time::Micros;

/// How many answers a thread remembers, to say that a further one comes too late.
const REMEMBERED_MAX: usize = 100;

/// The length of the id of a question.
const ID_LEN: usize = 32;

/// What a run gives as answers: one for each id, or one for the only question.
enum Given<'a> {
    ById(&'a Map<String, Json>),
    One(&'a Json),
}

fn given(run: &Run) -> Option<Given<'_>> {
    let resume = run.asked("command").get("resume").filter(|resume| !resume.is_null())?;
    let is_id = |key: &String| key.len() == ID_LEN && key.bytes().all(|b| b.is_ascii_hexdigit());
    Some(match resume {
        Json::Object(by_id) if !by_id.is_empty() && by_id.keys().all(is_id) => Given::ById(by_id),
        one => Given::One(one),
    })
}

/// The open questions of a thread: their ids and what they ask. A task that sleeps asks nobody.
fn open(thread: &Thread) -> impl Iterator<Item = (&str, &Json)> {
    let asked = thread.interrupts.values().filter_map(Json::as_array).flatten();
    let asked = asked.filter(|asked| asked["sleep"] != true);
    asked.filter_map(|asked| Some((asked["id"].as_str()?, &asked["value"])))
}

/// Which questions of its thread a run answers. The error is the question that was answered before, if it is known which.
///
/// A question is open until a run with its answer has taken it, and an answer that waits in the queue counts. A run that takes
/// the place of others (`interrupt`, `rollback`) may give another answer than they did. An id that was never asked answers
/// nothing, and an answer without an id where nothing is open is none: the engine ignores both.
pub(super) fn answer(
    thread: &Thread,
    others: &[Run],
    run: &Run,
    now: Micros,
) -> Result<Vec<Answered>, Option<String>> {
    let Some(given) = given(run) else { return Ok(Vec::new()) };
    let replaces = matches!(run.multitask, Multitask::Interrupt | Multitask::Rollback);
    let others = if replaces { &[] } else { others };
    let is_taken = |id: &str| {
        others.iter().any(|other| match self::given(other) {
            Some(Given::ById(ids)) => ids.contains_key(id),
            Some(Given::One(_)) => true,
            None => false,
        })
    };
    let is_answered = |id: &str| thread.answered.iter().any(|known| known == id);
    let record = |id: &str, question: &Json, answer: &Json| Answered {
        thread_id: run.thread_id.clone(),
        interrupt_id: id.to_owned(),
        run_id: run.run_id.clone(),
        question: question.clone(),
        answer: answer.clone(),
        by: run.origin.by.clone(),
        comment: run.asked("command")["comment"].as_str().map(str::to_owned),
        at: now,
    };
    match given {
        Given::ById(by_id) => {
            let (mut records, mut late) = (Vec::new(), None);
            for (id, answer) in by_id {
                if is_taken(id) {
                    return Err(Some(id.clone()));
                }
                match open(thread).find(|(known, _)| known == id) {
                    Some((_, question)) => records.push(record(id, question, answer)),
                    None if is_answered(id) => late = Some(id.clone()),
                    None => {}
                }
            }
            match late {
                // A client that gives its answers once more with the next one: only that one counts.
                Some(late) if records.is_empty() => Err(Some(late)),
                _ => Ok(records),
            }
        }
        Given::One(answer) => {
            let mut asked = open(thread).filter(|(id, _)| !is_taken(id));
            match (asked.next(), asked.next()) {
                (Some((id, question)), None) => Ok(vec![record(id, question, answer)]),
                // The engine refuses it: it does not say which question it answers.
                (Some(_), Some(_)) => Ok(Vec::new()),
                (None, _) => match open(thread).next() {
                    Some((taken, _)) => Err(Some(taken.to_owned())),
                    None if others.iter().any(|other| self::given(other).is_some()) => Err(None),
                    None => Ok(Vec::new()),
                },
            }
        }
    }
}

/// Remembers on the thread what a run answers. New input begins anew.
pub(super) fn note(thread: &mut Thread, run: &Run, given: &[Answered]) {
    if self::given(run).is_none() && !run.asked("input").is_null() {
        thread.answered.clear();
    }
    for answered in given {
        thread.answered.retain(|id| *id != answered.interrupt_id);
        thread.answered.push(answered.interrupt_id.clone());
    }
    let late = thread.answered.len().saturating_sub(REMEMBERED_MAX);
    thread.answered.drain(..late);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{NOW, run};
    use super::*;
    use crate::store::RunStatus::Pending;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn thread(open: &[&str], answered: &[&str]) -> Thread {
        let mut thread = Thread::new("t".to_owned(), Map::new(), Micros(0));
        for id in open {
            thread.interrupts.insert(format!("task {id}"), json!([{ "id": id, "value": "ok?" }]));
        }
        thread.answered = answered.iter().map(|id| (*id).to_owned()).collect();
        thread
    }

    fn resuming(id: &str, resume: Json, multitask: Multitask) -> Run {
        let mut run = run(id, Pending);
        run.multitask = multitask;
        run.kwargs.insert("command".to_owned(), json!({ "resume": resume, "comment": "fine" }));
        run.origin.by = Some("ada".to_owned());
        run
    }

    #[test]
    fn a_question_takes_one_answer() {
        let both = json!({ A: 1, B: 2 });
        let one = || Some(json!(true));
        let of = |id: &str| Some(json!({ id: true }));
        for (open, answered, waiting, resume, expected) in [
            (&[A][..], &[][..], None, json!(true), Ok(vec![A])),
            (&[A], &[], None, json!({ A: true }), Ok(vec![A])),
            (&[A, B], &[], None, both.clone(), Ok(vec![A, B])),
            (&[A, B], &[], None, json!(true), Ok(vec![])),
            // An answer waits in the queue.
            (&[A], &[], one(), json!(true), Err(Some(A))),
            (&[A, B], &[], of(A), json!({ B: true }), Ok(vec![B])),
            (&[A, B], &[], of(A), json!(true), Ok(vec![B])),
            (&[A, B], &[], of(A), both.clone(), Err(Some(A))),
            // It was answered before.
            (&[], &[A], None, json!({ A: true }), Err(Some(A))),
            (&[], &[A], None, json!(true), Ok(vec![])),
            (&[B], &[A], None, json!({ A: true }), Err(Some(A))),
            (&[B], &[A], None, both.clone(), Ok(vec![B])),
            (&[A], &[A], None, json!({ A: true }), Ok(vec![A])),
            // Nobody asked.
            (&[], &[], None, json!(true), Ok(vec![])),
            (&[A], &[], None, json!({ B: true }), Ok(vec![])),
            (&[A], &[], None, json!({ "field": true }), Ok(vec![A])),
        ] {
            let others: Vec<_> = waiting
                .clone()
                .map(|resume| resuming("r", resume, Multitask::Enqueue))
                .into_iter()
                .collect();
            let thread = thread(open, answered);
            let asked = resuming("new", resume.clone(), Multitask::Enqueue);
            let found = answer(&thread, &others, &asked, NOW);
            let ids = |found: &Vec<Answered>| -> Vec<String> {
                found.iter().map(|one| one.interrupt_id.clone()).collect()
            };
            let found_ids = found.as_ref().map(ids).map_err(Clone::clone);
            let expected = expected
                .map(|ids: Vec<&str>| ids.into_iter().map(str::to_owned).collect::<Vec<_>>())
                .map_err(|id: Option<&str>| id.map(str::to_owned));
            assert_eq!(found_ids, expected, "{open:?} {resume}");
            if let Ok([first, ..]) = found.as_deref() {
                assert_eq!(
                    (first.by.as_deref(), first.comment.as_deref()),
                    (Some("ada"), Some("fine"))
                );
            }
        }
        let waiting = [resuming("r", json!(true), Multitask::Enqueue)];
        let instead = resuming("new", json!(false), Multitask::Interrupt);
        let found =
            answer(&thread(&[A], &[]), &waiting, &instead, NOW).expect("it takes its place");
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn new_input_begins_anew() {
        let mut thread = thread(&[], &[A]);
        note(&mut thread, &run("r", Pending), &[]);
        assert_eq!(thread.answered, [A], "a run without input goes on");
        let mut asked = run("r", Pending);
        asked.kwargs.insert("input".to_owned(), json!({}));
        note(&mut thread, &asked, &[]);
        assert!(thread.answered.is_empty());
    }
}
