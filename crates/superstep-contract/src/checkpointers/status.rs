//! The status in the list of threads, and filters by it.

use std::sync::Arc;

use superstep_checkpoint::{
    AnyCheckpointer, Blob, CheckpointId, Ext, Interrupt, InterruptId, Packet, Put, TaskId,
    TaskWrites, ThreadQuery, ThreadStatus, Value, Version,
};

use super::Subject;
use super::kit::*;

/// Sets a channel of a checkpoint that is to be stored.
fn set(put: &mut Put, channel: &str, value: Blob) {
    let version = put.checkpoint.version("step").cloned().unwrap_or_else(|| Version::after(0, 0));
    let name: Arc<str> = channel.into();
    put.checkpoint.channel_values.insert_mut(name.clone(), value);
    put.checkpoint.channel_versions.insert_mut(name.clone(), version);
    put.changed.push(name);
}

/// Stores a checkpoint at which these nodes are to run.
pub(crate) async fn due(line: &mut Line, nodes: &[&str]) -> Result<CheckpointId, Fault> {
    let mut put = line.next();
    for node in nodes {
        set(&mut put, &format!("branch:to:{node}"), Blob::null());
    }
    line.store(put).await
}

fn by_path(number: u8, path: &str, channel: &str, value: Blob) -> TaskWrites {
    TaskWrites::new(task(number), path, vec![(channel.into(), value)])
}

pub(crate) fn of_node(number: u8, channel: &str, value: Blob) -> TaskWrites {
    by_path(number, &format!("~__pregel_pull, n{number}"), channel, value)
}

pub(crate) fn question(id: &str) -> Blob {
    let (id, value) = (InterruptId::new(id), Value::from("sure?"));
    blob(Interrupt::list_to(&[Interrupt { id, value, response_schema: None }]))
}

fn claim(answered: &str) -> TaskWrites {
    let answers = [(answered.to_owned(), Value::from(true))].into_iter().collect();
    let claim = [("answers".to_owned(), Value::Map(answers))].into_iter().collect();
    let writes = vec![("__resume__".into(), blob(Value::Map(claim)))];
    TaskWrites::new(TaskId::CLAIM, "", writes)
}

