//! A chat by keys with a server that refuses what Mistral refuses.

use serde_json::json;

use super::scene::Scene;
use crate::llm::strict::refused_by_mistral;
use crate::support::http::{Gate, Reply};

/// Returns a PNG of which only the header and the end exist.
fn png(width: u32, height: u32) -> Vec<u8> {
    let sides = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let start = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    let end = b"\x08\x02\0\0\0\0\0\0\0\0\0\0\0IEND\xaeB`\x82";
    [&start[..], &sides, end].concat()
}

#[test]
fn each_request_of_a_chat_is_accepted_whatever_the_person_does() {
    let (held, never) = (Gate::default(), Gate::default());
    let scene = Scene::with(json!({ "model": "devstral-small", "images": true }), &[]);
    std::fs::write(scene.workspace.path().join("wide.png"), png(10_001, 1)).unwrap();
    scene.replies([
        Reply::text("I look.").hold(&held).and_shell("call_1", "ls"),
        Reply::text("All."),
        Reply::shell("call:1", "ls"),
        Reply::text("Half of").hold(&never),
        Reply::text("Whole."),
        Reply::text("No picture."),
        Reply::text("<tool_call>\n{\"name\": \"run_shell_command\", \"arguments\": {}}"),
        Reply::text("Bye."),
    ]);
    scene.co("work");
    scene.wait_text("I look.");
    scene.co("/steer faster");
    scene.wait_text("(1 steering)");
    held.open();
    scene.wait_turns(1);
    scene.co("more");
    scene.wait_text("Half of");
    scene.interrupt();
    scene.wait_turns(2);
    scene.co("go on");
    scene.wait_turns(3);
    scene.co("what is in @file:wide.png ?");
    scene.wait_text("left out: @file:wide.png: it has 10001x1 pixels");
    scene.wait_turns(4);
    scene.co("look again");
    scene.wait_text("the model wrote a call as text");
    scene.wait_turns(5);
    scene.co("bye");
    scene.wait_turns(6);
    let requests = scene.server.requests();
    assert_eq!(requests.len(), 8);
    for request in requests {
        assert_eq!(refused_by_mistral(&request.body), None, "{}", request.body);
    }
}
