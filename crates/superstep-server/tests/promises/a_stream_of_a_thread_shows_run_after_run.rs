//! Shows that the stream of a thread goes on from run to run, that a reader who comes back sees what it missed of resumable
//! runs once, also after a restart, and that it may ask for starts and ends only.

use serde_json::{Value as Json, json};

use crate::live::{Event, Live};
use crate::world::{Dir, World};

fn is_done((_, _, data): &Event) -> bool {
    data["status"] == "run_done"
}

fn counter(resumable: bool) -> Json {
    json!({
        "assistant_id": "counter", "input": {}, "stream_mode": ["updates"], "stream_resumable": resumable,
    })
}

async fn open(world: &World, thread: &str, query: &str, last: Option<&str>) -> Live {
    let headers: Vec<_> = last.map(|last| ("last-event-id", last)).into_iter().collect();
    let path = format!("/threads/{thread}/stream{query}");
    Live::open(world, "GET", &path, &headers, &Json::Null).await
}

#[tokio::test]
async fn a_reader_that_comes_back_sees_each_event_once() {
    let dir = Dir::new();
    let file = dir.file("server.db");
    let world = World::on(&file).await;
    let thread = world.thread().await;
    let mut live = open(&world, &thread, "", None).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        world.run(&thread, counter(true)).await;
        seen.extend(live.until(is_done).await);
    }
    assert_eq!(seen.len(), 2 * 5, "a start, three updates and an end for each run");
    drop((live, world));

    let world = World::on(&file).await;
    for at in [0, 2, 4, 6] {
        let mut live = open(&world, &thread, "", Some(&seen[at].0)).await;
        for event in &seen[at + 1..] {
            assert_eq!(live.next().await.as_ref(), Some(event), "after event {at}");
        }
        world.run(&thread, counter(false)).await;
        assert_eq!(live.until(is_done).await.len(), 5, "and then what is new");
    }
}

#[tokio::test]
async fn starts_and_ends_can_be_had_alone_and_what_is_unknown_is_refused() {
    let world = World::new().await;
    let thread = world.thread().await;
    let mut sdk = open(&world, &thread, "?stream_mode=lifecycle", None).await;
    let mut server = open(&world, &thread, "?stream_modes=lifecycle", None).await;
    world.run(&thread, counter(false)).await;
    for live in [&mut sdk, &mut server] {
        let events = live.until(is_done).await;
        assert!(events.iter().all(|(_, event, _)| event == "metadata"), "{events:?}");
        assert_eq!(events.len(), 2);
    }
    let path = format!("/threads/{thread}/stream");
    assert_eq!(world.get(&format!("{path}?stream_mode=values")).await.status, 422);
    assert_eq!(world.send("GET", &path, &[("last-event-id", "x")], "").await.status, 422);
    let missing = format!("/threads/{}/stream", uuid::Uuid::new_v4());
    assert_eq!(world.get(&missing).await.status, 404);
}
