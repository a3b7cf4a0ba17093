//! Expressions of case bodies.

use std::collections::HashMap;

use serde_json::Value as Json;
use superstep::NodeError;
use superstep::checkpoint::{Ext, Map, Packet, TimeLimits, Value};

/// Marks a map that stands for a command, and one that stands for a final result.
pub(crate) const COMMAND: &str = "\0command";
pub(crate) const FINAL: &str = "\0final";

/// The variables of a body.
pub(crate) type Env = HashMap<String, Value>;

/// A mistake in a case or in what it computes.
pub(crate) fn type_error(text: impl Into<String>) -> NodeError {
    NodeError::permanent(text.into()).named("TypeError")
}

pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Int(number) => *number != 0,
        Value::Float(number) => *number != 0.0,
        Value::Str(text) => !text.is_empty(),
        Value::List(list) => !list.is_empty(),
        Value::Map(map) => !map.is_empty(),
        Value::Set(set) => !set.is_empty(),
        _ => true,
    }
}

/// A constant of a case, with sets and the like in their written form.
pub(crate) fn constant(json: &Json) -> Value {
    Value::from(json.clone())
}

pub(crate) fn evaluate(expr: &Json, env: &Env) -> Result<Value, NodeError> {
    match expr {
        Json::Array(items) => {
            Ok(Value::List(items.iter().map(|item| evaluate(item, env)).collect::<Result<_, _>>()?))
        }
        Json::Object(map) => {
            if let (1, Some((op, arg))) = (map.len(), map.iter().next())
                && op.starts_with('$')
            {
                return operator(op, arg, env);
            }
            let entries = map.iter().map(|(key, part)| Ok((key.clone(), evaluate(part, env)?)));
            Ok(Value::Map(entries.collect::<Result<Map, NodeError>>()?))
        }
        other => Ok(constant(other)),
    }
}

fn operator(op: &str, arg: &Json, env: &Env) -> Result<Value, NodeError> {
    let part = |index: usize| evaluate(&arg[index], env);
    match op {
        "$" => return Ok(lookup(arg.as_str().unwrap_or_default(), env)),
        "$if" => return if truthy(&part(0)?) { part(1) } else { part(2) },
        "$and" => {
            for item in arg.as_array().into_iter().flatten() {
                if !truthy(&evaluate(item, env)?) {
                    return Ok(Value::Bool(false));
                }
            }
            return Ok(Value::Bool(true));
        }
        "$map" => {
            let Value::List(items) = part(0)? else { return Err(type_error("$map needs a list")) };
            let name = arg[1].as_str().unwrap_or_default();
            let mut inner = env.clone();
            let mapped = items.into_iter().map(|item| {
                inner.insert(name.to_owned(), item);
                evaluate(&arg[2], &inner)
            });
            return Ok(Value::List(mapped.collect::<Result<_, _>>()?));
        }
        _ => {}
    }
    let arg = evaluate(arg, env)?;
    let list = || arg.as_list().unwrap_or_default();
    let pair = || match list() {
        [a, b] => Ok((a, b)),
        _ => Err(type_error(format!("{op} takes two arguments"))),
    };
    match op {
        "$add" => {
            let mut items = list().iter().cloned();
            let first = items.next().ok_or_else(|| type_error("$add takes arguments"))?;
            items.try_fold(first, add)
        }
        "$sub" => {
            let (a, b) = pair()?;
            arithmetic(a, b, i64::checked_sub)
        }
        "$mul" => {
            let (a, b) = pair()?;
            arithmetic(a, b, i64::checked_mul)
        }
        "$len" => Ok(Value::from(length(&arg)?)),
        "$eq" => pair().map(|(a, b)| Value::Bool(a == b)),
        "$lt" => {
            let (a, b) = pair()?;
            less(a, b).map(Value::Bool)
        }
        "$in" => {
            let (a, b) = pair()?;
            Ok(Value::Bool(match b {
                Value::List(items) => items.contains(a),
                Value::Set(items) => items.contains(a),
                Value::Map(map) => a.as_str().is_some_and(|key| map.contains_key(key)),
                Value::Str(text) => a.as_str().is_some_and(|part| text.contains(part)),
                other => return Err(type_error(format!("nothing is in {other}"))),
            }))
        }
        "$not" => Ok(Value::Bool(!truthy(&arg))),
        "$range" => {
            let end = arg.as_i64().ok_or_else(|| type_error("$range takes a number"))?;
            Ok(Value::List((0..end).map(Value::from).collect()))
        }
        "$fmt" => Ok(Value::Str(format(list()))),
        "$set" => Ok(Value::Set(list().iter().cloned().collect())),
        "$overwrite" => Ok(Value::Ext(Box::new(Ext::Overwrite(arg)))),
        "$send" => {
            let node = arg.get("to").and_then(Value::as_str).unwrap_or_default().to_owned();
            let timeout = arg.get("timeout").filter(|limits| !limits.is_null()).map(|limits| {
                let seconds = |key| limits.get(key).and_then(Value::as_f64);
                TimeLimits { run: seconds("run"), idle: seconds("idle") }
            });
            let arg = arg.get("arg").cloned().unwrap_or_default();
            Ok(Value::Ext(Box::new(Ext::Send(Packet { node, arg, timeout }))))
        }
        "$command" => Ok(Value::Map(Map::from_iter([(COMMAND.to_owned(), arg)]))),
        "$final" => Ok(Value::Map(Map::from_iter([(FINAL.to_owned(), arg)]))),
        other => Err(type_error(format!("unknown operator {other}"))),
    }
}

