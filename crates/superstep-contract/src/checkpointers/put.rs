use std::sync::Arc;

use superstep_checkpoint::{Blob, SharedMap, Source, Tag, Value, Version};

use super::Subject;
use super::kit::*;

pub(crate) async fn a_checkpoint_comes_back_as_it_was(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let put = line.next();
    let wanted = put.checkpoint.clone();
    let id = line.store(put).await?;
    for at in [None, Some(id)] {
        let stored = line.read(at).await?;
        same(&stored.checkpoint, &wanted, "the checkpoint")?;
        same((&*stored.thread, &*stored.ns, stored.parent), ("t", "", None), "its place")?;
        ensure(stored.writes.is_empty(), "nobody wrote anything yet")?;
    }
    Ok(())
}

/// Every kind of value, and types that only LangGraph knows.
pub(crate) fn values() -> Vec<(&'static str, Blob)> {
    let raw = |bytes: &[u8]| Blob::new(Tag::Msgpack, bytes);
    vec![
        ("null", Blob::null()),
        ("bool", blob(true)),
        ("int", blob(-7)),
        ("big", blob(u64::MAX)),
        ("float", blob(0.1)),
        ("zero", blob(-0.0)),
        ("great", blob(1e22)),
        ("nan", blob(f64::NAN)),
        ("text", blob("Zo\u{eb}\0 \u{1F980}")),
        ("list", blob(vec![Value::from(1), Value::from("a")])),
        ("bytes", Blob::new(Tag::Bytes, *b"\0\xff")),
        // A set, and a class nobody here knows: `[module, name, payload]`.
        ("set", raw(b"\xd8\x00\x93\xa8builtins\xa3set\x91\x01")),
        ("foreign", raw(b"\xc7\x12\x00\x93\xa8__main__\xa5Color\xa1r")),
        ("code", raw(b"\xd5\x63\x01\x02")),
        ("snapshot", raw(b"\xc7\x03\x07\x92\x01\x02")),
    ]
}

pub(crate) async fn values_come_back_with_their_tag_and_bytes(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let mut put = line.next();
    for (name, blob) in values() {
        put.checkpoint.channel_values.insert_mut(name.into(), blob);
        let version = Version::after(0, 1 << 62);
        put.checkpoint.channel_versions.insert_mut(name.into(), version);
        put.changed.push(name.into());
    }
    line.store(put).await?;
    let stored = line.read(None).await?;
    for (name, blob) in values() {
        same(stored.checkpoint.value(name), Some(&blob), name)?;
    }
    Ok(())
}

pub(crate) async fn metadata_comes_back_with_what_was_attached(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "child:1");
    for (source, step) in
        [(Source::Input, -1), (Source::Loop, 0), (Source::Update, 1), (Source::Fork, 2)]
    {
        let mut put = line.next();
        put.metadata.source = source;
        put.metadata.step = step;
        put.metadata.parents.insert(String::new(), put.checkpoint.id);
        put.metadata.delta_counters.insert("log".into(), (3, 9));
        for (key, value) in [
            ("run_id", Value::from("r-1")),
            ("user", "Zo\u{eb}".into()),
            ("score", 4.5.into()),
            ("flag", true.into()),
            ("nothing", Value::Null),
            ("tags", vec![Value::from("a"), 2.into()].into()),
        ] {
            put.metadata.extra.insert(key.into(), value);
        }
        let wanted = put.metadata.clone();
        line.store(put).await?;
        same(line.read(None).await?.metadata, wanted, "metadata")?;
    }
    Ok(())
}

pub(crate) async fn unknown_threads_namespaces_and_ids_are_nothing(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    ensure(
        checkpointer.get("t", "", None).await?.is_none(),
        "an empty checkpointer has no thread",
    )?;
    let id = Line::new(&checkpointer, "t", "").put().await?;
    let later = Line::new(&checkpointer, "u", "").put().await?;
    for (thread, ns, id) in [
        ("t2", "", None),
        ("t", "other", None),
        ("t", "", Some(later)),
        ("u", "", Some(id)),
        ("t", "other", Some(id)),
    ] {
        let found = checkpointer.get(thread, ns, id).await?;
        ensure(found.is_none(), format_args!("`{thread}` `{ns}` {id:?} is there"))?;
    }
    Ok(())
}

pub(crate) async fn the_head_is_the_greatest_id(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let ids = line.puts(5).await?;
    same(line.read(None).await?.checkpoint.id, ids[4], "the head")?;
    // Stored last, but older.
    let mut old = line.next();
    old.checkpoint.id = superstep_checkpoint::CheckpointId::from_bytes([1; 16]);
    line.checkpointer.put(old).await?;
    same(line.read(None).await?.checkpoint.id, ids[4], "the head")
}

pub(crate) async fn every_checkpoint_stays_and_knows_its_parent(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let ids = line.puts(4).await?;
    for (nth, id) in ids.iter().enumerate() {
        let stored = line.read(Some(*id)).await?;
        let parent = nth.checked_sub(1).map(|before| ids[before]);
        same((stored.checkpoint.id, stored.parent), (*id, parent), "id and parent")?;
        same(stored.checkpoint.value("step"), Some(&blob(nth as i64 - 1)), "its own value")?;
    }
    Ok(())
}

