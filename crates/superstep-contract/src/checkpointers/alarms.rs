//! Alarms say which threads to look at, and when.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use superstep_checkpoint::{Alarm, AlarmPage, Error};

use super::Subject;
use super::kit::{Case, Line, ensure, same};
use super::maintain::of_run;
use super::status::{due, of_node, question};

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_900_000_000 + seconds)
}

/// A thread that waits, with an alarm.
async fn alarm(line: &mut Line, seconds: u64) -> Case {
    let id = due(line, &["n1"]).await?;
    let asked = of_node(1, "__interrupt__", question("q1"));
    let set = vec![asked, Alarm::set(Some(at(seconds)))?];
    Ok(line.checkpointer.put_writes(&line.thread, "", id, set).await?)
}

fn shown(page: &AlarmPage) -> Vec<(&str, SystemTime)> {
    page.alarms.iter().map(|alarm| (&*alarm.thread, alarm.at)).collect()
}

pub(crate) async fn alarms_go_off_in_the_order_of_time(subject: Subject) -> Case {
    let Subject { checkpointer, other } = subject;
    for (thread, seconds) in [("b", 20), ("a", 30), ("c", 10), ("d", 40)] {
        alarm(&mut Line::new(&checkpointer, thread, ""), seconds).await?;
    }
    let page = other.alarms(at(30), 10).await?;
    same(shown(&page), [("c", at(10)), ("b", at(20)), ("a", at(30))].to_vec(), "until the third")?;
    same(page.next, Some(at(40)), "the next one")?;
    let page = checkpointer.alarms(at(50), 2).await?;
    same(shown(&page), [("c", at(10)), ("b", at(20))].to_vec(), "the first two")?;
    same(page.next, Some(at(30)), "the next one after two")?;
    let page = checkpointer.alarms(at(9), 10).await?;
    same((page.alarms.len(), page.next), (0, Some(at(10))), "before the first")
}

pub(crate) async fn an_alarm_is_moved_by_one_caller_only(subject: Subject) -> Case {
    let Subject { checkpointer, other } = subject;
    alarm(&mut Line::new(&checkpointer, "t", ""), 10).await?;
    let read = async |from: &superstep_checkpoint::AnyCheckpointer| {
        Ok::<_, Error>(from.get("t", "", None).await?.and_then(|head| head.alarm()))
    };
    let (Some(mine), Some(theirs)) = (read(&checkpointer).await?, read(&other).await?) else {
        return super::kit::fail("the alarm is not beside its checkpoint");
    };
    let id = mine.checkpoint;
    checkpointer.put_writes("t", "", id, vec![mine.moved(Some(at(20)))?]).await?;
    let late = other.put_writes("t", "", id, vec![theirs.moved(None)?]).await;
    ensure(matches!(late, Err(Error::Overtaken { .. })), format_args!("moved twice: {late:?}"))?;
    same(checkpointer.alarms(at(30), 10).await?.alarms.len(), 1, "one alarm, which was moved")?;
    same(checkpointer.alarms(at(15), 10).await?.next, Some(at(20)), "where it was moved to")
}

pub(crate) async fn an_alarm_that_is_off_is_not_found(subject: Subject) -> Case {
    let checkpointer = subject.checkpointer;
    alarm(&mut Line::new(&checkpointer, "t", ""), 10).await?;
    let head = checkpointer.get("t", "", None).await?;
    if let Some(alarm) = head.and_then(|head| head.alarm()) {
        checkpointer.put_writes("t", "", alarm.checkpoint, vec![alarm.moved(None)?]).await?;
    }
    same(checkpointer.alarms(at(30), 10).await?, AlarmPage::default(), "an alarm that is off")
}

pub(crate) async fn alarms_go_with_their_threads(subject: Subject) -> Case {
    let checkpointer = subject.checkpointer;
    alarm(&mut Line::new(&checkpointer, "t", ""), 10).await?;
    checkpointer.copy_thread("t", "copy").await?;
    let mut found = checkpointer.alarms(at(30), 10).await?;
    found.alarms.sort_by(|a, b| a.thread.cmp(&b.thread));
    same(shown(&found), [("copy", at(10)), ("t", at(10))].to_vec(), "a copy has its own")?;
    checkpointer.delete_thread("t").await?;
    same(
        shown(&checkpointer.alarms(at(30), 10).await?),
        [("copy", at(10))].to_vec(),
        "a deleted one",
    )
}

pub(crate) async fn a_head_that_comes_back_has_its_alarm(subject: Subject) -> Case {
    let checkpointer = subject.checkpointer;
    let mut line = Line::new(&checkpointer, "t", "");
    alarm(&mut line, 10).await?;
    let asleep = line.read(None).await?;
    of_run(&mut line, "later").await?;
    // Somebody has found that it is not the alarm of the head any more.
    if let Some(alarm) = asleep.alarm() {
        checkpointer.put_writes("t", "", alarm.checkpoint, vec![alarm.moved(None)?]).await?;
    }
    same(checkpointer.alarms(at(30), 10).await?.alarms.len(), 0, "it is off")?;
    checkpointer.delete_for_runs(&["later".to_owned()]).await?;
    let found = checkpointer.alarms(at(30), 10).await?;
    same(found.alarms.len(), 1, "the thread has to be looked at again")
}
