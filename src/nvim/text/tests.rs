use proptest::prelude::*;
use serde_json::json;

use super::*;

/// The types of all messages of Lua.
const TYPES: &str = include_str!("../../../lua/co/types/from_editor.lua");

/// The fields that have one of a few words, which Lua chooses.
const CHOSEN: [&str; 6] = ["type", "decision", "scope", "kind", "environment", "unit"];

/// Messages of each type, with all their fields.
fn messages() -> Vec<Value> {
    let host = json!({ "shell": ["sh", "-c"], "variables": ["A=b"] });
    let options = json!({ "environment": "inherit", "timeout": 1, "trial": true, "host": host });
    let image = json!({ "media_type": "image/png", "data": "QQ==" });
    let context = json!([{ "name": "@buffer", "text": "t", "image": image }]);
    let edit = json!({ "start": [0, 0], "end": [0, 1], "text": "t" });
    let query = |query: serde_json::Value| json!({ "type": "read_context", "chat": 1, "request": 2, "cwd": "/", "word": "@x", "query": query });
    let place = json!({ "file": "/f", "row": 1, "character": 2, "unit": "utf-16" });
    let answer = |fields: serde_json::Value| {
        let hunk = json!({ "accept": true, "lines": ["a", "b"], "comment": "c" });
        let mut answer = json!({ "type": "answer", "id": 3, "reason": "r", "hunks": [hunk] });
        answer
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        answer
    };
    let all = [
        json!({ "type": "hello", "protocol": 1, "version": "1", "settings": { "a": ["b"] } }),
        json!({ "type": "settings", "settings": { "a": { "b": "c" } } }),
        json!({ "type": "sandbox", "confinement": "landlock" }),
        json!({ "type": "prompt", "chat": 1, "text": "t", "cwd": "/", "context": context, "steer": true,
            "range": { "file": "/a", "first": 1, "last": 2 },
            "file": { "path": "/p", "text": "t", "prompt": "p" } }),
        json!({ "type": "check_prompt_file", "chat": 1, "cwd": "/", "request": 2, "name": "n", "path": "/p", "text": "t" }),
        json!({ "type": "cancel", "chat": 1 }),
        json!({ "type": "read_review", "id": 1, "file": 0, "from": 2 }),
        json!({ "type": "keep_answers", "id": 1, "file": 0,
            "answers": [{ "part": 1, "accept": true, "lines": ["l"], "comment": "c" }] }),
        json!({ "type": "earlier_text", "chat": 1, "above": 2 }),
        json!({ "type": "keep_plan", "chat": 1, "cwd": "/", "text": "t" }),
        json!({ "type": "draft", "chat": 1, "cwd": "/", "text": "t", "begins": true }),
        json!({ "type": "command", "chat": 1, "name": "!", "args": "ls", "cwd": "/", "options": options }),
        json!({ "type": "write_commit", "chat": 1, "cwd": "/", "directory": "/d", "variables": [["GIT_DIR", "/g"]] }),
        query(json!({ "kind": "file", "path": "/a" })),
        query(json!({ "kind": "text", "paths": ["/a"], "text": "t", "lines": "l" })),
        query(json!({ "kind": "diff" })),
        query(json!({ "kind": "commit", "revision": "HEAD" })),
        query(json!({ "kind": "search", "text": "t" })),
        query(json!({ "kind": "places", "definitions": [place], "references": [], "more": 4 })),
        json!({ "type": "close", "chat": 1 }),
        answer(json!({ "decision": "edited", "command": "ls" })),
        answer(json!({ "decision": "always", "scope": "prefix" })),
        json!({ "type": "run", "run": 1, "command": "ls", "cwd": "/", "stdin": "i", "options": options }),
        json!({ "type": "read_output", "request": 1, "file": "/f", "lines": 2 }),
        json!({ "type": "run_input", "run": 1, "data": "d", "close": false }),
        json!({ "type": "run_resize", "run": 1, "size": { "columns": 1, "rows": 2 } }),
        json!({ "type": "cancel_run", "run": 1 }),
        json!({ "type": "agent_call", "request": 1, "client": 2, "agent": "a", "tool": "t", "arguments": "{}", "cwd": "/" }),
        json!({ "type": "cancel_agent_call", "request": 1 }),
        json!({ "type": "keep_run", "run": 1, "keep": true }),
        json!({ "type": "buffers", "request": 1, "buffers": [{ "file": "/f", "text": "t\n", "tick": 2,
            "encoding": "utf-8", "modified": true, "problem": "p" }] }),
        json!({ "type": "buffer_changed", "request": 1, "moved": false, "problem": "p", "unsaved": "u", "text": "t",
            "diagnostics": ["1:2: error: d"] }),
        json!({ "type": "editor_answer", "request": 1, "entries": [{ "file": "/f", "line": 1, "column": 2, "text": "t" }],
            "files": [{ "file": "/f", "tick": 3, "edits": [edit] }], "unit": "utf-16", "more": 4, "problem": "p" }),
        json!({ "type": "hooks", "before_command": true }),
        json!({ "type": "command_hooked", "request": 1, "refusal": "r" }),
        json!({ "type": "file_edited", "request": 1, "problem": "p" }),
        json!({ "type": "list_models", "chat": 1, "head": "h" }),
        json!({ "type": "failed", "request": 1 }),
        json!({ "type": "saved", "file": "/f" }),
    ];
    all.into_iter().map(value).collect()
}

