use std::sync::mpsc::channel;

use rusqlite::Connection;
use superstep_checkpoint::Error;
use tokio::sync::oneshot;

use super::{Job, Request, apart, serve_writes};

type Answer = oneshot::Receiver<Result<(), Error>>;

fn database() -> Connection {
    let db = Connection::open_in_memory().expect("a database");
    db.execute_batch("CREATE TABLE notes (n INTEGER PRIMARY KEY)").expect("a table");
    db
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
    let (reply, answer) = oneshot::channel();
    (Box::new(Request { work, result: None, reply }), answer)
}

/// Has all of these done in one batch; says which succeeded.
fn serve(db: &Connection, requests: Vec<(Box<dyn Job>, Answer)>) -> Vec<bool> {
    let (sender, jobs) = channel();
    let (waiting, answers): (Vec<_>, Vec<_>) = requests.into_iter().unzip();
    waiting.into_iter().for_each(|job| sender.send(job).expect("a way to the thread"));
    drop(sender);
    serve_writes(db, &jobs);
    let result = |mut answer: Answer| answer.try_recv().expect("an answer").is_ok();
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
