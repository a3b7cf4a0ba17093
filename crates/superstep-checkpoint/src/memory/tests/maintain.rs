use super::*;
use crate::{Interrupt, InterruptId, Keep, ThreadPage};

fn answers(values: &[&str]) -> Blob {
    Blob::encode(values).expect("a blob")
}

fn answer(values: &[&str], expected: Option<Blob>) -> Vec<TaskWrites> {
    let writes = vec![("__resume__".into(), answers(values))];
    vec![TaskWrites::new(task(1), "p", writes).expecting("__resume__", expected)]
}

#[tokio::test]
async fn of_two_answers_given_at_once_one_is_kept() {
    let checkpointer = MemorySaver::new();
    let id = Writer::new(&checkpointer, THREAD, "").put().await;
    checkpointer.put_writes(THREAD, "", id, answer(&["yes"], None)).await.expect("stored");
    let mut late = answer(&["no"], None);
    late.insert(0, writes(2, "p", &[("a", 1)]).remove(0));
    let error = checkpointer.put_writes(THREAD, "", id, late).await.expect_err("overtaken");
    let Error::Overtaken { channel, checkpoint, .. } = &error else { panic!("{error}") };
    assert_eq!((channel.as_str(), *checkpoint), ("__resume__", id));
    assert_eq!(written(&checkpointer, id).await, [r#"p 1 -4 __resume__=["yes"]"#]);
    let more = answer(&["yes", "no"], Some(answers(&["yes"])));
    checkpointer.put_writes(THREAD, "", id, more).await.expect("stored");
    assert_eq!(written(&checkpointer, id).await, [r#"p 1 -4 __resume__=["yes","no"]"#]);
}

#[tokio::test]
async fn a_checkpoint_does_not_come_with_an_answer_that_was_overtaken() {
    let checkpointer = MemorySaver::new();
    let mut writer = Writer::new(&checkpointer, THREAD, "");
    let id = writer.put().await;
    checkpointer.put_writes(THREAD, "", id, answer(&["yes"], None)).await.expect("stored");
    let mut late = writer.next();
    late.writes = answer(&["no"], None);
    let error = checkpointer.put(late).await.expect_err("overtaken");
    assert!(matches!(error, Error::Overtaken { .. }), "{error}");
    assert_eq!(checkpointer.list(Query::default()).await.expect("a list").len(), 1);
}

#[tokio::test]
async fn only_reserved_slots_can_be_compared() {
    let checkpointer = MemorySaver::new();
    let id = Writer::new(&checkpointer, THREAD, "").put().await;
    let odd = vec![TaskWrites::new(task(1), "p", Vec::new()).expecting("notes", None)];
    let error = checkpointer.put_writes(THREAD, "", id, odd).await.expect_err("refused");
    assert!(error.to_string().contains("`notes`"), "{error}");
}

#[tokio::test]
async fn pruning_keeps_what_delta_channels_are_rebuilt_from() {
    let checkpointer = MemorySaver::new();
    let mut writer = Writer::new(&checkpointer, THREAD, "");
    let mut ids = Vec::new();
    for step in 0..6 {
        let mut put = writer.next();
        if step == 2 {
            put.checkpoint.channel_values.insert_mut("log".into(), blob("whole"));
        }
        if step > 2 {
            put.metadata.delta_counters.insert("log".into(), (1, 1));
        }
        ids.push(writer.store(put).await);
    }
    let before =
        checkpointer.delta_history(THREAD, "", ids[5], &["log".into()]).await.expect("read");
    let prune = Prune { threads: None, keep: Keep::Latest };
    assert_eq!(checkpointer.prune(prune).await.expect("pruned"), 2);
    let after =
        checkpointer.delta_history(THREAD, "", ids[5], &["log".into()]).await.expect("read");
    assert_eq!(after, before);
    let seed = checkpointer.get(THREAD, "", Some(ids[2])).await.expect("read").expect("the seed");
    assert_eq!(seed.parent, None, "its parent is gone");
}

#[tokio::test]
async fn threads_are_listed_by_their_last_change_with_their_questions() {
    let checkpointer = MemorySaver::new();
    let (mut a, mut b) = (Writer::new(&checkpointer, "a", ""), Writer::new(&checkpointer, "b", ""));
    a.put().await;
    b.put().await;
    let head = a.put().await;
    let question = Interrupt { id: InterruptId::new("q"), value: 1.into(), response_schema: None };
    let asked = Blob::from_value(&Interrupt::list_to(&[question])).expect("a blob");
    let asked = vec![TaskWrites::new(task(1), "p", vec![("__interrupt__".into(), asked)])];
    checkpointer.put_writes("a", "", head, asked).await.expect("stored");

    let show = |page: &ThreadPage| -> Vec<_> {
        page.threads.iter().map(|info| (info.thread.to_string(), info.pending.len())).collect()
    };
    let first = checkpointer.threads(ThreadQuery::new(1)).await.expect("a page");
    assert_eq!(show(&first), [("a".to_owned(), 1)]);
    let next = ThreadQuery::new(1).after(first.next.expect("more"));
    let second = checkpointer.threads(next).await.expect("a page");
    assert_eq!(show(&second), [("b".to_owned(), 0)]);
    assert_eq!(second.next, None);

    checkpointer.put_writes("a", "", head, writes(1, "p", &[("out", 1)])).await.expect("stored");
    let done = checkpointer.threads(ThreadQuery::new(9)).await.expect("a page");
    assert_eq!(show(&done), [("a".to_owned(), 0), ("b".to_owned(), 0)]);
}
