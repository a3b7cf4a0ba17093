use superstep_checkpoint::{Blob, CheckpointId, Error, Query, TaskWrites, Value, Version};

use super::Subject;
use super::kit::*;

const NAMES: [&str; 12] = [
    "",
    " ",
    "'; DROP TABLE checkpoints; --",
    "\"quoted\" 'twice'",
    "a\0b",
    "a",
    "A",
    "a%",
    "a_",
    "\u{1F980}\u{202e}\u{0301}",
    "$.source",
    "line\nbreak\\",
];

pub(crate) async fn ids_of_any_text_are_apart(Subject { checkpointer, .. }: Subject) -> Case {
    let mut heads = Vec::new();
    for thread in NAMES {
        for ns in NAMES {
            let mut line = Line::new(&checkpointer, thread, ns);
            let Some(id) = put_or_refuse(&mut line).await? else { continue };
            line.add(id, vec![writes(1, &[("a", 1)])]).await?;
            heads.push((thread, ns, id));
        }
    }
    for (thread, ns, id) in &heads {
        let stored = read(&checkpointer, thread, ns, None).await?;
        let found = (stored.checkpoint.id, stored.writes.len(), &*stored.thread, &*stored.ns);
        same(found, (*id, 1, *thread, *ns), "what is there")?;
        let query = Query { ns: Some((*ns).into()), ..of(thread) };
        same(ids(&checkpointer, query).await?, [*id], "what is listed")?;
    }
    checkpointer.delete_thread("a%").await?;
    let others = heads.iter().filter(|(thread, ..)| *thread != "a%").count();
    same(ids(&checkpointer, Query::default()).await?.len(), others, "after deleting `a%`")
}

/// Stores the next checkpoint of a line, unless the storage has no form for the ids and says so before it does anything.
async fn put_or_refuse(line: &mut Line) -> Result<Option<CheckpointId>, Fault> {
    let put = line.next();
    let (thread, ns, id) = (put.thread.clone(), put.ns.clone(), put.checkpoint.id);
    match line.checkpointer.put(put).await {
        Err(Error::Invalid(_)) => {
            let there = line.checkpointer.get(&thread, &ns, None).await?.is_some();
            ensure(!there, "a checkpoint was refused and stored").map(|()| None)
        }
        stored => {
            stored?;
            line.head = Some(id);
            Ok(Some(id))
        }
    }
}

pub(crate) async fn very_long_ids_are_kept_or_refused(
    Subject { checkpointer, .. }: Subject,
) -> Case {
    // Ten thousand bytes that do not compress, so that no index gets away with it.
    let mut seed = 7u64;
    let mut letter = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        char::from(b'a' + (seed >> 40) as u8 % 26)
    };
    let long: String = (0..10_000).map(|_| letter()).collect();
    let longer = format!("{long}x");
    for thread in [&long, &longer] {
        let mut line = Line::new(&checkpointer, thread, "");
        let Some(id) = put_or_refuse(&mut line).await? else { continue };
        line.add(id, vec![writes(1, &[("a", 1)])]).await?;
        same(line.read(None).await?.checkpoint.id, id, "the head")?;
        same(ids(&checkpointer, of(thread)).await?, [id], "what is listed")?;
    }
    Ok(())
}

pub(crate) async fn names_of_any_text_are_kept(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let mut put = line.next();
    let names = NAMES.iter().filter(|name| !name.contains('\0'));
    for name in names.clone() {
        put.checkpoint.channel_values.insert_mut((*name).into(), blob(vec![Value::from(1)]));
        let version = Version::after(1, 1 << 60);
        put.checkpoint.channel_versions.insert_mut((*name).into(), version);
        put.changed.push((*name).into());
        put.metadata.extra.insert(format!("key {name}"), "value".into());
    }
    let wanted = put.clone();
    let id = line.store(put).await?;
    let all = names.map(|name| ((*name).into(), Blob::null())).collect();
    line.add(id, vec![TaskWrites::new(task(1), "'; --", all)]).await?;
    let stored = line.read(None).await?;
    same(&stored.checkpoint, &wanted.checkpoint, "the checkpoint")?;
    same(&stored.metadata, &wanted.metadata, "its metadata")?;
    same(stored.writes.len(), NAMES.len() - 1, "writes")
}

pub(crate) async fn large_values_are_kept(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let large = blob(vec![Value::from("x".repeat(3_000_000))]);
    let mut put = line.next();
    put.checkpoint.channel_values.insert_mut("fixed".into(), large.clone());
    let id = line.store(put).await?;
    let all = vec![("a".into(), large.clone())];
    line.add(id, vec![TaskWrites::new(task(1), "", all)]).await?;
    let stored = line.read(None).await?;
    ensure(stored.checkpoint.value("fixed") == Some(&large), "the value differs")?;
    ensure(stored.writes[0].value == large, "the write differs")
}

pub(crate) async fn filters_are_data(Subject { checkpointer, .. }: Subject) -> Case {
    let mut line = Line::new(&checkpointer, "t", "");
    let mut put = line.next();
    for name in NAMES.iter().filter(|name| !name.contains('\0')) {
        put.metadata.extra.insert(format!("key {name}"), (*name).into());
    }
    let id = line.store(put).await?;
    for name in NAMES.iter().filter(|name| !name.contains('\0')) {
        let filter = |value: &str| Query {
            filter: [(format!("key {name}"), Value::from(value))].into(),
            ..Query::default()
        };
        same(ids(&checkpointer, filter(name)).await?, [id], name)?;
        ensure(ids(&checkpointer, filter("' OR 1 = 1 --")).await?.is_empty(), name)?;
    }
    Ok(())
}
