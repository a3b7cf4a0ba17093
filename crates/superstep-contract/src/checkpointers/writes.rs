use superstep_checkpoint::{
    Blob, Error, Ext, Interrupt, InterruptId, Packet, TaskId, TaskWrites, Value,
};

use super::Subject;
use super::kit::*;

pub(crate) async fn writes_are_seen_beside_their_checkpoint(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = line.put().await?;
    line.add(id, vec![writes(1, &[("a", 1), ("b", 2)]), writes(2, &[("a", 3)])]).await?;
    same(line.written(id).await?, ["1 1 0 a=1", "1 1 1 b=2", "2 2 0 a=3"], "the writes")?;
    line.add(id, Vec::new()).await?;
    same(line.written(id).await?.len(), 3, "writes after a call with none")
}

pub(crate) async fn writes_are_ordered_by_path_then_task_then_slot(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = line.put().await?;
    let at = |path: &str, number: u8, writes: &[(&str, i64)]| {
        let writes = writes.iter().map(|(name, value)| ((*name).into(), blob(*value))).collect();
        TaskWrites::new(task(number), path, writes)
    };
    // Paths are compared by code point: `~a` comes after `Z`, `\u{e9}` after both.
    line.add(id, vec![at("\u{e9}", 1, &[("x", 1)]), at("~a", 9, &[("x", 2)])]).await?;
    line.add(id, vec![at("~a", 2, &[("x", 3), ("__error__", 4), ("y", 5)])]).await?;
    line.add(id, vec![at("Z", 7, &[("x", 6)]), at("", 8, &[("x", 7)])]).await?;
    let wanted = [
        " 8 0 x=7",
        "Z 7 0 x=6",
        "~a 2 -1 __error__=4",
        "~a 2 0 x=3",
        "~a 2 2 y=5",
        "~a 9 0 x=2",
        "\u{e9} 1 0 x=1",
    ];
    same(line.written(id).await?, wanted, "the writes")
}

pub(crate) async fn a_filled_slot_keeps_its_first_value(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = line.put().await?;
    line.add(id, vec![writes(1, &[("a", 1), ("b", 2)])]).await?;
    line.add(id, vec![writes(1, &[("a", 3), ("c", 4), ("d", 5)])]).await?;
    same(line.written(id).await?, ["1 1 0 a=1", "1 1 1 b=2", "1 1 2 d=5"], "the writes")
}

pub(crate) async fn reserved_slots_are_replaced(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = line.put().await?;
    for value in 1..4 {
        let all = ["__error__", "__scheduled__", "__interrupt__", "__resume__"];
        let all: Vec<_> = all.iter().map(|name| (*name, value)).collect();
        line.add(id, vec![writes(1, &all)]).await?;
    }
    let wanted = [
        "1 1 -4 __resume__=3",
        "1 1 -3 __interrupt__=3",
        "1 1 -2 __scheduled__=3",
        "1 1 -1 __error__=3",
    ];
    same(line.written(id).await?, wanted, "the writes")
}

pub(crate) async fn reserved_slots_are_replaced_in_calls_with_other_writes(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = line.put().await?;
    line.add(id, vec![writes(1, &[("__resume__", 1), ("a", 1)])]).await?;
    line.add(id, vec![writes(1, &[("__resume__", 2), ("a", 2)])]).await?;
    same(line.written(id).await?, ["1 1 -4 __resume__=2", "1 1 1 a=1"], "the writes")
}

pub(crate) async fn a_task_that_starts_over_loses_what_it_had(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = line.put().await?;
    line.add(id, vec![writes(1, &[("a", 1), ("b", 2)]), writes(2, &[("a", 3)])]).await?;
    let over = TaskWrites { replaces: true, ..writes(1, &[("__error__", 9)]) };
    line.add(id, vec![over]).await?;
    same(line.written(id).await?, ["1 1 -1 __error__=9", "2 2 0 a=3"], "the writes")
}

pub(crate) async fn a_new_checkpoint_has_none(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = line.put().await?;
    line.add(id, vec![writes(1, &[("a", 1)])]).await?;
    let next = line.put().await?;
    ensure(line.written(next).await?.is_empty(), "the next checkpoint has writes")?;
    same(line.written(id).await?.len(), 1, "the writes of the one before")
}

pub(crate) async fn namespaces_do_not_share_them(Subject { checkpointer, .. }: Subject) -> Case {
    let mut outer = Line::new(&checkpointer, "t", "");
    let put = outer.next();
    let mut inner = Line::new(&checkpointer, "t", "child:1");
    let mut same_id = inner.next();
    same_id.checkpoint.id = put.checkpoint.id;
    let id = outer.store(put).await?;
    inner.store(same_id).await?;
    outer.add(id, vec![writes(1, &[("a", 1)])]).await?;
    ensure(inner.written(id).await?.is_empty(), "the other namespace has the writes")
}

pub(crate) async fn an_unknown_checkpoint_is_refused(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let id = Line::new(&checkpointer, "t", "").put().await?;
    for (thread, ns) in [("u", ""), ("t", "other")] {
        match checkpointer.put_writes(thread, ns, id, vec![writes(1, &[("a", 1)])]).await {
            Err(Error::Unknown { thread: named, id: unknown, .. }) => {
                same((named.as_str(), unknown), (thread, id), "what the error names")?;
            }
            other => return fail(format_args!("{other:?} instead of Unknown")),
        }
    }
    Ok(())
}

pub(crate) async fn a_checkpoint_that_is_no_longer_the_head_takes_them(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let ids = line.puts(2).await?;
    line.add(ids[0], vec![writes(1, &[("a", 1)])]).await?;
    same(line.written(ids[0]).await?, ["1 1 0 a=1"], "the writes")
}

pub(crate) async fn values_of_every_kind_come_back(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = line.put().await?;
    let mut values = super::put::values();
    values.push(("array", Blob::new("bytearray".into(), *b"xyz")));
    values.push(("json", Blob::new("json".into(), *b"{\"a\": 1}")));
    values.push(("secret", Blob::new("msgpack+aes".into(), *b"\0\x01\x02")));
    let all = values.iter().map(|(name, blob)| ((*name).into(), blob.clone())).collect();
    line.add(id, vec![TaskWrites::new(TaskId::NULL, "", all)]).await?;
    let stored = line.read(None).await?;
    same(stored.writes.len(), values.len(), "writes")?;
    for (write, (name, blob)) in stored.writes.iter().zip(&values) {
        same((&*write.channel, &write.value), (*name, blob), name)?;
    }
    Ok(())
}

pub(crate) async fn questions_and_dispatches_come_back(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let id = line.put().await?;
    let questions = [Interrupt {
        id: InterruptId::new("5bf88e5558fb5a8e5bf88e5558fb5a8e"),
        value: Value::from("sure?"),
        response_schema: None,
    }];
    let packet = Packet { node: "node".into(), arg: Value::from(5), timeout: None };
    let packet = Value::Ext(Box::new(Ext::Send(packet)));
    let all = vec![
        ("__interrupt__".into(), Blob::from_value(&Interrupt::list_to(&questions))?),
        ("__pregel_tasks".into(), Blob::from_value(&packet)?),
    ];
    line.add(id, vec![TaskWrites::new(task(1), "p", all)]).await?;
    let stored = line.read(None).await?;
    same(stored.interrupts(task(1))?, questions, "the questions")?;
    same(stored.writes[1].value.to_value()?, packet, "the dispatch")
}
