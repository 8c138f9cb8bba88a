//! The tools of a server in the form for a model: with names that all providers accept, and without hidden characters.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::config::{McpServerSettings, ServerKind};
use co_llm::ToolSpec;
use co_mcp::ServerTool;
use co_text::{printable, start_of};

/// The longest name of a tool that all providers accept, in bytes.
const LONGEST_NAME: usize = 64;

/// The longest description of a tool, and the longest text in its schema, in bytes.
const LONGEST_DESCRIPTION: usize = 4 << 10;

/// The largest nesting depth of a schema that a model gets. The parser has a limit of its own.
const DEEPEST: usize = 32;

/// A tool of a server in the form for a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownTool {
    pub spec: ToolSpec,
    /// The server's own name of the tool.
    pub name: String,
    /// The name of the tool in rules. It is the name in `spec` without the name of the server.
    pub rule_name: String,
    /// A hash of the server and of all that it says about the tool: its name, its description and its schema.
    pub hash: String,
}

/// Returns the tools of a server that a model may call, and the number of the other tools.
pub fn shown_tools(settings: &McpServerSettings, tools: &[ServerTool]) -> (Vec<ShownTool>, usize) {
    let server = &settings.name;
    let mut shown: Vec<ShownTool> = Vec::new();
    let (mut names, mut specs) = (HashSet::new(), HashSet::new());
    for tool in tools {
        let Some(schema) = schema(&tool.schema) else {
            continue;
        };
        let description = start_of(&tool.description, LONGEST_DESCRIPTION);
        let spec = ToolSpec {
            name: name(server, &tool.name),
            description: printable(description),
            schema,
        };
        if names.insert(&tool.name) && specs.insert(spec.name.clone()) {
            let start = format!("{server}__");
            let rule_name = spec.name.strip_prefix(&start).unwrap_or(&spec.name);
            shown.push(ShownTool {
                rule_name: rule_name.to_owned(),
                hash: tool_hash(settings, tool),
                spec,
                name: tool.name.clone(),
            });
        }
    }
    let others = tools.len() - shown.len();
    (shown, others)
}

/// Returns the name of a tool for a model: `server__tool`. If a provider would not accept the name, replaces the characters that it
/// does not accept, cuts the name, and adds a hash.
fn name(server: &str, tool: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let whole = format!("{server}__{tool}");
    if whole.chars().all(plain) && whole.len() <= LONGEST_NAME {
        return whole;
    }
    let hash = format!("{:x}", Sha256::digest(tool.as_bytes()));
    let clean: String = whole
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    let start = start_of(&clean, LONGEST_NAME - 9);
    format!("{start}_{}", &hash[..8])
}

/// Returns a hash of a tool of a server. The order of the fields does not count.
pub fn tool_hash(settings: &McpServerSettings, tool: &ServerTool) -> String {
    let schema = sorted(&Value::Object(tool.schema.clone()));
    let server = server_hash(settings);
    hash(&json!([server, tool.name, tool.description, schema]))
}

/// Returns a hash of what a server is: its program with the arguments, or its address. Its name is not a part of it, because an
/// answer of the person must not hold for another server of the same name.
pub fn server_hash(settings: &McpServerSettings) -> String {
    hash(&match &settings.kind {
        ServerKind::Program(program) => json!(program.cmd),
        ServerKind::Http(server) => json!(server.url),
        ServerKind::Wrong(why) => json!({ "wrong": why }),
    })
}

/// Returns half of the digest of a value, which is long enough: nobody finds two values with the same one.
fn hash(value: &Value) -> String {
    let digest = format!("{:x}", Sha256::digest(value.to_string().as_bytes()));
    digest[..digest.len() / 2].to_owned()
}

/// Returns a value with the fields of each object in alphabetical order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(parts) => parts.iter().map(sorted).collect(),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            let one = |(name, field): (&String, &Value)| (name.clone(), sorted(field));
            Value::Object(fields.into_iter().map(one).collect())
        }
        other => other.clone(),
    }
}

/// Returns the schema of a tool's arguments. Returns `None` if the schema is nested too deeply or does not describe an object.
fn schema(given: &Map<String, Value>) -> Option<Value> {
    let mut schema = given.clone();
    schema.shift_remove("$schema");
    match schema.get("type") {
        None => {
            schema.insert("type".to_owned(), json!("object"));
        }
        Some(kind) if kind == "object" => {}
        Some(_) => return None,
    }
    if !schema.get("properties").is_some_and(Value::is_object) {
        schema.insert("properties".to_owned(), json!({}));
    }
    let mut schema = Value::Object(schema);
    clean(&mut schema, DEEPEST)?;
    Some(schema)
}

