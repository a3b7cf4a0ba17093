//! Shows that a list which grows turn by turn is stored whole often enough to be loaded in few pieces, however short it is, and
//! seldom enough to cost what was added. It would break if a thread were read message by message, or stored whole each time.

use superstep::checkpoint::{Checkpointer, Query};
use superstep::prelude::*;

#[derive(State, Clone, Default)]
struct Chat {
    #[channel(reduce = Append)]
    said: Vec<String>,
    #[channel(reduce = Heap)]
    heap: Vec<u64>,
}

/// Keeps everything, and does not tell how much that is.
#[derive(Debug)]
struct Heap;

impl Reducer<Vec<u64>> for Heap {
    type Update = u64;
    const APPENDS: bool = true;

    fn reduce(value: &mut Vec<u64>, update: u64) {
        value.push(update);
    }
}

/// Has a question answered so many times, and looks at what is stored after each.
async fn talk(checkpointer: &MemorySaver, turns: usize, mut after: impl AsyncFnMut(usize)) {
    let graph = StateGraph::<Chat>::new()
        .add_node("answer", || Chat::update().said(["answer".to_owned()]).heap(1_u64))
        .add_edge(START, "answer");
    let graph = graph.compile().expect("a graph").with_checkpointer(checkpointer.clone());
    for turn in 1..=turns {
        let run = graph.thread("t").invoke(Chat::update().said(["question".to_owned()]));
        let chat = run.await.expect("a run").done().expect("an end");
        assert_eq!((chat.said.len(), chat.heap.len()), (2 * turn, turn));
        after(turn).await;
    }
}

/// How many messages were in the list each time it was stored whole.
async fn wholes(checkpointer: &MemorySaver, channel: &str) -> Vec<usize> {
    let query = Query { thread: Some("t".into()), ..Query::default() };
    let stored = checkpointer.list(query).await.expect("a list");
    let values = stored.iter().rev().filter_map(|stored| stored.checkpoint.value(channel));
    // The list is inside the mark of a whole value, after a few bytes.
    let text = |blob: &superstep::checkpoint::Blob| {
        let bytes = String::from_utf8_lossy(blob.bytes()).into_owned();
        bytes.matches("question").count() + bytes.matches("answer").count()
    };
    values.map(text).collect()
}

#[tokio::test]
async fn turn_by_turn() {
    let checkpointer = MemorySaver::new();
    let mut walked = 0;
    talk(&checkpointer, 100, async |turn| {
        let head =
            checkpointer.get("t", "", None).await.expect("a look").expect("a head").checkpoint;
        if head.value("said").is_none() {
            let history = checkpointer.delta_history("t", "", head.id, &["said".into()]).await;
            let history = history.expect("a history");
            let pieces = history["said"].writes.len();
            assert!(pieces <= (2 * turn / 8).max(1), "{pieces} pieces after {turn} turns");
            walked += 1;
        }
    })
    .await;
    assert!(walked > 0, "it is not stored whole each time");
    let wholes = wholes(&checkpointer, "said").await;
    let all: usize = wholes.iter().sum();
    assert!(all <= 9 * 200, "{all} messages in {} whole values: {wholes:?}", wholes.len());
}

/// For all we know it is large.
#[tokio::test]
async fn what_does_not_tell_its_size_is_stored_whole_seldom() {
    let checkpointer = MemorySaver::new();
    talk(&checkpointer, 100, async |_| {}).await;
    assert_eq!(wholes(&checkpointer, "heap").await.len(), 0);
}