/// The content of a thread, and its expected status.
type Told = (&'static str, &'static [&'static str], Vec<TaskWrites>, ThreadStatus, usize);

fn threads() -> Vec<Told> {
    let (asks, fails, ends) = (
        |number: u8| of_node(number, "__interrupt__", question(&format!("q{number}"))),
        |number: u8| of_node(number, "__error__", blob("no")),
        |number: u8| of_node(number, "a", blob(1)),
    );
    let handled = of_node(1, "__error_source_node__", blob("n1"));
    let handler = "~__pregel_pull, n1, node_error_handler, 0000000000";
    let called = "~__pregel_push, ~__pregel_pull, n1, 0000000000, 0000000001";
    let mut call = by_path(2, called, "__interrupt__", question("q1"));
    call.writes.push(("__resume__".into(), blob(Value::List(Vec::new()))));
    use ThreadStatus::{Done, Failed, Ready, Waiting};
    vec![
        ("nothing is due", &[], vec![], Done, 0),
        ("a node is due", &["n1"], vec![], Ready, 0),
        ("a node asks", &["n1"], vec![asks(1)], Waiting, 1),
        ("both nodes ask", &["n1", "n2"], vec![asks(1), asks(2)], Waiting, 2),
        ("one asks, one ended", &["n1", "n2"], vec![asks(1), ends(2)], Waiting, 1),
        ("one asks, one was killed", &["n1", "n2"], vec![asks(1)], Ready, 1),
        ("one failed", &["n1"], vec![fails(1)], Failed, 0),
        ("one failed, one was stopped", &["n1", "n2"], vec![fails(2)], Failed, 0),
        ("one failed, one asks", &["n1", "n2"], vec![fails(2), asks(1)], Failed, 1),
        ("failed, then ended", &["n1", "n2"], vec![fails(1), ends(1)], Ready, 0),
        ("answered", &["n1"], vec![asks(1), claim("q1")], Ready, 0),
        ("one of two answered", &["n1", "n2"], vec![asks(1), asks(2), claim("q1")], Ready, 1),
        ("all ended", &["n1"], vec![ends(1)], Ready, 0),
        ("a call of a node asks", &["n1"], vec![asks(1), call], Waiting, 1),
        ("a handler is to run", &["n1"], vec![fails(1), handled.clone()], Ready, 0),
        (
            "a handler asks",
            &["n1"],
            vec![fails(1), handled, by_path(3, handler, "__interrupt__", question("q3"))],
            Waiting,
            1,
        ),
    ]
}

/// Reads all pages of a list.
async fn pages(checkpointer: &AnyCheckpointer, query: ThreadQuery) -> Result<Vec<String>, Fault> {
    let (mut found, mut next) = (Vec::new(), query.clone());
    loop {
        let page = checkpointer.threads(next).await?;
        ensure(page.threads.len() <= query.limit, "a page is too long")?;
        ensure(page.next.is_none() || page.threads.len() == query.limit, "a page is too short")?;
        found.extend(page.threads.into_iter().map(|info| info.thread.to_string()));
        match page.next {
            Some(cursor) => next = query.clone().after(cursor),
            None => return Ok(found),
        }
    }
}

fn names(told: &[Told], fits: impl Fn(ThreadStatus, usize) -> bool) -> Vec<&'static str> {
    let fitting = told.iter().rev().filter(|(_, _, _, status, open)| fits(*status, *open));
    fitting.map(|(thread, ..)| *thread).collect()
}

pub(crate) async fn threads_tell_their_status(Subject { checkpointer, .. }: Subject) -> Case {
    let told = threads();
    let mut last = None;
    for (thread, nodes, writes, ..) in &told {
        let mut line = Line::new(&checkpointer, thread, "");
        line.head = last;
        let mut put = line.next();
        (put.parent, put.head) = (None, None);
        nodes.iter().for_each(|node| set(&mut put, &format!("branch:to:{node}"), Blob::null()));
        let id = line.store(put).await?;
        last = Some(id);
        if !writes.is_empty() {
            checkpointer.put_writes(thread, "", id, writes.clone()).await?;
        }
    }
    // The second time a checkpointer may have kept what it found.
    for _ in 0..2 {
        let page = checkpointer.threads(ThreadQuery::new(100)).await?;
        same(page.threads.len(), told.len(), "threads")?;
        for (info, (thread, _, _, status, open)) in page.threads.iter().zip(told.iter().rev()) {
            same(&*info.thread, *thread, "the order")?;
            let found = (info.status, info.pending.len(), info.damage.clone());
            same(found, (Some(*status), *open, None), thread)?;
        }
        for status in ThreadStatus::ALL {
            let wanted = names(&told, |found, _| found == status);
            same(
                pages(&checkpointer, ThreadQuery::new(2).status(status)).await?,
                wanted,
                "by status",
            )?;
        }
        for open in [true, false] {
            let wanted = names(&told, |_, count| (count > 0) == open);
            same(
                pages(&checkpointer, ThreadQuery::new(2).questions(open)).await?,
                wanted,
                "by questions",
            )?;
        }
        let both = ThreadQuery::new(2).status(ThreadStatus::Ready).status(ThreadStatus::Failed);
        let wanted = names(&told, |status, open| {
            open > 0 && [ThreadStatus::Ready, ThreadStatus::Failed].contains(&status)
        });
        same(pages(&checkpointer, both.questions(true)).await?, wanted, "by both")?;
    }
    Ok(())
}

pub(crate) async fn dispatches_and_joins_count_for_the_status(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "dispatches", "");
    let packet = |number: i64| {
        let packet = Packet { node: "n".into(), arg: Value::from(number), timeout: None };
        Value::from(Ext::Send(packet))
    };
    let mut put = line.next();
    set(&mut put, "__pregel_tasks", blob(Value::List(vec![packet(1), packet(2)])));
    let head = line.store(put).await?;
    let path = |nth: u8| format!("~__pregel_push, {nth:010}, {:010}", 0);
    let asked = by_path(1, &path(0), "__interrupt__", question("q"));
    checkpointer.put_writes("dispatches", "", head, vec![asked]).await?;
    status(&checkpointer, "dispatches", ThreadStatus::Ready).await?;
    checkpointer
        .put_writes("dispatches", "", head, vec![by_path(2, &path(1), "a", blob(1))])
        .await?;
    status(&checkpointer, "dispatches", ThreadStatus::Waiting).await?;

    let mut line = Line::new(&checkpointer, "join", "");
    for (members, wanted) in
        [(vec!["a"], ThreadStatus::Done), (vec!["a", "b"], ThreadStatus::Ready)]
    {
        let mut put = line.next();
        let members = members.into_iter().map(Value::from).collect();
        set(&mut put, "join:a+b:c", blob(Value::Set(members)));
        line.store(put).await?;
        status(&checkpointer, "join", wanted).await?;
    }
    Ok(())
}

/// The status of a thread, as a page without a filter tells it and as each filter does.
async fn status(checkpointer: &AnyCheckpointer, thread: &str, wanted: ThreadStatus) -> Case {
    for status in ThreadStatus::ALL {
        let found = pages(checkpointer, ThreadQuery::new(5).status(status)).await?;
        let is_found = found.iter().any(|found| found == thread);
        same(is_found, status == wanted, &format!("`{thread}` among the {status}"))?;
    }
    let page = checkpointer.threads(ThreadQuery::new(100)).await?;
    let info = page.threads.iter().find(|info| &*info.thread == thread);
    same(info.and_then(|info| info.status), Some(wanted), thread)
}