pub(crate) async fn threads_and_namespaces_are_apart(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let places = [("t", ""), ("t", "child:abc"), ("t", "child:abc|deep:1"), ("u", "")];
    let mut heads = Vec::new();
    for (nth, (thread, ns)) in places.into_iter().enumerate() {
        let ids = Line::new(&checkpointer, thread, ns).puts(nth + 1).await?;
        heads.push(ids[nth]);
    }
    for ((thread, ns), head) in places.into_iter().zip(heads) {
        let stored = read(&checkpointer, thread, ns, None).await?;
        same(stored.checkpoint.id, head, "the head")?;
        same((&*stored.thread, &*stored.ns), (thread, ns), "its place")?;
    }
    Ok(())
}

pub(crate) async fn unchanged_channels_are_read_from_where_they_were_stored(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    for id in line.puts(4).await? {
        let stored = line.read(Some(id)).await?;
        let wanted = blob(vec![Value::from("unchanged")]);
        same(stored.checkpoint.value("fixed"), Some(&wanted), "the value from the first one")?;
    }
    Ok(())
}

pub(crate) async fn channels_may_come_and_go(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    line.put().await?;
    let list = blob(vec![Value::from(1)]);
    let mut put = line.next();
    put.checkpoint.channel_values.insert_mut("new".into(), list.clone());
    put.checkpoint.channel_versions.insert_mut("new".into(), Version::after(7, 1 << 61));
    put.changed.push("new".into());
    line.store(put).await?;
    same(line.read(None).await?.checkpoint.value("new"), Some(&list), "the new channel")?;
    let mut put = line.next();
    put.checkpoint.channel_values.remove_mut("fixed");
    put.checkpoint.channel_versions.remove_mut("fixed");
    line.store(put).await?;
    let stored = line.read(None).await?;
    same(stored.checkpoint.value("fixed"), None::<&Blob>, "the channel that went")?;
    same(stored.checkpoint.value("new"), None::<&Blob>, "the channel that is not named")
}

pub(crate) async fn a_checkpoint_stored_again_is_replaced_and_keeps_its_writes(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let ids = line.puts(3).await?;
    line.add(ids[1], vec![writes(1, &[("a", 1)])]).await?;
    let mut again = line.next();
    again.checkpoint.id = ids[1];
    again.parent = Some(ids[0]);
    again.head = None;
    again.metadata.extra.insert("again".into(), true.into());
    checkpointer.put(again.clone()).await?;
    let stored = line.read(Some(ids[1])).await?;
    same(&stored.checkpoint, &again.checkpoint, "the checkpoint")?;
    same(&stored.metadata, &again.metadata, "its metadata")?;
    same(shown(&stored.writes), ["1 1 0 a=1"], "its writes")?;
    same(ids_of(&line).await?, 3, "checkpoints of the thread")
}

async fn ids_of(line: &Line) -> Result<usize, Fault> {
    Ok(ids(&line.checkpointer, of(&line.thread)).await?.len())
}

pub(crate) async fn versions_seen_and_updated_channels_come_back(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    for updated in [None, Some(Vec::new()), Some(vec![Arc::from("a"), Arc::from("b")])] {
        let mut put = line.next();
        let mut seen = SharedMap::new_sync();
        seen.insert_mut("a".into(), Version::after(3, 1 << 63));
        put.checkpoint.versions_seen.insert_mut("node".into(), seen);
        put.checkpoint.versions_seen.insert_mut("__input__".into(), SharedMap::new_sync());
        put.checkpoint.updated_channels = updated;
        let wanted = put.checkpoint.clone();
        line.store(put).await?;
        same(line.read(None).await?.checkpoint, wanted, "the checkpoint")?;
    }
    Ok(())
}

pub(crate) async fn several_checkpoints_are_stored_in_their_order(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    let several = line.several(3);
    let wanted: Vec<_> = several.iter().map(|put| put.checkpoint.clone()).collect();
    subject.checkpointer.put_all(several).await?;
    for (nth, checkpoint) in wanted.iter().enumerate() {
        let stored = read(&subject.other, "t", "", Some(checkpoint.id)).await?;
        same(&stored.checkpoint, checkpoint, "the checkpoint")?;
        let before = nth.checked_sub(1).map(|before| wanted[before].id);
        same(stored.parent, before, "its parent")?;
    }
    same(line.written(wanted[0].id).await?, ["1 1 0 a=1"], "writes beside the first")?;
    same(line.written(wanted[1].id).await?, ["1 1 0 a=2"], "writes beside the second")?;
    // The next one continues top of them.
    line.put().await.map(drop)
}

pub(crate) async fn several_checkpoints_may_be_of_several_threads(subject: Subject) -> Case {
    let mut lines = [("t", ""), ("t", "child:1"), ("u", "")]
        .map(|(thread, ns)| Line::new(&subject.checkpointer, thread, ns));
    let first = lines.iter_mut().flat_map(|line| line.several(1)).collect();
    subject.checkpointer.put_all(first).await?;
    let second = lines.iter_mut().flat_map(|line| line.several(2)).collect();
    subject.checkpointer.put_all(second).await?;
    for line in &lines {
        same(Some(line.read(None).await?.checkpoint.id), line.head, "the head")?;
    }
    subject.checkpointer.put_all(Vec::new()).await?;
    Ok(())
}

pub(crate) async fn what_one_handle_stored_the_other_sees(subject: Subject) -> Case {
    let mut line = Line::new(&subject.checkpointer, "t", "");
    for _ in 0..20 {
        let id = line.put().await?;
        line.add(id, vec![writes(1, &[("a", 1)])]).await?;
        let seen = read(&subject.other, "t", "", None).await?;
        same((seen.checkpoint.id, seen.writes.len()), (id, 1), "what the other sees")?;
    }
    Ok(())
}
