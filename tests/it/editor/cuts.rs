//! A chat whose server breaks off after any part of an answer.

use serde_json::json;

use crate::support::http::Reply;

use super::scene::Scene;

/// The number of places where the answer is cut.
const CUTS: usize = 60;

/// Returns an answer of a text and a call of a command, as the server sends it.
fn stream(cmd: &str) -> String {
    let arguments = json!({ "cmd": cmd }).to_string();
    let (first, second) = arguments.split_at(arguments.len() / 2);
    let call = |arguments: &str| json!({ "index": 0, "function": { "arguments": arguments } });
    let mut named = call(first);
    named["id"] = json!("call_1");
    named["function"]["name"] = json!("run_shell_command");
    let choice = |delta, reason| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
    let none = || serde_json::Value::Null;
    let frames = [
        choice(json!({ "role": "assistant", "content": "" }), none()),
        choice(json!({ "content": "I run " }), none()),
        choice(json!({ "content": "it." }), none()),
        choice(json!({ "tool_calls": [named] }), none()),
        choice(json!({ "tool_calls": [call(second)] }), none()),
        choice(json!({}), json!("tool_calls")),
    ];
    let frames = frames.map(|frame| format!("data: {frame}\n\n"));
    frames.concat() + "data: [DONE]\n\n"
}

#[test]
fn an_answer_that_breaks_off_anywhere_loses_nothing_and_runs_nothing_twice() {
    let scene = Scene::with(json!({ "auto_confirm": true }), &[]);
    let (mut repeated, mut kept, mut complete) = (0, 0, 0);
    for cut in 0..CUTS {
        let name = format!("ran-{cut}");
        let whole = stream(&format!("printf x >>{name}"));
        let bytes = &whole.as_bytes()[..whole.len() * cut / (CUTS - 1)];
        scene.server.forget();
        scene.replies([
            Reply::new().raw(bytes).cut(),
            Reply::text(&format!("The end of {cut}.")),
        ]);
        let before = scene.server.requests().len();
        scene.co(&format!("begin {cut}"));
        scene.wait_turns(cut as u64 + 1);
        let requests = &scene.server.requests()[before..];
        let ran = std::fs::read_to_string(scene.workspace.path().join(&name)).unwrap_or_default();
        let said = String::from_utf8_lossy(bytes);
        // A frame counts once its line has ended.
        let frames = said
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        let frames: String = frames.collect();
        let text = ["\"I run \"", "\"it.\""].map(|piece| frames.contains(piece));
        let place = format!("cut {cut}, after {said}");
        match (requests.len(), ran.as_str()) {
            // The call ran once, and the model was told.
            (2, "x") => {
                assert!(frames.contains("\"tool_calls\"}"), "{place}");
                complete += 1;
            }
            // Nothing was kept, so the same request was sent again.
            (2, "") => {
                assert_eq!(text, [false; 2], "{place}");
                assert_eq!(requests[0].body, requests[1].body, "{place}");
                repeated += 1;
            }
            // What came is kept and shown, and nothing was sent again.
            (1, "") => {
                let items = scene.items();
                let answer = items.iter().rev().take_while(|item| item["item"] != "user");
                let mut pieces: Vec<_> = answer.filter_map(|item| item["text"].as_str()).collect();
                pieces.reverse();
                let expected = if text[1] { "I run it." } else { "I run " };
                assert_eq!(pieces.concat(), expected, "{place}");
                kept += 1;
            }
            other => panic!("{place}: {other:?}"),
        }
    }
    assert!(
        repeated > 10 && kept > 20 && complete > 1,
        "{repeated} {kept} {complete}"
    );
}