fn value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Bool(bool) => bool.into(),
        serde_json::Value::Number(number) => number.as_u64().unwrap().into(),
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(items) => Value::Array(items.into_iter().map(value).collect()),
        serde_json::Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Map(
                fields
                    .map(|(name, field)| (name.into(), value(field)))
                    .collect(),
            )
        }
        serde_json::Value::Null => Value::Nil,
    }
}

/// Returns a string as Neovim packs it: a str, whatever is in it.
fn packed(bytes: &[u8]) -> Value {
    let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
    let packed = [&[0xda], &length[..], bytes].concat();
    rmpv::decode::read_value(&mut packed.as_slice()).unwrap()
}

/// Returns the strings of a message whose bytes Lua does not choose.
fn strings<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
    match value {
        Value::String(_) => found.push(value),
        Value::Array(items) => items.iter_mut().for_each(|item| strings(item, found)),
        Value::Map(fields) => {
            for (name, field) in fields {
                if !CHOSEN.contains(&name.as_str().unwrap_or_default()) {
                    strings(field, found);
                }
            }
        }
        _ => {}
    }
}

/// Puts a string into one field of a message of each type in turn, and returns what is read of them.
fn with(bytes: &[u8]) -> Vec<(String, Received)> {
    let mut all = Vec::new();
    for mut message in messages() {
        let mut of_message = Vec::new();
        strings(&mut message, &mut of_message);
        for at in 0..of_message.len() {
            let mut changed = message.clone();
            let mut of_changed = Vec::new();
            strings(&mut changed, &mut of_changed);
            *of_changed[at] = packed(bytes);
            all.push((changed.to_string(), read(changed)));
        }
    }
    all
}

#[test]
fn each_type_of_message_is_tried() {
    let named = |line: &str| {
        let name = line.strip_prefix("---@field type")?;
        name.split('\'').nth(1).map(str::to_owned)
    };
    let mut types: Vec<String> = TYPES.lines().filter_map(named).collect();
    let of = |message: &Value| field(message, "type").unwrap().as_str().unwrap().to_owned();
    let mut tried: Vec<String> = messages().iter().map(of).collect();
    for list in [&mut types, &mut tried] {
        list.sort();
        list.dedup();
    }
    assert_eq!(tried, types);
    for message in messages() {
        assert!(matches!(
            read(message),
            Received::Message {
                replaced: false,
                ..
            }
        ));
    }
}

#[test]
fn only_names_and_arguments_are_refused() {
    let refused = with(b"a\xffb")
        .into_iter()
        .filter_map(|(message, read)| match read {
            Received::Refused(refusal) => Some((refusal.kind, refusal.answers)),
            Received::Message { .. } => None,
            Received::Unknown(error) => panic!("{error}: {message}"),
        });
    let mut kinds: Vec<_> = refused.collect();
    kinds.sort();
    kinds.dedup();
    let expected = [
        ("agent_call", None),
        ("buffers", Some(1)),
        ("check_prompt_file", None),
        ("command", None),
        ("draft", None),
        ("editor_answer", Some(1)),
        ("hello", None),
        ("keep_plan", None),
        ("prompt", None),
        ("read_context", None),
        ("read_output", None),
        ("sandbox", None),
        ("settings", None),
        ("write_commit", None),
    ];
    let expected = expected.map(|(kind, answers)| (kind.to_owned(), answers));
    assert_eq!(kinds, expected);
}

#[test]
fn a_text_is_escaped_and_what_takes_bytes_keeps_them() {
    let message = |mut message: serde_json::Value, texts: &[(&str, &[u8])]| {
        let fields = texts
            .iter()
            .map(|(name, bytes)| ((*name).into(), packed(bytes)));
        let Value::Map(mut all) = value(message.take()) else {
            panic!("it is a map");
        };
        all.extend(fields);
        match read(Value::Map(all)) {
            Received::Message { message, replaced } => (message, replaced),
            other => panic!("{other:?}"),
        }
    };
    let (FromEditor::Prompt { text, .. }, true) = message(
        json!({ "type": "prompt", "chat": 1, "cwd": "/" }),
        &[("text", b"d\xe9j\xe0 \xc3\xa9")],
    ) else {
        panic!("a prompt");
    };
    assert_eq!(text, "d\u{fffd}E9j\u{fffd}E0 \u{e9}");
    let (FromEditor::BufferChanged { changed, .. }, false) = message(
        json!({ "type": "buffer_changed", "request": 1 }),
        &[("text", b"a\xff"), ("unsaved", b"b\xff")],
    ) else {
        panic!("an answer of Neovim");
    };
    assert_eq!(changed.text.unwrap(), b"a\xff");
    assert_eq!(changed.unsaved.unwrap(), "b\u{fffd}FF");
    let (FromEditor::Answer(answer), _) = message(
        json!({ "type": "answer", "id": 1, "decision": "edited" }),
        &[("command", b"rm d\xe9")],
    ) else {
        panic!("an answer");
    };
    assert_eq!(answer.command.unwrap(), b"rm d\xe9");
}

proptest! {
    #[test]
    fn no_bytes_in_a_message_make_it_unknown(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
        for (message, read) in with(&bytes) {
            prop_assert!(!matches!(read, Received::Unknown(_)), "{message}");
        }
    }
}
