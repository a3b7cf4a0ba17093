//! Shows that `superstep serve` loses nothing it has acknowledged: it is killed at random moments under a mixed load, and
//! started again each time. Every acknowledged run reaches one end, streams that are taken up show every event once and in
//! order, answers, cancels and updates count once.
//!
//! `cargo xtask kills` runs the long form. `SUPERSTEP_TEST_KILLS` is how often the server is killed, `SUPERSTEP_TEST_SEED`
//! determines the load and the moments, and `SUPERSTEP_TEST_DB` is the database if it is not a new SQLite file.
#![cfg(unix)]

#[path = "kills/client.rs"]
mod client;
#[path = "kills/load.rs"]
mod load;
#[path = "world/served.rs"]
mod served;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use client::Place;
use load::{Load, Random};

/// How many clients there are. Each does one thing after the other.
const CLIENTS: u64 = 6;

/// What is left on PostgreSQL is taken up when the lease of the process that was killed has ended.
const LEASE: [&str; 2] = ["--lease", "2"];

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`, not a number")),
        Err(_) => default,
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let kills = setting("SUPERSTEP_TEST_KILLS", 10);
    let seed = setting("SUPERSTEP_TEST_SEED", 1);
    println!("SUPERSTEP_TEST_KILLS={kills} SUPERSTEP_TEST_SEED={seed}");
    let dir = served::directory("kills");
    let db = std::env::var("SUPERSTEP_TEST_DB")
        .unwrap_or_else(|_| format!("sqlite:{}", dir.join("server.db").display()));
    let place = Place::default();
    let load = Arc::new(Load::new(place.clone()));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|nth| {
            let (load, random) = (load.clone(), Random::new(seed * 1_000 + nth));
            std::thread::spawn(move || load.run(random))
        })
        .collect();
    let mut random = Random::new(seed);
    let (mut in_midrun, mut server) = (0, served::Served::on(&db, &LEASE));
    place.is_at(&server.url);
    for kill in 1..=kills {
        // The moment is after so many things that clients have seen: answers, and events of streams.
        let moment = load.seen() + 30 + random.below(300);
        load.wait_for(moment);
        if load.failed.load(SeqCst) {
            break;
        }
        let running = load.in_run.load(SeqCst);
        in_midrun += u64::from(running > 0);
        place.is_gone();
        drop(server);
        server = served::Served::on(&db, &LEASE);
        place.is_at(&server.url);
        if kill % 20 == 0 {
            println!("{kill} kills, {} things seen, {running} runs were streamed", load.seen());
        }
    }
    load.stop();
    for client in clients {
        client.join().expect("a client that found no fault");
    }
    let report = load.check_all();
    println!("{report}, {in_midrun} of {kills} kills in the middle of a run");
    assert!(in_midrun * 2 > kills, "most kills are in the middle of a run: {in_midrun} of {kills}");
    drop(server);
    std::fs::remove_dir_all(&dir).expect("it can be removed");
}