pub(crate) async fn the_status_follows_every_change(Subject { checkpointer, .. }: Subject) -> Case {
    use ThreadStatus::{Done, Failed, Ready, Waiting};
    let mut line = Line::new(&checkpointer, "t", "");
    line.put().await?;
    status(&checkpointer, "t", Done).await?;
    let head = due(&mut line, &["n1", "n2"]).await?;
    status(&checkpointer, "t", Ready).await?;
    let add = async |writes: TaskWrites| checkpointer.put_writes("t", "", head, vec![writes]).await;
    add(of_node(1, "__interrupt__", question("q1"))).await?;
    status(&checkpointer, "t", Ready).await?;
    add(of_node(2, "a", blob(1))).await?;
    status(&checkpointer, "t", Waiting).await?;
    add(claim("q1")).await?;
    status(&checkpointer, "t", Ready).await?;
    add(claim("another")).await?;
    status(&checkpointer, "t", Waiting).await?;
    add(of_node(1, "__error__", blob("no"))).await?;
    status(&checkpointer, "t", Failed).await?;
    let mut anew = of_node(1, "b", blob(1));
    anew.replaces = true;
    add(anew).await?;
    status(&checkpointer, "t", Ready).await?;
    // What is stored in other namespaces says nothing of the thread.
    let mut inner = Line::new(&checkpointer, "t", "n1:1");
    let inside = due(&mut inner, &["n1"]).await?;
    let failed = of_node(1, "__error__", blob("no"));
    checkpointer.put_writes("t", "n1:1", inside, vec![failed]).await?;
    status(&checkpointer, "t", Ready).await?;
    line.put().await?;
    status(&checkpointer, "t", Done).await?;
    checkpointer.copy_thread("t", "u").await?;
    status(&checkpointer, "u", Done).await?;
    checkpointer.delete_thread("t").await?;
    same(pages(&checkpointer, ThreadQuery::new(5).status(Done)).await?, ["u"], "threads")
}

/// A checkpoint with something attached to it.
async fn attach(line: &mut Line, attached: &[(&str, Value)]) -> Case {
    let mut put = line.next();
    for (key, value) in attached {
        put.metadata.extra.insert((*key).to_owned(), value.clone());
    }
    line.store(put).await.map(drop)
}

pub(crate) async fn threads_are_found_by_metadata(Subject { checkpointer, .. }: Subject) -> Case {
    let mut lines = Vec::new();
    for nth in 0..7_i64 {
        let mut line = Line::new(&checkpointer, &format!("t{nth}"), "");
        line.head = lines.last().and_then(|line: &Line| line.head);
        let mut put = line.next();
        (put.parent, put.head) = (None, None);
        let user = if nth % 2 == 0 { "ada" } else { "bob" };
        let extra = &mut put.metadata.extra;
        extra.insert("user".into(), user.into());
        extra.insert("turn".into(), nth.into());
        if nth > 4 {
            extra.insert("vip".into(), true.into());
        }
        line.store(put).await?;
        lines.push(line);
    }
    let every = ThreadQuery::new(2);
    for _ in 0..2 {
        let of = |key: &str, value: Value| pages(&checkpointer, every.clone().metadata(key, value));
        same(of("user", "ada".into()).await?, ["t6", "t4", "t2", "t0"], "by text")?;
        same(of("turn", 3.into()).await?, ["t3"], "by number")?;
        same(of("turn", "3".into()).await?, [""; 0], "by a number in a text")?;
        same(of("vip", true.into()).await?, ["t6", "t5"], "by truth")?;
        same(of("vip", Value::Null).await?, ["t4", "t3", "t2", "t1", "t0"], "by absence")?;
        same(of("user", "' OR 1 = 1".into()).await?, [""; 0], "by what nobody has")?;
        same(of("step", Value::from(-1)).await?.len(), 7, "by what is no tag")?;
        let both = every.clone().metadata("user", "ada").metadata("vip", true);
        same(pages(&checkpointer, both).await?, ["t6"], "by two")?;
        let done = every.clone().metadata("user", "bob").status(ThreadStatus::Done);
        same(pages(&checkpointer, done).await?, ["t5", "t3", "t1"], "by status, too")?;
        let failed = every.clone().metadata("user", "bob").status(ThreadStatus::Failed);
        same(pages(&checkpointer, failed).await?, [""; 0], "by another status")?;
    }
    // The head counts, and not what was before.
    for line in &mut lines {
        line.step = line.step.max(0);
    }
    attach(&mut lines[2], &[("user", "bob".into())]).await?;
    let bob = pages(&checkpointer, every.clone().metadata("user", "bob")).await?;
    ensure(bob.contains(&"t2".to_owned()), "the thread has another user")?;
    let ada = pages(&checkpointer, every.metadata("user", "ada")).await?;
    same(ada, ["t6", "t4", "t0"], "those that stay")
}
