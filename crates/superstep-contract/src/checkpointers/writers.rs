use superstep_checkpoint::{AnyCheckpointer, Blob, CheckpointId, Error, TaskWrites};

use super::Subject;
use super::kit::*;

fn conflict(
    result: Result<(), Error>,
) -> Result<(Option<CheckpointId>, Option<CheckpointId>), Fault> {
    match result {
        Err(Error::Conflict { expected, found, .. }) => Ok((expected, found)),
        other => fail(format_args!("{other:?} instead of Conflict")),
    }
}

fn overtaken(result: Result<(), Error>) -> Case {
    match result {
        Err(Error::Overtaken { channel, .. }) => same(channel, "__resume__", "the channel named"),
        other => fail(format_args!("{other:?} instead of Overtaken")),
    }
}

fn answers(values: &[&str]) -> Blob {
    Blob::encode(values).unwrap_or_default()
}

/// Answers for task 1, given by someone who saw `known`.
fn answer(values: &[&str], known: Option<&[&str]>) -> TaskWrites {
    let writes = vec![("__resume__".into(), answers(values))];
    TaskWrites::new(task(1), "1", writes).expecting("__resume__", known.map(answers))
}

pub(crate) async fn a_second_writer_gets_a_conflict(subject: Subject) -> Case {
    let mut first = Line::new(&subject.checkpointer, "t", "");
    let old = first.put().await?;
    let mut second = first.rival(&subject.other);
    let new = first.put().await?;
    let late = second.next();
    same(conflict(subject.other.put(late).await)?, (Some(old), Some(new)), "the heads")?;
    same(ids(&subject.checkpointer, of("t")).await?, [new, old], "what is stored")
}

pub(crate) async fn two_first_checkpoints_conflict(subject: Subject) -> Case {
    let id = Line::new(&subject.checkpointer, "t", "").put().await?;
    let late = Line::new(&subject.other, "t", "").next();
    same(conflict(subject.other.put(late).await)?, (None, Some(id)), "the heads")?;
    // Another namespace is another line.
    Line::new(&subject.other, "t", "child:1").put().await?;
    let mut ahead = Line::new(&subject.other, "u", "");
    ahead.head = Some(id);
    same(conflict(subject.other.put(ahead.next()).await)?, (Some(id), None), "the heads")
}

pub(crate) async fn a_conflict_stores_no_writes(subject: Subject) -> Case {
    let mut first = Line::new(&subject.checkpointer, "t", "");
    let old = first.put().await?;
    let mut second = first.rival(&subject.other);
    first.put().await?;
    let mut late = second.next();
    late.writes = vec![writes(1, &[("a", 1)])];
    conflict(subject.other.put(late).await)?;
    ensure(first.written(old).await?.is_empty(), "the writes of the conflict were stored")
}

pub(crate) async fn a_conflict_of_the_first_of_several_stores_none(subject: Subject) -> Case {
    let mut first = Line::new(&subject.checkpointer, "t", "");
    let old = first.put().await?;
    let mut second = first.rival(&subject.other);
    let new = first.put().await?;
    let late = second.several(2);
    same(conflict(subject.other.put_all(late).await)?, (Some(old), Some(new)), "the heads")?;
    same(ids(&subject.checkpointer, of("t")).await?, [new, old], "what is stored")
}

pub(crate) async fn several_are_stored_together_or_not_at_all(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let head = line.put().await?;
    let mut several = line.several(3);
    let [first, second, third] = [0, 1, 2].map(|nth: usize| several[nth].checkpoint.id);
    several[1].head = Some(head);
    // Its own head is named rightly, as if the one before it had been stored.
    several[2].head = Some(first);
    conflict(subject.checkpointer.put_all(several).await)?;
    let stored = ids(&subject.checkpointer, of("t")).await?;
    ensure(!stored.contains(&second), "the one that is refused is stored")?;
    ensure(!stored.contains(&third), "one after the one that is refused is stored")?;
    ensure(!stored.contains(&first), "one before the one that is refused is stored")?;
    ensure(line.written(head).await?.is_empty(), "writes of one that is refused are stored")?;
    // A subgraph and the one around it: one is new, and the other was moved on.
    for around_first in [true, false] {
        let thread = if around_first { "u" } else { "v" };
        let mut around = Line::new(&subject.checkpointer, thread, "");
        let head = around.put().await?;
        let rival = around.rival(&subject.other).put().await?;
        let mut inside = Line::new(&subject.checkpointer, thread, "child:1");
        let mut both = [around.several(1), inside.several(1)].concat();
        if !around_first {
            both.reverse();
        }
        same(
            conflict(subject.checkpointer.put_all(both).await)?,
            (Some(head), Some(rival)),
            "the heads",
        )?;
        same(ids(&subject.checkpointer, of(thread)).await?, [rival, head], "what is stored")?;
    }
    Ok(())
}

