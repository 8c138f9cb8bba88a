//! The requests of a whole conversation, byte for byte, in each of the five wire formats.

use serde_json::{Value, json};

use crate::llm::mock::Mock;
use crate::llm::wire::Wire;
use crate::support::recorder::Recorder;
use crate::support::workspace::Workspace;

use super::scene::Scene;

/// The model's words: code, blank lines, tabs, trailing blanks, letters of several bytes.
const WORDS: [&str; 6] = [
    "I read the notes first.\n\nThey may\tsay  more:\n",
    "They hold:\n\n```rust\nfn main() {\n\n\tprintln!(\"é 👩‍👩‍👧\");\n}\n```\n\n- one  \n- two",
    "  A folder,\n\n\n\tthen 🦀.",
    "Done.\n\n    indented\n\n",
    "\n\nOnce more…",
    "The end: \"quoted\" \\ and 漢字.\n",
];

const PROMPTS: [&str; 3] = ["look at the notes", "make a folder", "once again"];

/// Two steps for each prompt: one that calls a tool, and one that answers.
fn fixtures() -> Value {
    let call = |name: &str, arguments: Value| json!([{ "name": name, "arguments": arguments.to_string() }]);
    let read = json!({ "path": "notes.txt" });
    let calls = [
        Some(call("read_file", read.clone())),
        None,
        Some(call("run_shell_command", json!({ "cmd": "mkdir out" }))),
        None,
        Some(call("read_file", read)),
        None,
    ];
    let steps = WORDS.iter().zip(calls).enumerate();
    steps
        .map(|(step, (words, calls))| {
            let mut response = json!({ "content": words });
            if let Some(calls) = calls {
                response["toolCalls"] = calls;
            }
            json!({
                "match": { "userMessage": PROMPTS[step / 2], "hasToolResult": step % 2 == 1 },
                "response": response,
                "chunkSize": 9, "latency": 60 + 5 * step,
            })
        })
        .collect()
}

/// Returns the bytes of a request up to the end of its last message.
fn told(body: &[u8]) -> String {
    let text = std::str::from_utf8(body).unwrap();
    let parsed: Value = serde_json::from_str(text).unwrap();
    let key = ["messages", "input", "contents"]
        .into_iter()
        .find(|key| parsed[*key].is_array())
        .unwrap();
    let messages = format!("\"{key}\":{}", parsed[key]);
    let at = text.find(&messages).unwrap();
    let told = &text[..at + messages.len() - "]".len()];
    // The marks for a cache move to the last messages. They are no part of what it compares.
    told.replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

fn converse(wire: Wire) {
    let mock = Mock::start(&fixtures());
    let recorder = Recorder::start(&mock.address());
    let workspace = Workspace::new();
    for place in ["notes.txt", "sub/notes.txt"] {
        workspace.write(place, "a\tb\n\nc\n");
    }
    let scene = Scene::in_workspace(
        workspace,
        json!({
            "provider": wire.provider(),
            "base_url": format!("http://{}", recorder.address()),
            "model": "test-model",
            "allow": ["mkdir"],
        }),
        &[
            ("ANTHROPIC_API_KEY", "test-key"),
            ("OPENAI_API_KEY", "test-key"),
            ("GEMINI_API_KEY", "test-key"),
        ],
    );
    for (turn, prompt) in PROMPTS.into_iter().enumerate() {
        if turn == 2 {
            // A change of place comes in a note; the system prompt stays.
            scene.co("/cd sub");
        }
        scene.co(prompt);
        scene.wait_turns(turn as u64 + 1);
    }
    let chat = scene.chat();
    let bodies = recorder.bodies();
    let requests: Vec<_> = bodies
        .iter()
        .filter(|body| !String::from_utf8_lossy(body).starts_with("{\"model\":\"test-model\"}"))
        .collect();
    assert_eq!(requests.len(), WORDS.len(), "{wire:?}: {chat}");
    for (step, pair) in requests.windows(2).enumerate() {
        let [before, after] = [told(pair[0]), told(pair[1])];
        assert!(
            after.starts_with(&before),
            "{wire:?}: request {} does not begin like the one before it:\n{before}\n{after}",
            step + 1
        );
    }
    let last = told(requests[WORDS.len() - 1]);
    assert!(last.contains("[The working directory is now "), "{last}");
    // The last one holds each answer as one text, as it was said.
    for words in &WORDS[..WORDS.len() - 1] {
        let text = json!(words).to_string();
        assert_eq!(last.matches(&text).count(), 1, "{wire:?}: {text} in {last}");
    }
    assert!(chat.contains(WORDS[1]), "{chat}");
}

#[test]
fn openai_is_sent_the_same_beginning() {
    converse(Wire::OpenAi);
}

#[test]
fn responses_is_sent_the_same_beginning() {
    converse(Wire::Responses);
}

#[test]
fn anthropic_is_sent_the_same_beginning() {
    converse(Wire::Anthropic);
}

#[test]
fn gemini_is_sent_the_same_beginning() {
    converse(Wire::Gemini);
}

#[test]
fn ollama_is_sent_the_same_beginning() {
    converse(Wire::Ollama);
}
