use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json, json};

use crate::engine::Compiled;
use crate::engine::Layout;

/// The JSON Schemas of a graph.
///
/// They are derived from the types of the fields through serde: `{}` is the schema of a type about
/// which serde reveals nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Schemas {
    /// The input of a run.
    pub input: Json,
    /// What a run returns.
    pub output: Json,
    /// The state.
    pub state: Json,
    /// The context that the graph reads from JSON, if any.
    pub context: Option<Json>,
}

impl Schemas {
    pub(super) fn of(layout: &Layout, contexts: Vec<Json>) -> Self {
        let all = |channels: &[usize], updates: bool| object(layout, channels, updates);
        let open: Vec<usize> =
            (0..layout.channels.len()).filter(|at| !layout.channels[*at].private).collect();
        let context = match <[Json; 1]>::try_from(contexts) {
            Ok([one]) => Some(one),
            Err(several) if several.is_empty() => None,
            Err(several) => Some(json!({ "allOf": several })),
        };
        Self {
            input: all(&open, true),
            output: all(&layout.output, false),
            state: all(&layout.shown, false),
            context: context.map(with_titles),
        }
    }
}

fn object(layout: &Layout, channels: &[usize], updates: bool) -> Json {
    let properties: JsonMap<String, Json> = channels
        .iter()
        .map(|at| {
            let (value, update) = layout.schema.schemas(*at);
            (layout.channels[*at].name.to_string(), if updates { update } else { value })
        })
        .collect();
    with_titles(json!({ "title": &*layout.name, "type": "object", "properties": properties }))
}

/// Gives properties the titles that forms show: `model_name` is `Model Name`.
fn with_titles(mut schema: Json) -> Json {
    for (name, property) in schema["properties"].as_object_mut().into_iter().flatten() {
        if let Json::Object(property) = property {
            property.entry("title").or_insert_with(|| title(name).into());
        }
    }
    schema
}

fn title(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty()).map(|word| {
        let mut letters = word.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The schemas of the subgraphs.
pub(super) fn inside(graph: &Arc<Compiled>, around: &str, recurse: bool) -> Vec<(String, Schemas)> {
    let mut found = Vec::new();
    for node in &graph.layout.nodes {
        let Some(inner) = &node.inner else { continue };
        let name = format!("{around}{}", node.name);
        found.push((name.clone(), Schemas::of(&inner.layout, Vec::new())));
        if recurse {
            found.extend(inside(inner, &format!("{name}|"), true));
        }
    }
    found
}
