//! The OpenAPI document.

use std::sync::LazyLock;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value as Json, json};

use super::operation::{Action, Content, Operation, Resource, schema_of};
use crate::wire::{Detail, EventObject};

/// The document. It depends on nothing but the program.
static DOCUMENT: LazyLock<Json> = LazyLock::new(|| describe(&super::operations()));

pub(super) fn document() -> &'static Json {
    &DOCUMENT
}

/// Schemas of what is read and of what is written, under common names.
struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    fn new() -> Self {
        let settings = || {
            SchemaSettings::draft2020_12().with(|settings| {
                settings.definitions_path = "/components/schemas".into();
                settings.meta_schema = None;
            })
        };
        Self {
            read: settings().for_deserialize().into_generator(),
            written: settings().for_serialize().into_generator(),
        }
    }

    fn components(mut self) -> Map<String, Json> {
        let mut all = self.written.take_definitions(true);
        all.extend(self.read.take_definitions(true));
        all
    }
}

fn describe(operations: &[Operation]) -> Json {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    for operation in operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        let method = operation.method.as_str().to_ascii_lowercase();
        path[method] = describe_one(operation, &mut schemas);
    }
    let tags: Vec<_> = Resource::ALL.iter().map(|tag| json!({ "name": tag.as_str() })).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "superstep",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Threads, runs and the state of graphs. Clients of LangGraph's API work unchanged.",
        },
        "tags": tags,
        "security": [{ "key": [] }, { "bearer": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas.components(),
            "securitySchemes": {
                "key": { "type": "apiKey", "in": "header", "name": "x-api-key" },
                "bearer": { "type": "http", "scheme": "bearer" },
            },
        },
    })
}

fn describe_one(operation: &Operation, schemas: &mut Schemas) -> Json {
    let parts = operation.path.split(['/', '{', '}']).filter(|part| !part.is_empty());
    let id = parts.fold(operation.method.as_str().to_ascii_lowercase(), |id, part| id + "_" + part);
    let in_path = operation.in_path().map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": schema_in_path(operation.path, name) })
    });
    let mut parameters: Vec<_> = in_path.collect();
    for parameter in &operation.parameters {
        parameters.push(json!({
            "name": parameter.name,
            "in": parameter.place,
            "required": parameter.required,
            "description": parameter.about,
            "schema": (parameter.schema)(&mut schemas.read),
        }));
    }
    let mut json = json!({
        "operationId": id,
        "summary": operation.summary,
        "tags": [operation.access.resource.as_str()],
        // What a client must be allowed to do with the resource of the tag.
        "x-access": action_word(operation.access.action),
        "parameters": parameters,
        "responses": describe_answers(operation, schemas),
    });
    if let Some(schema) = operation.takes.body {
        let schema = schema(&mut schemas.read);
        json["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    if operation.access.action == Action::Open {
        json["security"] = json!([]);
    }
    json
}

fn action_word(action: Action) -> &'static str {
    match action {
        Action::Open => "open",
        Action::Read => "read",
        Action::Search => "search",
        Action::Create => "create",
        Action::Write => "write",
        Action::Delete => "delete",
        Action::Operate => "operate",
    }
}

/// Everything in a path is a UUID, except the namespace of a subgraph, and the graph that may stand for its assistant.
fn schema_in_path(path: &str, name: &str) -> Json {
    match name {
        "namespace" => json!({ "type": "string" }),
        "assistant_id" if path.ends_with("/graph") => json!({ "type": "string" }),
        _ => json!({ "type": "string", "format": "uuid" }),
    }
}

fn describe_answers(operation: &Operation, schemas: &mut Schemas) -> Json {
    let open = operation.access.action == Action::Open;
    let refusal = Content::Json(schema_of::<Detail<'static>>());
    let reads = operation.takes.body.is_some()
        || operation.takes.query
        || operation.in_path().next().is_some();
    let common = [
        (401, !open),
        (403, !open),
        (413, operation.takes.body.is_some()),
        (422, reads),
        (429, operation.waits()),
        (503, !open),
    ];
    let common = common.into_iter().filter(|(_, can)| *can).map(|(status, _)| (status, refusal));
    let mut answers = Map::new();
    for (status, content) in operation.answers.iter().copied().chain(common) {
        let content = match content {
            Content::Nothing => None,
            Content::Json(schema) => {
                Some(("application/json", json!(schema(&mut schemas.written))))
            }
            Content::Events => {
                let event = schemas.written.subschema_for::<EventObject>();
                Some(("text/event-stream", json!(event)))
            }
            Content::Text(kind) => Some((kind, json!({ "type": "string" }))),
        };
        let described = || json!({ "description": reason(status) });
        let answer = answers.entry(status.to_string()).or_insert_with(described);
        if let Some((kind, schema)) = content {
            answer["content"][kind] = json!({ "schema": schema });
        }
    }
    answers.into()
}

fn reason(status: u16) -> &'static str {
    match status {
        101 => "The connection is a websocket now",
        200 => "Done",
        202 => "Accepted",
        204 => "Done, and there is nothing to say",
        400 => "The request makes no sense here",
        401 => "No valid key",
        403 => "The key does not allow it",
        404 => "There is no such object",
        409 => "Something else is there, or in progress",
        413 => "The body is too large",
        426 => "The request does not ask for a websocket",
        422 => "The request does not have the right form",
        429 => "Too much to do; try again",
        503 => "The database does not answer; try again",
        _ => "",
    }
}
