//! How what was streamed in pieces is put together: LangChain's `merge_content`, `merge_dicts`, `merge_lists` and `add_usage`.

use superstep_checkpoint::{Map, Value};

use super::MergeError;

pub(super) fn merge_content(content: &mut Value, more: Value) -> Result<(), MergeError> {
    if content.is_null() {
        *content = "".into();
    }
    match (&mut *content, more) {
        (Value::Str(text), Value::Str(more)) => text.push_str(&more),
        (Value::Str(_), Value::List(blocks)) => {
            let text = std::mem::take(content);
            *content = std::iter::once(text).chain(blocks).collect::<Vec<_>>().into();
        }
        (Value::List(blocks), Value::List(more)) => merge_lists(blocks, more)?,
        (Value::List(blocks), Value::Str(more)) => match blocks.last_mut() {
            Some(Value::Str(text)) => text.push_str(&more),
            _ if more.is_empty() => {}
            // LangChain drops the text here if there are no blocks yet.
            _ => blocks.push(more.into()),
        },
        (_, Value::Null) => {}
        (left, right) => return Err(misfit("content", left, &right)),
    }
    Ok(())
}

pub(super) fn merge_maps(map: &mut Map, more: Map) -> Result<(), MergeError> {
    for (key, value) in more {
        match map.get_mut(&key) {
            None => {
                map.insert(key, value);
            }
            Some(old) => merge_values(&key, old, value)?,
        }
    }
    Ok(())
}

/// Merges the values of a key.
pub(super) fn merge_values(key: &str, old: &mut Value, new: Value) -> Result<(), MergeError> {
    match (&mut *old, new) {
        (_, Value::Null) => {}
        (Value::Null, new) => *old = new,
        (Value::Str(text), Value::Str(more)) => {
            let names_a_block = key == "index" && text.starts_with("lc_");
            let names = matches!(key, "id" | "output_version" | "model_provider") && *text == more;
            if !names_a_block && !names {
                text.push_str(&more);
            }
        }
        (Value::Map(map), Value::Map(more)) => merge_maps(map, more)?,
        (Value::List(items), Value::List(more)) => merge_lists(items, more)?,
        (same, new) if *same == new => {}
        (Value::Int(_) | Value::UInt(_), new @ (Value::Int(_) | Value::UInt(_))) => {
            // These say which or when, not how many.
            if matches!(key, "index" | "created" | "timestamp") {
                *old = new;
            } else {
                *old = sum(old, &new).ok_or_else(|| misfit(key, old, &new))?;
            }
        }
        (old, new) => return Err(misfit(key, old, &new)),
    }
    Ok(())
}

fn sum(left: &Value, right: &Value) -> Option<Value> {
    let number = |value: &Value| match value {
        Value::Int(number) => Some(i128::from(*number)),
        Value::UInt(number) => Some(i128::from(*number)),
        _ => None,
    };
    let sum = number(left)? + number(right)?;
    i64::try_from(sum).map(Value::Int).ok().or_else(|| u64::try_from(sum).map(Value::from).ok())
}

fn misfit(key: &str, left: &Value, right: &Value) -> MergeError {
    MergeError(format!(
        "`{key}` is {left} in one piece and {right} in the next, which cannot be merged"
    ))
}

/// Blocks with the same `index` are merged, unless their ids differ; others are added at the end.
pub(super) fn merge_lists(items: &mut Vec<Value>, more: Vec<Value>) -> Result<(), MergeError> {
    for item in more {
        match item {
            Value::Map(block) if has_index(&block) => merge_block(items, block)?,
            other => items.push(other),
        }
    }
    Ok(())
}

fn has_index(block: &Map) -> bool {
    match block.get("index") {
        Some(Value::Int(_) | Value::UInt(_)) => true,
        Some(Value::Str(index)) => index.starts_with("lc_"),
        _ => false,
    }
}

fn merge_block(items: &mut Vec<Value>, mut block: Map) -> Result<(), MergeError> {
    let open = |block: &Map| match block.get("id") {
        None | Some(Value::Null) => true,
        Some(Value::Str(id)) => id.is_empty(),
        Some(_) => false,
    };
    let begun = items.iter_mut().filter_map(Value::as_map_mut).find(|begun| {
        begun.get("index") == block.get("index")
            && (open(begun) || open(&block) || begun.get("id") == block.get("id"))
    });
    let Some(begun) = begun else {
        items.push(block.into());
        return Ok(());
    };
    let kind = |block: &Map| block.get("type").and_then(Value::as_str).map(str::to_owned);
    let begun_kind = kind(begun).filter(|kind| !kind.is_empty());
    let is_value = kind(&block).as_deref() == Some("non_standard") && block.contains_key("value");
    let (Some(begun_kind), true) = (begun_kind, is_value) else {
        block.shift_remove("type");
        return merge_maps(begun, block);
    };
    let Some(Value::Map(mut value)) = block.shift_remove("value") else {
        return Err(MergeError(
            "the `value` of a block of the type `non_standard` is not a map".to_owned(),
        ));
    };
    value.shift_remove("type");
    let standard = begun_kind != "non_standard";
    let mut new = Map::new();
    new.insert(if standard { "extras" } else { "value" }.to_owned(), value.into());
    if let (false, Some(index)) = (standard, block.shift_remove("index")) {
        new.insert("index".to_owned(), index);
    }
    merge_maps(begun, new)
}

/// Adds up counts, in maps of maps.
pub(super) fn add_usage(sum: &mut Map, more: Map) -> Result<(), MergeError> {
    for (key, value) in more {
        match (sum.get_mut(&key), value) {
            (None, value @ (Value::Int(_) | Value::UInt(_) | Value::Map(_))) => {
                sum.insert(key, value);
            }
            (Some(Value::Map(counts)), Value::Map(more)) => add_usage(counts, more)?,
            (Some(count), more) => {
                *count = self::sum(count, &more).ok_or_else(|| misfit(&key, count, &more))?;
            }
            (None, value) => return Err(misfit(&key, &Value::from(0), &value)),
        }
    }
    Ok(())
}
