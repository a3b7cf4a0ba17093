use superstep_checkpoint::{
    AnyCheckpointer, Blob, CheckpointId, Error, Interrupt, InterruptId, Keep, Prune, Query,
    StoredKey, TaskWrites, ThreadPage, ThreadQuery, Value,
};

use super::Subject;
use super::kit::*;

/// A thread with two namespaces, writes and metadata.
async fn furnished(checkpointer: &AnyCheckpointer, thread: &str) -> Case {
    for ns in ["", "child:1", "memory"] {
        let mut line = Line::new(checkpointer, thread, ns);
        for _ in 0..3 {
            let mut put = line.next();
            put.metadata.extra.insert("user".into(), "u".into());
            let id = line.store(put).await?;
            line.add(id, vec![writes(1, &[("a", 1)]), writes(2, &[("__error__", 2)])]).await?;
        }
    }
    Ok(())
}

/// Everything of a thread, as text.
async fn all(checkpointer: &AnyCheckpointer, thread: &str) -> Result<Vec<String>, Fault> {
    let listed = checkpointer.list(of(thread)).await?;
    Ok(listed
        .iter()
        .map(|stored| {
            let writes = shown(&stored.writes);
            let ns = &stored.ns;
            format!(
                "{ns} {:?} {:?} {:?} {writes:?}",
                stored.checkpoint, stored.parent, stored.metadata
            )
        })
        .collect())
}

pub(crate) async fn a_deleted_thread_is_gone_with_everything(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    furnished(&checkpointer, "t").await?;
    furnished(&checkpointer, "u").await?;
    let kept = all(&checkpointer, "u").await?;
    checkpointer.delete_thread("t").await?;
    for ns in ["", "child:1", "memory"] {
        ensure(
            checkpointer.get("t", ns, None).await?.is_none(),
            format_args!("`{ns}` is still there"),
        )?;
    }
    ensure(all(&checkpointer, "t").await?.is_empty(), "something is still listed")?;
    same(all(&checkpointer, "u").await?, kept, "the other thread")
}

pub(crate) async fn deleting_an_unknown_thread_is_no_error(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    Ok(checkpointer.delete_thread("t").await?)
}

pub(crate) async fn a_deleted_thread_can_begin_again(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let put = line.next();
    let id = line.store(put.clone()).await?;
    line.add(id, vec![writes(1, &[("a", 1)])]).await?;
    checkpointer.delete_thread("t").await?;
    checkpointer.put(put).await?;
    ensure(line.written(id).await?.is_empty(), "old writes are back")
}

pub(crate) async fn a_copy_has_everything_and_leaves_the_source(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    furnished(&checkpointer, "t").await?;
    let source = all(&checkpointer, "t").await?;
    checkpointer.copy_thread("t", "it's a copy").await?;
    same(&all(&checkpointer, "it's a copy").await?, &source, "the copy")?;
    same(&all(&checkpointer, "t").await?, &source, "the source")
}

pub(crate) async fn a_copy_goes_its_own_way(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    line.puts(2).await?;
    checkpointer.copy_thread("t", "u").await?;
    let mut copy = line.rival(&checkpointer);
    copy.thread = "u".into();
    let new = copy.put().await?;
    same(copy.read(None).await?.checkpoint.id, new, "the head of the copy")?;
    same(line.read(None).await?.checkpoint.id, line.head.unwrap_or(new), "that of the source")?;
    checkpointer.delete_thread("t").await?;
    same(ids(&checkpointer, of("u")).await?.len(), 3, "the copy when its source is gone")?;
    let fixed = copy.read(None).await?.checkpoint.value("fixed").cloned();
    same(fixed, Some(blob(vec![Value::from("unchanged")])), "a value it took over")
}

pub(crate) async fn a_copy_of_nothing_is_nothing(Subject { checkpointer, .. }: Subject) -> Case {
    checkpointer.copy_thread("t", "u").await?;
    ensure(checkpointer.get("u", "", None).await?.is_none(), "there is something")
}

pub(crate) async fn a_copy_to_a_thread_that_exists_is_refused(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    Line::new(&checkpointer, "t", "").put().await?;
    Line::new(&checkpointer, "u", "child:1").put().await?;
    let kept = all(&checkpointer, "u").await?;
    match checkpointer.copy_thread("t", "u").await {
        Err(Error::Invalid(_)) => same(all(&checkpointer, "u").await?, kept, "the target"),
        Err(error) => Err(error.into()),
        Ok(()) => fail("it was copied"),
    }
}

/// Stores a checkpoint of a run, with a write.
pub(crate) async fn of_run(line: &mut Line, run: &str) -> Result<CheckpointId, Fault> {
    let mut put = line.next();
    put.metadata.extra.insert("run_id".into(), run.into());
    let id = line.store(put).await?;
    line.add(id, vec![writes(1, &[("a", 1)])]).await?;
    Ok(id)
}