/// Checkpoints that are asked for at the same time, each on top of the one before: one that is stored has the one before it.
/// Where the order is kept, none of them finds that missing.
pub(crate) async fn an_ordered_checkpointer_takes_operations_ahead(subject: Subject) -> Case {
    let checkpointer = &subject.checkpointer;
    let mut line = Line::new(checkpointer, "t", "");
    line.put().await?;
    for round in 0..30 {
        let mut several = line.several(3);
        // In every third round the first is refused, so that there is nothing for the others to
        // continue top of.
        let refused = round % 3 == 2;
        if refused {
            several[0].head = None;
        }
        let wanted: Vec<_> = several.iter().map(|put| put.checkpoint.id).collect();
        let [first, second, third] = <[_; 3]>::try_from(several)
            .or_else(|_| fail("there are three"))?
            .map(|put| checkpointer.put(put));
        let (first, second, third) = tokio::join!(first, second, third);
        let mut stored = Vec::new();
        for (id, result) in wanted.iter().zip([first, second, third]) {
            match result {
                Ok(()) => stored.push(*id),
                refused => drop(conflict(refused)?),
            }
        }
        let prefix = &wanted[..stored.len()];
        same(&stored[..], prefix, "what is stored of those that were asked for together")?;
        let expected = if refused { 0 } else { wanted.len() };
        if checkpointer.in_order() || refused {
            same(stored.len(), expected, "how many of those that were asked for in order")?;
        }
        line.head = Some(line.read(None).await?.checkpoint.id);
        ensure(stored.last().is_none_or(|last| line.head == Some(*last)), "the head is the last")?;
    }
    Ok(())
}

pub(crate) async fn a_superseded_writer_can_read_and_go_on(subject: Subject) -> Case {
    let mut first = Line::new(&subject.checkpointer, "t", "");
    first.put().await?;
    let mut second = first.rival(&subject.other);
    let new = first.put().await?;
    let late = second.next();
    conflict(subject.other.put(late).await)?;
    second.head = Some(second.read(None).await?.checkpoint.id);
    same(second.head, Some(new), "the head the second reads")?;
    let newest = second.put().await?;
    same(first.read(None).await?.checkpoint.id, newest, "the head the first reads")
}

pub(crate) async fn a_branch_from_an_older_checkpoint_names_the_head(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let old = line.puts(3).await?;
    let mut branch = line.next();
    branch.parent = Some(old[0]);
    branch.writes = vec![writes(1, &[("a", 1)])];
    let id = line.store(branch).await?;
    let stored = line.read(None).await?;
    same((stored.checkpoint.id, stored.parent), (id, Some(old[0])), "the branch")?;
    same(line.written(old[0]).await?.len(), 1, "writes beside its parent")
}

pub(crate) async fn writes_come_with_their_checkpoint_or_not_at_all(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let parent = line.put().await?;
    let mut put = line.next();
    put.writes = vec![writes(2, &[("b", 2)]), writes(1, &[("a", 1)])];
    line.store(put).await?;
    same(line.written(parent).await?, ["1 1 0 a=1", "2 2 0 b=2"], "writes beside the parent")
}

pub(crate) async fn writes_for_an_unknown_parent_are_refused(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let head = line.put().await?;
    let unknown = CheckpointId::from_bytes([7; 16]);
    for (parent, wanted) in [(Some(unknown), "Unknown"), (None, "Invalid")] {
        let mut put = line.next();
        put.parent = parent;
        put.writes = vec![writes(1, &[("a", 1)])];
        match (subject.checkpointer.put(put).await, wanted) {
            (Err(Error::Unknown { .. }), "Unknown") | (Err(Error::Invalid(_)), "Invalid") => {}
            (other, _) => return fail(format_args!("{other:?} instead of {wanted}")),
        }
    }
    same(ids(&subject.checkpointer, of("t")).await?, [head], "what is stored")
}

