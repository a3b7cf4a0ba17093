//! The OpenAPI document as a page for people. It needs nothing but itself.

use std::fmt::{self, Write as _};
use std::sync::LazyLock;

use serde_json::Value as Json;

use super::openapi::document;
use super::operation::Resource;

static PAGE: LazyLock<String> =
    LazyLock::new(|| write_page(document()).expect("a string can be written to"));

pub(super) fn page() -> &'static str {
    &PAGE
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1c1c1c;background:#fff}code,pre{font:13px/1.45 ui-monospace,monospace}pre{background:#f4f4f4;padding:.7rem;\
overflow:auto;border-radius:4px}summary{cursor:pointer;padding:.25rem 0}summary b{display:inline-block;width:4.2rem}\
details details{margin-left:1rem}h2{margin-top:2rem;border-bottom:1px solid #ccc}td{padding:.1rem .8rem .1rem 0;\
vertical-align:top}@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}pre{background:#262626}}";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn write_page(document: &Json) -> Result<String, fmt::Error> {
    let mut page = String::from("<!doctype html><html lang=en><meta charset=utf-8>");
    write!(
        page,
        "<meta name=viewport content=\"width=device-width\"><title>superstep API</title>"
    )?;
    write!(page, "<style>{STYLE}</style><h1>superstep API</h1>")?;
    write!(page, "<p>{}", escaped(document["info"]["description"].as_str().unwrap_or_default()))?;
    write!(page, " The same for programs: <a href=\"openapi.json\">openapi.json</a>.</p>")?;
    for tag in Resource::ALL {
        let operations = document["paths"].as_object().into_iter().flatten();
        let operations = operations.flat_map(|(path, methods)| {
            let methods = methods.as_object().into_iter().flatten();
            methods.map(move |(method, operation)| (path, method, operation))
        });
        let mut under =
            operations.filter(|(_, _, operation)| operation["tags"][0] == tag.as_str()).peekable();
        if under.peek().is_some() {
            write!(page, "<h2>{}</h2>", tag.as_str())?;
        }
        for (path, method, operation) in under {
            write_one(&mut page, path, method, operation)?;
        }
    }
    write!(page, "<h2>Objects</h2>")?;
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        write!(page, "<details id=\"{0}\"><summary><code>{0}</code></summary>", escaped(name))?;
        write!(page, "<pre>{}</pre></details>", escaped(&format!("{schema:#}")))?;
    }
    Ok(page)
}

fn write_one(page: &mut String, path: &str, method: &str, operation: &Json) -> fmt::Result {
    let summary = escaped(operation["summary"].as_str().unwrap_or_default());
    let method = method.to_ascii_uppercase();
    write!(
        page,
        "<details><summary><b>{method}</b><code>{}</code> {summary}</summary>",
        escaped(path)
    )?;
    write!(page, "<table>")?;
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let text = |key: &str| escaped(parameter[key].as_str().unwrap_or_default());
        let (name, place, about) = (text("name"), text("in"), text("description"));
        write!(page, "<tr><td><code>{name}</code><td>{place}<td>{about}")?;
    }
    write!(page, "</table>")?;
    if let Some(body) = operation["requestBody"]["content"]["application/json"].get("schema") {
        write!(page, "<p>Body: {}", shown(body))?;
    }
    write!(page, "<table>")?;
    for (status, answer) in operation["responses"].as_object().into_iter().flatten() {
        let about = escaped(answer["description"].as_str().unwrap_or_default());
        let content = answer["content"].as_object().and_then(|content| content.iter().next());
        let content = content.map_or_else(String::new, |(kind, content)| match &**kind {
            "application/json" => shown(&content["schema"]),
            kind => format!("<code>{}</code>", escaped(kind)),
        });
        write!(page, "<tr><td>{status}<td>{about}<td>{content}")?;
    }
    write!(page, "</table></details>")
}

/// A schema, or the link to it.
fn shown(schema: &Json) -> String {
    let named = |schema: &Json| {
        let name = schema["$ref"].as_str()?.rsplit('/').next().map(escaped)?;
        Some(format!("<a href=\"#{name}\"><code>{name}</code></a>"))
    };
    if let Some(link) = named(schema) {
        return link;
    }
    match named(&schema["items"]) {
        Some(link) => format!("list of {link}"),
        None => format!("<code>{}</code>", escaped(&schema.to_string())),
    }
}