fn runs(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub(crate) async fn runs_are_deleted_with_their_writes(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let mut made = Vec::new();
    for run in ["one", "one", "two", "three", "three"] {
        made.push(of_run(&mut line, run).await?);
    }
    checkpointer.delete_for_runs(&runs(&["one", "three"])).await?;
    same(ids(&checkpointer, of("t")).await?, [made[2]], "what stays")?;
    let stored = line.read(None).await?;
    same((stored.parent, stored.writes.len()), (None, 1), "its parent and writes")?;
    let fixed = blob(vec![Value::from("unchanged")]);
    same(stored.checkpoint.value("fixed"), Some(&fixed), "a value stored with one that went")?;
    // Nothing of them is left: the same checkpoint stored again has no writes.
    let mut again = line.next();
    again.checkpoint.id = made[4];
    (again.parent, again.head) = (Some(made[2]), Some(made[2]));
    checkpointer.put(again).await?;
    ensure(line.written(made[4]).await?.is_empty(), "old writes are back")
}

pub(crate) async fn runs_that_later_ones_are_built_on_are_kept(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let first = of_run(&mut line, "one").await?;
    let mut put = line.next();
    put.metadata.extra.insert("run_id".into(), "two".into());
    put.metadata.delta_counters.insert("log".into(), (1, 1));
    line.store(put).await?;
    match checkpointer.delete_for_runs(&runs(&["one"])).await {
        Err(Error::Invalid(text)) => {
            ensure(
                text.contains(&first.to_string()),
                format_args!("`{text}` names no checkpoint"),
            )?;
        }
        Err(error) => return Err(error.into()),
        Ok(()) => return fail("it was deleted"),
    }
    same(ids(&checkpointer, of("t")).await?.len(), 2, "what stays")?;
    checkpointer.delete_for_runs(&runs(&["one", "two"])).await?;
    ensure(ids(&checkpointer, of("t")).await?.is_empty(), "something stays")
}

pub(crate) async fn runs_are_deleted_in_every_namespace(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    for (thread, ns) in [("t", ""), ("t", "child:1"), ("u", "")] {
        let mut line = Line::new(&checkpointer, thread, ns);
        of_run(&mut line, "one").await?;
        of_run(&mut line, "two").await?;
    }
    checkpointer.delete_for_runs(&runs(&["one"])).await?;
    let left = checkpointer.list(Query::default()).await?;
    same(left.len(), 3, "checkpoints")?;
    let two = |run: Option<&Value>| run.and_then(Value::as_str) == Some("two");
    ensure(
        left.iter().all(|stored| two(stored.metadata.extra.get("run_id"))),
        "another run is left",
    )
}

pub(crate) async fn unknown_runs_are_no_error(Subject { checkpointer, .. }: Subject) -> Case {
    Line::new(&checkpointer, "t", "").put().await?;
    checkpointer.delete_for_runs(&[]).await?;
    checkpointer.delete_for_runs(&runs(&["one", "' OR 1 = 1"])).await?;
    same(ids(&checkpointer, of("t")).await?.len(), 1, "checkpoints")
}

fn everywhere(keep: Keep) -> Prune {
    Prune { threads: None, keep }
}

pub(crate) async fn pruning_keeps_the_heads_and_their_writes(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut heads = Vec::new();
    for (thread, ns) in [("t", ""), ("t", "memory"), ("u", "")] {
        let mut line = Line::new(&checkpointer, thread, ns);
        let made = line.puts(4).await?;
        line.add(made[3], vec![writes(1, &[("__interrupt__", 1)])]).await?;
        line.add(made[1], vec![writes(1, &[("a", 1)])]).await?;
        heads.push((thread, ns, made[3]));
    }
    same(checkpointer.prune(everywhere(Keep::Latest)).await?, 9, "how many went")?;
    same(ids(&checkpointer, Query::default()).await?.len(), 3, "checkpoints")?;
    for (thread, ns, head) in heads {
        let stored = read(&checkpointer, thread, ns, None).await?;
        let found = (stored.checkpoint.id, stored.parent, stored.writes.len());
        same(found, (head, None, 1), "the head")?;
        let fixed = blob(vec![Value::from("unchanged")]);
        same(stored.checkpoint.value("fixed"), Some(&fixed), "a value stored with one that went")?;
    }
    same(checkpointer.prune(everywhere(Keep::Latest)).await?, 0, "how many went the second time")
}

pub(crate) async fn pruning_keeps_as_many_as_asked(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let made = line.puts(5).await?;
    checkpointer.prune(everywhere(Keep::Newest(2))).await?;
    same(ids(&checkpointer, of("t")).await?, [made[4], made[3]], "what stays")?;
    same(line.read(Some(made[4])).await?.parent, Some(made[3]), "a parent that stays")?;
    checkpointer.prune(everywhere(Keep::Newest(0))).await?;
    same(ids(&checkpointer, of("t")).await?, [made[4]], "the head stays whatever is asked")?;
    line.put().await.map(drop)
}

pub(crate) async fn pruning_keeps_what_is_newer(Subject { checkpointer, .. }: Subject) -> Case {
    let made = Line::new(&checkpointer, "t", "").puts(5).await?;
    let old = Line::new(&checkpointer, "u", "").puts(1).await?;
    checkpointer.prune(everywhere(Keep::Since(made[3]))).await?;
    same(ids(&checkpointer, of("t")).await?, [made[4], made[3]], "what stays")?;
    same(ids(&checkpointer, of("u")).await?, old, "heads")
}

pub(crate) async fn pruning_leaves_other_threads_alone(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    for thread in ["t", "u", "v"] {
        Line::new(&checkpointer, thread, "").puts(3).await?;
    }
    let prune = |threads: &[&str]| Prune { threads: Some(runs(threads)), keep: Keep::Latest };
    same(checkpointer.prune(prune(&[])).await?, 0, "how many went of no thread")?;
    same(checkpointer.prune(prune(&["x"])).await?, 0, "how many went of an unknown thread")?;
    same(checkpointer.prune(prune(&["t", "u"])).await?, 4, "how many went")?;
    same(ids(&checkpointer, of("v")).await?.len(), 3, "the one that was not named")
}

pub(crate) async fn pruning_keeps_what_deltas_are_rebuilt_from(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let mut made = Vec::new();
    for nth in 0..8 {
        let mut put = line.next();
        if nth == 3 {
            put.checkpoint.channel_values.insert_mut("log".into(), blob(vec![Value::from(0)]));
            let version = put.checkpoint.version("step").cloned();
            put.checkpoint.channel_versions.insert_mut(
                "log".into(),
                version.unwrap_or_else(|| superstep_checkpoint::Version::after(0, 0)),
            );
            put.changed.push("log".into());
        } else {
            put.metadata.delta_counters.insert("log".into(), (1, 1));
        }
        let id = line.store(put).await?;
        line.add(id, vec![writes(1, &[("log", nth)])]).await?;
        made.push(id);
    }
    let head = made[7];
    let before = checkpointer.delta_history("t", "", head, &["log".into()]).await?;
    same(before["log"].writes.len(), 4, "writes since the seed")?;
    checkpointer.prune(everywhere(Keep::Latest)).await?;
    same(checkpointer.delta_history("t", "", head, &["log".into()]).await?, before, "the history")?;
    ensure(
        checkpointer.get("t", "", Some(made[2])).await?.is_none(),
        "an unneeded one is still there",
    )
}

pub(crate) async fn pruning_takes_the_namespaces_of_calls_with_their_callers(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut root = Line::new(&checkpointer, "t", "");
    let callers = root.puts(3).await?;
    for (nth, caller) in callers.iter().enumerate() {
        let mut child = Line::new(&checkpointer, "t", &format!("node:{nth}"));
        for _ in 0..2 {
            let mut put = child.next();
            put.metadata.parents.insert(String::new(), *caller);
            child.store(put).await?;
        }
    }
    checkpointer.prune(everywhere(Keep::Latest)).await?;
    for (ns, there) in [("node:0", false), ("node:1", false), ("node:2", true)] {
        same(checkpointer.get("t", ns, None).await?.is_some(), there, ns)?;
    }
    Ok(())
}

fn listed(page: &ThreadPage) -> Vec<&str> {
    page.threads.iter().map(|info| &*info.thread).collect()
}

/// Moves threads on in this order, however fast the clock is.
async fn touch(checkpointer: &AnyCheckpointer, threads: &[&str]) -> Case {
    let mut last: Option<CheckpointId> = None;
    for thread in threads {
        let mut line = Line::new(checkpointer, thread, "");
        line.head = checkpointer.get(thread, "", None).await?.map(|stored| stored.checkpoint.id);
        let known = line.head;
        line.head = line.head.max(last);
        let mut put = line.next();
        (put.parent, put.head) = (known, known);
        last = Some(line.store(put).await?);
    }
    Ok(())
}

pub(crate) async fn threads_are_listed_by_their_last_change(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    touch(&checkpointer, &["a", "b", "c", "a"]).await?;
    Line::new(&checkpointer, "b", "child:1").puts(3).await?;
    Line::new(&checkpointer, "only a child", "child:1").puts(1).await?;
    let page = checkpointer.threads(ThreadQuery::new(10)).await?;
    same(listed(&page), ["a", "c", "b"], "threads")?;
    ensure(page.next.is_none(), "there is another page")?;
    for info in &page.threads {
        let head = read(&checkpointer, &info.thread, "", None).await?;
        same(info.head, head.checkpoint.id, "the head")?;
        same(info.metadata.as_ref(), Some(&head.metadata), "its metadata")?;
        ensure(info.updated_at().is_some() && info.damage.is_none(), "it cannot be read")?;
    }
    Ok(())
}

pub(crate) async fn threads_are_listed_page_by_page(Subject { checkpointer, .. }: Subject) -> Case {
    let names: Vec<String> = (0..25).map(|nth| format!("t{nth:02}")).collect();
    let order: Vec<&str> = names.iter().map(String::as_str).collect();
    touch(&checkpointer, &order).await?;
    let mut found = Vec::new();
    let mut query = ThreadQuery::new(10);
    let mut pages = 0;
    loop {
        let page = checkpointer.threads(query.clone()).await?;
        pages += 1;
        found.extend(page.threads.into_iter().map(|info| info.thread.to_string()));
        let Some(next) = page.next else { break };
        query = ThreadQuery::new(10).after(next);
    }
    let wanted: Vec<String> = names.iter().rev().cloned().collect();
    same((pages, found), (3, wanted), "pages")?;
    let none = checkpointer.threads(ThreadQuery::new(0)).await?;
    ensure(none.threads.is_empty(), "none were asked for")
}

pub(crate) async fn threads_show_their_open_questions(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    touch(&checkpointer, &["quiet", "asks"]).await?;
    let head = read(&checkpointer, "asks", "", None).await?.checkpoint.id;
    let question = |id: &str| Interrupt {
        id: InterruptId::new(id),
        value: Value::from("sure?"),
        response_schema: None,
    };
    for (number, id) in [(1, "q1"), (2, "q2"), (3, "q1")] {
        let list = Blob::from_value(&Interrupt::list_to(&[question(id)]))?;
        let asked = TaskWrites::new(task(number), "p", vec![("__interrupt__".into(), list)]);
        checkpointer.put_writes("asks", "", head, vec![asked]).await?;
    }
    let page = checkpointer.threads(ThreadQuery::new(10)).await?;
    same(page.threads[0].pending.clone(), [question("q1"), question("q2")], "the questions")?;
    ensure(page.threads[1].pending.is_empty(), "the other asks too")?;
    // A task that has written something is done with its question.
    checkpointer.put_writes("asks", "", head, vec![writes(2, &[("a", 1)])]).await?;
    let page = checkpointer.threads(ThreadQuery::new(10)).await?;
    same(page.threads[0].pending.clone(), [question("q1")], "the questions")
}

pub(crate) async fn threads_that_were_deleted_are_not_listed(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    touch(&checkpointer, &["a", "b", "c"]).await?;
    checkpointer.delete_thread("b").await?;
    checkpointer.copy_thread("a", "d").await?;
    let page = checkpointer.threads(ThreadQuery::new(10)).await?;
    // The copy has the head of its source; by name it comes after it.
    same(listed(&page), ["c", "a", "d"], "threads")?;
    touch(&checkpointer, &["a", "a", "a"]).await?;
    let page = checkpointer.threads(ThreadQuery::new(1)).await?;
    same(listed(&page), ["a"], "the one that changed last")
}

pub(crate) async fn threads_are_not_moved_by_what_is_stored_late(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    touch(&checkpointer, &["a", "b"]).await?;
    let head = read(&checkpointer, "a", "", None).await?.checkpoint.id;
    let mut line = Line::new(&checkpointer, "a", "");
    let mut old = line.next();
    old.checkpoint.id = CheckpointId::from_bytes([1; 16]);
    old.head = Some(head);
    checkpointer.put(old.clone()).await?;
    // Stored again, it is replaced.
    checkpointer.put(old).await?;
    let page = checkpointer.threads(ThreadQuery::new(10)).await?;
    same(listed(&page), ["b", "a"], "threads")?;
    same(page.threads[1].head, head, "the head")
}

pub(crate) async fn everything_that_is_stored_is_named(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    furnished(&checkpointer, "u").await?;
    furnished(&checkpointer, "t").await?;
    let named = checkpointer.inventory().await?;
    ensure(named.stray_writes.is_empty(), "writes stand beside a checkpoint that is not there")?;
    let mut stored = checkpointer.list(Query::default()).await?;
    stored.sort_by_key(|stored| (stored.thread.clone(), stored.ns.clone(), stored.checkpoint.id));
    let keys = stored.iter().map(|stored| StoredKey {
        thread: stored.thread.clone(),
        ns: stored.ns.clone(),
        id: stored.checkpoint.id.to_string(),
        parent: stored.parent.map(|parent| parent.to_string()),
    });
    same(named.checkpoints, keys.collect::<Vec<_>>(), "the names")
}