pub(crate) fn lookup(path: &str, env: &Env) -> Value {
    let mut parts = path.split('.');
    let first = parts.next().and_then(|name| env.get(name)).cloned().unwrap_or_default();
    parts.fold(first, |value, part| match &value {
        Value::Map(map) => map.get(part).cloned().unwrap_or_default(),
        Value::List(list) => {
            let index = part.parse::<i64>().unwrap_or(i64::MAX);
            let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
            let index = if index < 0 { index + length } else { index };
            usize::try_from(index).ok().and_then(|at| list.get(at)).cloned().unwrap_or_default()
        }
        _ => Value::Null,
    })
}

fn add(a: Value, b: Value) -> Result<Value, NodeError> {
    match (a, b) {
        (Value::Str(a), Value::Str(b)) => Ok(Value::Str(a + &b)),
        (Value::List(mut a), Value::List(b)) => {
            a.extend(b);
            Ok(Value::List(a))
        }
        (a, b) => arithmetic(&a, &b, i64::checked_add),
    }
}

fn arithmetic(a: &Value, b: &Value, op: fn(i64, i64) -> Option<i64>) -> Result<Value, NodeError> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => {
            op(*x, *y).map(Value::from).ok_or_else(|| type_error("a number is too large"))
        }
        _ => Err(type_error(format!("cannot calculate with {a} and {b}"))),
    }
}

fn less(a: &Value, b: &Value) -> Result<bool, NodeError> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a < b),
        (Value::Str(a), Value::Str(b)) => Ok(a < b),
        _ => Err(type_error(format!("cannot compare {a} and {b}"))),
    }
}

fn length(value: &Value) -> Result<i64, NodeError> {
    let length = match value {
        Value::Str(text) => text.chars().count(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        Value::Set(set) => set.len(),
        other => return Err(type_error(format!("{other} has no length"))),
    };
    i64::try_from(length).map_err(|_| type_error("too long"))
}

fn format(parts: &[Value]) -> String {
    let Some((Value::Str(pattern), arguments)) = parts.split_first() else { return String::new() };
    let mut pieces = pattern.split("{}");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for (argument, piece) in arguments.iter().zip(pieces) {
        text.push_str(&plain(argument));
        text.push_str(piece);
    }
    text
}

/// Texts as they are, all else as JSON with sorted keys.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        other => crate::normalise::sorted_json(&crate::trace::encode(other)),
    }
}
