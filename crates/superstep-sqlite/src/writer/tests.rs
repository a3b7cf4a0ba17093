use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;

use rusqlite::Connection;
use superstep_checkpoint::Error;
use tokio::sync::oneshot;

use super::{BEHIND_MAX, Survives, Writer, apart};
use crate::worker::{Done, Fault, Job, Purpose, Request, Written};

type Work = Box<dyn Fn(&Connection) -> Result<(), Error> + Send>;
type Answer = oneshot::Receiver<Done<(), Work>>;

fn database() -> Connection {
    let db = Connection::open_in_memory().expect("a database");
    db.execute_batch("CREATE TABLE notes (n INTEGER PRIMARY KEY)").expect("a table");
    db
}

fn nowhere() -> Written {
    Written { log: None, file: None, awake: Arc::default(), fault: Fault::default() }
}

fn note(db: &Connection, n: i64) -> Result<(), Error> {
    db.execute("INSERT INTO notes VALUES (?1)", [n]).map(drop).map_err(Error::codec)
}

fn notes(db: &Connection) -> Vec<i64> {
    let mut statement = db.prepare("SELECT n FROM notes ORDER BY n").expect("a statement");
    let rows = statement.query_map([], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("numbers")
}

fn request(
    work: impl Fn(&Connection) -> Result<(), Error> + Send + 'static,
) -> (Box<dyn Job>, Answer) {
    let (request, answer) =
        Request::new(Purpose::Change(Survives::Machine), Box::new(work) as Work);
    (Box::new(request), answer)
}

/// Has all of these done in one batch; says which succeeded.
fn serve(db: &Connection, requests: Vec<(Box<dyn Job>, Answer)>) -> Vec<bool> {
    let (sender, jobs) = channel();
    let (waiting, answers): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
    waiting.into_iter().for_each(|job| sender.send(job).expect("a way to the thread"));
    drop(sender);
    Writer::new(db, nowhere()).serve(&jobs);
    let result = |mut answer: Answer| answer.try_recv().expect("an answer").result.is_ok();
    answers.into_iter().map(result).collect()
}

fn refuse(db: &Connection, after: Option<i64>) -> Result<(), Error> {
    after.map_or(Ok(()), |n| note(db, n))?;
    Err(Error::invalid("refused"))
}

#[test]
fn what_fails_takes_nothing_from_the_others() {
    for changes in [None, Some(2)] {
        let db = database();
        let requests = vec![
            request(|db| note(db, 1)),
            request(move |db| refuse(db, changes)),
            request(|db| note(db, 3)),
        ];
        assert_eq!(serve(&db, requests), [true, false, true], "{changes:?}");
        assert_eq!(notes(&db), [1, 3], "{changes:?}");
    }
}

#[test]
fn who_looks_does_not_see_what_is_not_committed() {
    let db = database();
    let look = |db: &Connection| match notes(db)[..] {
        [] => Ok(()),
        _ => Err(Error::invalid("somebody else's")),
    };
    let (look, seen) = Request::new(Purpose::Look, Box::new(look) as Work);
    let requests = vec![request(|db| note(db, 1)), (Box::new(look), seen)];
    assert_eq!(serve(&db, requests), [true, true]);
    assert_eq!(notes(&db), [1]);
}

#[test]
fn what_fails_alone_leaves_nothing() {
    let db = database();
    assert_eq!(serve(&db, vec![request(|db| refuse(db, Some(1)))]), [false]);
    assert_eq!(serve(&db, vec![request(|db| refuse(db, None))]), [false]);
    assert!(notes(&db).is_empty());
}

/// As a full disk does, which takes the work of everybody back who is in the transaction.
#[test]
fn a_transaction_that_is_lost_is_lost_for_those_in_it_only() {
    let db = database();
    let lose = |db: &Connection| {
        db.execute_batch("ROLLBACK").map_err(Error::codec)?;
        Err(Error::invalid("the disk is full"))
    };
    let requests = vec![request(|db| note(db, 1)), request(lose), request(|db| note(db, 3))];
    assert_eq!(serve(&db, requests), [false, false, true]);
    assert_eq!(notes(&db), [3]);
}

/// SQLite does not count what changes tables, so it could not be told that there is something to take back.
#[test]
fn tables_that_are_made_apart_go_with_a_failure() {
    let db = database();
    let make = |db: &Connection| {
        let half = || {
            db.execute_batch("CREATE TABLE half (n)").map_err(Error::codec)?;
            Err(Error::invalid("refused"))
        };
        apart(db, half, Result::is_ok)?
    };
    assert_eq!(serve(&db, vec![request(|db| note(db, 1)), request(make)]), [true, false]);
    assert_eq!(notes(&db), [1]);
    assert!(db.prepare("SELECT * FROM half").is_err(), "there is no such table");
}

/// How far SQLite brings the next commit: 1 for `NORMAL`, 2 for `FULL`.
fn reach(db: &Connection) -> i64 {
    db.query_row("PRAGMA synchronous", [], |row| row.get(0)).expect("a number")
}

/// Commits requests, each of which is refused unless the commit gets as far as is expected.
fn commit(writer: &mut Writer<'_>, all: &[Survives], expected: i64) {
    let (jobs, answers): (Vec<_>, Vec<_>) = all
        .iter()
        .map(|lasting| {
            let (request, answer) =
                Request::new(Purpose::Change(*lasting), move |db: &Connection| match reach(db) {
                    found if found == expected => Ok(()),
                    found => Err(Error::invalid(format_args!("it gets to {found}"))),
                });
            (Box::new(request) as Box<dyn Job>, answer)
        })
        .unzip();
    writer.commit_together(jobs);
    for mut answer in answers {
        answer.try_recv().expect("an answer").result.expect("as far as expected");
    }
}

/// A file that stands for SQLite's log.
struct Log(PathBuf);

impl Log {
    fn new(name: &str) -> Self {
        let file = format!("superstep-writer-{}-{name}", std::process::id());
        let file = std::env::temp_dir().join(file);
        std::fs::write(&file, "").expect("a file");
        Self(file)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

#[test]
fn a_commit_gets_to_the_disk_if_anything_in_it_has_to() {
    let (db, log) = (database(), Log::new("any"));
    let mut writer = Writer::new(&db, Written { file: Some(log.0.clone()), ..nowhere() });
    commit(&mut writer, &[Survives::Process, Survives::Process], 1);
    assert!(writer.behind.is_some());
    commit(&mut writer, &[Survives::Process, Survives::Machine], 2);
    assert!(writer.behind.is_none(), "what was in the log before went along");
    commit(&mut writer, &[Survives::Process], 1);
}

#[test]
fn how_far_commits_get_is_left_alone_where_it_is_not_ours_to_change() {
    let db = database();
    let mut writer = Writer::new(&db, nowhere());
    let as_it_was = reach(&db);
    commit(&mut writer, &[Survives::Process], as_it_was);
    commit(&mut writer, &[Survives::Machine], as_it_was);
}

#[test]
fn what_is_not_on_the_disk_gets_there_soon() {
    let (db, log) = (database(), Log::new("soon"));
    let mut writer = Writer::new(&db, Written { file: Some(log.0.clone()), ..nowhere() });
    commit(&mut writer, &[Survives::Process], 1);
    writer.catch_up();
    assert!(writer.behind.is_none());
    writer.behind = Instant::now().checked_sub(BEHIND_MAX);
    commit(&mut writer, &[Survives::Process], 2);
    assert!(writer.behind.is_none());
}

/// No caller waits for the error, so the next one must get it.
#[test]
fn what_could_not_be_brought_to_the_disk_is_told_and_tried_again() {
    let (db, log) = (database(), Log::new("gone"));
    let mut writer = Writer::new(&db, Written { file: Some(log.0.clone()), ..nowhere() });
    commit(&mut writer, &[Survives::Process], 1);
    std::fs::remove_file(&log.0).expect("removed");
    writer.catch_up();
    assert!(writer.behind.is_some());
    let (job, mut answer) = request(|db| note(db, 1));
    writer.commit_together(vec![job]);
    let error = answer.try_recv().expect("an answer").result.expect_err("it is told").to_string();
    assert!(error.contains("disk") && error.contains("gone"), "{error}");
    assert!(notes(&db).is_empty());
    let (job, mut answer) = request(|db| note(db, 1));
    writer.commit_together(vec![job]);
    answer.try_recv().expect("an answer").result.expect("it goes on");
    assert!(writer.behind.is_none(), "a commit that gets to the disk takes it along");
}

/// A panic is the failure of one job, not the end of the thread.
#[test]
fn a_job_that_panics_fails_alone() {
    for changes in [None, Some(2)] {
        let db = database();
        let panics = move |db: &Connection| {
            changes.map_or(Ok(()), |n| note(db, n))?;
            panic!("a defect")
        };
        let requests = vec![request(|db| note(db, 1)), request(panics), request(|db| note(db, 3))];
        assert_eq!(serve(&db, requests), [true, false, true], "{changes:?}");
        assert_eq!(notes(&db), [1, 3], "{changes:?}");
        let (look, mut seen) = Request::new(Purpose::Look, Box::new(panics) as Work);
        crate::worker::read(&db, Box::new(look));
        let error = seen.try_recv().expect("an answer").result.expect_err("a panic");
        let cause = std::error::Error::source(&error).expect("a cause").to_string();
        assert_eq!(cause, "a defect");
        assert_eq!(notes(&db), [1, 3], "{changes:?}");
    }
}