/// Stores from every handle at once until each round has a winner.
pub(crate) async fn of_many_writers_one_wins_each_time(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    line.put().await?;
    for round in 0..20 {
        let rivals: Vec<_> = (0..8)
            .map(|nth| {
                let checkpointer =
                    if nth % 2 == 0 { &subject.checkpointer } else { &subject.other };
                let mut rival = line.rival(checkpointer);
                let put = rival.next();
                let checkpointer = checkpointer.clone();
                tokio::spawn(async move { (put.checkpoint.id, checkpointer.put(put).await) })
            })
            .collect();
        let mut winners = Vec::new();
        for rival in rivals {
            match rival.await {
                Ok((id, Ok(()))) => winners.push(id),
                Ok((_, Err(Error::Conflict { .. }))) => {}
                other => return fail(format_args!("{other:?}")),
            }
        }
        let [winner] = winners[..] else {
            return fail(format_args!("{} winners in round {round}", winners.len()));
        };
        line.head = Some(winner);
        line.step += 1;
    }
    same(ids(&subject.checkpointer, of("t")).await?.len(), 21, "checkpoints")
}

pub(crate) async fn of_two_answers_one_is_kept(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let id = line.put().await?;
    line.add(id, vec![answer(&["yes"], None)]).await?;
    let late = vec![answer(&["no"], None)];
    overtaken(subject.other.put_writes("t", "", id, late).await)?;
    same(line.written(id).await?, [r#"1 1 -4 __resume__=["yes"]"#], "the answers")
}

pub(crate) async fn an_answer_names_the_answers_before_it(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let id = line.put().await?;
    overtaken(
        subject.checkpointer.put_writes("t", "", id, vec![answer(&["b"], Some(&["a"]))]).await,
    )?;
    line.add(id, vec![answer(&["a"], None)]).await?;
    line.add(id, vec![answer(&["a", "b"], Some(&["a"]))]).await?;
    let late = vec![answer(&["a", "c"], Some(&["a"]))];
    overtaken(subject.other.put_writes("t", "", id, late).await)?;
    same(line.written(id).await?, [r#"1 1 -4 __resume__=["a","b"]"#], "the answers")
}

pub(crate) async fn a_call_that_is_overtaken_stores_nothing(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let id = line.put().await?;
    line.add(id, vec![answer(&["yes"], None)]).await?;
    let over = TaskWrites { replaces: true, ..writes(3, &[("c", 1)]) };
    let late = vec![writes(2, &[("b", 1)]), over, answer(&["no"], None)];
    overtaken(subject.other.put_writes("t", "", id, late).await)?;
    same(line.written(id).await?.len(), 1, "writes")
}

pub(crate) async fn a_checkpoint_with_an_overtaken_answer_is_not_stored(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let id = line.put().await?;
    line.add(id, vec![answer(&["yes"], None)]).await?;
    let mut late = line.rival(&subject.other).next();
    late.writes = vec![writes(2, &[("b", 1)]), answer(&["no"], None)];
    overtaken(subject.other.put(late).await)?;
    same(ids(&subject.checkpointer, of("t")).await?, [id], "checkpoints")?;
    same(line.written(id).await?.len(), 1, "writes")?;
    let mut put = line.next();
    put.writes = vec![answer(&["yes", "more"], Some(&["yes"]))];
    line.store(put).await?;
    same(line.written(id).await?, [r#"1 1 -4 __resume__=["yes","more"]"#], "the answers")
}

pub(crate) async fn only_reserved_slots_can_be_expected(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let id = line.put().await?;
    let odd = vec![writes(1, &[("a", 1)]).expecting("a", None)];
    match subject.checkpointer.put_writes("t", "", id, odd).await {
        Err(Error::Invalid(_)) => ensure(line.written(id).await?.is_empty(), "it was stored"),
        other => fail(format_args!("{other:?} instead of Invalid")),
    }
}

pub(crate) async fn of_many_answers_one_wins(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    for round in 0..10 {
        let id = line.put().await?;
        let give = |checkpointer: AnyCheckpointer, text: String| {
            tokio::spawn(async move {
                let given = vec![answer(&[text.as_str()], None)];
                checkpointer.put_writes("t", "", id, given).await
            })
        };
        let rivals: Vec<_> = (0..8)
            .map(|nth| {
                let checkpointer =
                    if nth % 2 == 0 { &subject.checkpointer } else { &subject.other };
                give(checkpointer.clone(), nth.to_string())
            })
            .collect();
        let mut winners = 0;
        for rival in rivals {
            match rival.await {
                Ok(Ok(())) => winners += 1,
                Ok(Err(Error::Overtaken { .. })) => {}
                other => return fail(format_args!("{other:?}")),
            }
        }
        same(winners, 1, &format!("answers accepted in round {round}"))?;
    }
    Ok(())
}
