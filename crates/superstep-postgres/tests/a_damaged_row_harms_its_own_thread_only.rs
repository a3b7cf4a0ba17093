//! Rows may have been changed by hand, or written by something else. A reader of such a row gets an error that
//! names the checkpoint; other threads can be read.

#![expect(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that is not as it should be"
)]

mod common;

use common::{Database, Line, blob};
use superstep_checkpoint::{Checkpointer, Keep, Prune, Query, TaskId, TaskWrites, ThreadQuery};

const DAMAGE: [(&str, &str); 11] = [
    ("checkpoints", "checkpoint = '[]'"),
    ("checkpoints", "checkpoint = '{}'"),
    ("checkpoints", "checkpoint = jsonb_set(checkpoint, '{v}', '5')"),
    ("checkpoints", "checkpoint = jsonb_set(checkpoint, '{v}', '\"four\"')"),
    ("checkpoints", "checkpoint = jsonb_set(checkpoint, '{channel_versions}', '7')"),
    ("checkpoints", "checkpoint = jsonb_set(checkpoint, '{channel_versions,n}', '{}')"),
    ("checkpoints", "checkpoint = jsonb_set(checkpoint, '{versions_seen}', '{\"node\": 1}')"),
    ("checkpoints", "metadata = '[]'"),
    ("checkpoints", "metadata = '{}'"),
    ("checkpoints", "parent_checkpoint_id = 'none'"),
    ("checkpoint_writes", "task_id = 'nobody'"),
];

#[tokio::test]
async fn a_damaged_row_harms_its_own_thread_only() {
    let database = Database::new().await;
    let checkpointer = database.checkpointer().await;
    let client = database.client().await;
    checkpointer.put(Line::new("sound").then(&[("n", blob([1]))])).await.unwrap();
    for (nth, (table, damage)) in DAMAGE.iter().enumerate() {
        let thread = format!("damaged {nth}");
        let mut line = Line::new(&thread);
        let put = line.then(&[("n", blob([1]))]);
        let id = put.checkpoint.id;
        checkpointer.put(put).await.unwrap();
        let writes = vec![TaskWrites::new(TaskId::NULL, "", vec![("n".into(), blob(1))])];
        checkpointer.put_writes(&thread, "", id, writes).await.unwrap();
        let sql = format!("UPDATE {table} SET {damage} WHERE thread_id = '{thread}'");
        client.batch_execute(&sql).await.unwrap();

        let error = checkpointer.get(&thread, "", None).await.expect_err(damage).to_string();
        assert!(error.contains(&thread) && error.contains(&id.to_string()), "{damage}: {error}");
        let query = Query { thread: Some(thread.clone().into()), ..Query::default() };
        assert!(checkpointer.list(query).await.is_err(), "{damage}");
        let error = checkpointer.list(Query::default()).await.expect_err(damage).to_string();
        assert!(error.contains(&thread) && error.contains(&id.to_string()), "{damage}: {error}");
        // What is there can be asked for one by one.
        let named = checkpointer.inventory().await.unwrap().checkpoints;
        assert!(named.iter().any(|key| key.id == id.to_string()), "{damage}");
        let mut sound = Vec::new();
        for key in &named {
            let one = Query {
                thread: Some(key.thread.clone()),
                ns: Some(key.ns.clone()),
                id: key.id.parse().ok(),
                ..Query::default()
            };
            sound.extend(checkpointer.list(one).await.unwrap_or_default());
        }
        assert_eq!(sound.len(), named.len() - 1, "{damage}");

        assert!(checkpointer.get("sound", "", None).await.unwrap().is_some());
        // A thread that cannot be read can still be seen and deleted.
        let page = checkpointer.threads(ThreadQuery::new(100)).await.unwrap();
        assert!(page.threads.iter().any(|info| *info.thread == *thread), "{damage}");
        let all = Prune { threads: None, keep: Keep::Latest };
        let _ = checkpointer.prune(all).await;
        checkpointer.delete_thread(&thread).await.unwrap();
        assert!(checkpointer.get(&thread, "", None).await.unwrap().is_none());
    }
    assert_eq!(checkpointer.list(Query::default()).await.unwrap().len(), 1);
}