/// Makes the texts in a schema printable. Returns `None` if the schema is nested more deeply than `deepest`.
fn clean(value: &mut Value, deepest: usize) -> Option<()> {
    let deeper = deepest.checked_sub(1)?;
    match value {
        Value::String(text) => *text = printable(start_of(text, LONGEST_DESCRIPTION)),
        Value::Array(parts) => {
            for part in parts {
                clean(part, deeper)?;
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if printable(name) != *name {
                    return None;
                }
                clean(field, deeper)?;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HttpServer, ServerProgram};

    fn tool(name: &str, description: &str, schema: Value) -> ServerTool {
        let Value::Object(schema) = schema else {
            panic!("a schema is an object")
        };
        ServerTool {
            name: name.to_owned(),
            description: description.to_owned(),
            schema,
        }
    }

    fn server(name: &str) -> McpServerSettings {
        McpServerSettings {
            name: name.to_owned(),
            ..McpServerSettings::default()
        }
    }

    fn names(tools: &[ServerTool]) -> Vec<String> {
        let (shown, _) = shown_tools(&server("s"), tools);
        shown.into_iter().map(|it| it.spec.name).collect()
    }

    #[test]
    fn names_are_of_the_form_that_providers_take_and_unique() {
        let long = "x".repeat(80);
        let tools: Vec<_> = ["read", "read", "a.b", "a b", "run_shell_command", &long, ""]
            .map(|name| tool(name, "", json!({})))
            .into();
        let names = names(&tools);
        assert_eq!(names.len(), 6, "{names:?}");
        assert_eq!(names[0], "s__read");
        assert!(names[1].starts_with("s__a_b_") && names[2].starts_with("s__a_b_"));
        assert_ne!(names[1], names[2]);
        assert_eq!(names[3], "s__run_shell_command");
        let form = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        for name in &names {
            assert!(
                name.len() <= LONGEST_NAME && name.chars().all(form),
                "{name}"
            );
        }
    }

    #[test]
    fn hidden_characters_are_shown_and_long_texts_are_cut() {
        let described = tool(
            "t",
            &format!("Adds\u{200b} \u{202e}two.{}", "é".repeat(5_000)),
            json!({ "properties": { "a": { "description": "one\u{e0041}" } }, "$schema": "x" }),
        );
        let (shown, _) = shown_tools(&server("s"), &[described]);
        let spec = &shown[0].spec;
        assert!(spec.description.starts_with("Adds\\u{200b} \\u{202e}two."));
        assert!(spec.description.len() <= LONGEST_DESCRIPTION + 20);
        assert_eq!(
            spec.schema["properties"]["a"]["description"],
            "one\\u{e0041}"
        );
        assert_eq!(spec.schema["type"], "object");
        assert_eq!(spec.schema.get("$schema"), None);
    }

    #[test]
    fn what_a_provider_or_a_window_cannot_take_is_left_out() {
        let mut deep = json!({});
        for _ in 0..DEEPEST {
            deep = json!({ "items": deep });
        }
        let odd = [
            tool("deep", "", json!({ "properties": { "a": deep } })),
            tool("list", "", json!({ "type": "array" })),
            tool("hidden", "", json!({ "properties": { "a\u{200b}": {} } })),
        ];
        assert_eq!(shown_tools(&server("s"), &odd), (Vec::new(), 3));
    }

    #[test]
    fn a_hash_changes_with_what_a_server_says() {
        let hash = |name: &str, about: &str, schema: Value| {
            let (shown, _) = shown_tools(&server("s"), &[tool(name, about, schema)]);
            (shown[0].rule_name.clone(), shown[0].hash.clone())
        };
        let first = hash(
            "a",
            "A",
            json!({ "properties": { "b": {}, "c": { "x": 1, "y": 2 } } }),
        );
        assert_eq!((first.0.as_str(), first.1.len()), ("a", 32));
        let order = json!({ "properties": { "c": { "y": 2, "x": 1 }, "b": {} } });
        assert_eq!(hash("a", "A", order), first);
        for other in [
            hash(
                "a",
                "A.",
                json!({ "properties": { "b": {}, "c": { "x": 1, "y": 2 } } }),
            ),
            hash(
                "a",
                "A",
                json!({ "properties": { "b": {}, "c": { "x": 1, "y": 3 } } }),
            ),
        ] {
            assert_ne!(other, first);
        }
        assert_ne!(hash("a.b", "", json!({})), hash("a b", "", json!({})));
        let of = |kind: ServerKind| {
            let settings = McpServerSettings {
                kind,
                ..server("s")
            };
            let tool = tool("a", "A", json!({}));
            (server_hash(&settings), tool_hash(&settings, &tool))
        };
        let program = |cmd: &[&str]| {
            ServerKind::Program(ServerProgram {
                cmd: cmd.iter().map(|it| (*it).to_owned()).collect(),
                ..ServerProgram::default()
            })
        };
        let http = |url: &str| {
            ServerKind::Http(HttpServer {
                url: url.to_owned(),
                ..HttpServer::default()
            })
        };
        let kinds = [
            program(&["x"]),
            program(&["x", "y"]),
            program(&["x y"]),
            http("https://a.example/mcp"),
            http("https://b.example/mcp"),
        ];
        let hashes = kinds.map(of);
        for (at, (server, tool)) in hashes.iter().enumerate() {
            let others = &hashes[at + 1..];
            assert!(others.iter().all(|it| it.0 != *server && it.1 != *tool));
        }
    }

    #[test]
    fn the_same_list_gives_the_same_bytes() {
        let list = [
            tool("b", "B", json!({ "z": 1, "a": 2 })),
            tool("a", "A", json!({})),
        ];
        assert_eq!(
            shown_tools(&server("s"), &list),
            shown_tools(&server("s"), &list)
        );
        assert_eq!(names(&list), ["s__b", "s__a"]);
    }
}
