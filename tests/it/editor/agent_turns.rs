//! Turns of an agent one after the other: the queue of prompts, the person's buffers, and the review of several turns.

use serde_json::{Value, json};

use super::agents::{call, ended, message, scene, scene_with};
use super::scene::Scene;
use crate::support::DEADLINE;
use crate::support::proc::wait_until;

/// Returns the prompts and the cancels that the agent got, in their order.
fn got(scene: &Scene) -> Vec<String> {
    let log = scene.workspace.read("requests").unwrap();
    let all = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told = all.filter_map(|it| match it["method"].as_str()? {
        "session/prompt" => Some(it["params"]["prompt"][0]["text"].as_str()?.to_owned()),
        "session/cancel" => Some("cancel".to_owned()),
        _ => None,
    });
    told.collect()
}

#[test]
fn prompts_wait_for_the_end_of_a_turn() {
    let script = json!({
        "log": "requests",
        "first": [message("Working."), { "until": "go" }, message("First done.")],
        "second": [message("Second done.")],
        "third": [message("Third done.")],
        "hold": [message("Holding."), { "await": "cancel" }],
        "later": [message("Later done.")],
        "hold again": [message("Holding again."), { "await": "cancel" }],
        "waits": [message("Waited.")],
        "now": [message("At once.")],
    });
    let scene = scene(&script);
    scene.co("first");
    scene.wait_chat("Working.");
    scene.co("second");
    scene.co("third");
    scene.nvim.wait_text("(2 queued)");
    assert_eq!(got(&scene), ["first"]);
    scene.workspace.write("go", "");
    scene.wait_turns(3);
    assert_eq!(got(&scene), ["first", "second", "third"]);
    // A cancel holds what waits.
    scene.co("hold");
    scene.wait_chat("Holding.");
    scene.co("later");
    scene.nvim.wait_text("(1 queued)");
    scene.interrupt();
    scene.wait_turns(4);
    scene.wait_notice("queued prompts wait: /steer sends the first");
    scene.co("/steer");
    scene.wait_chat("Later done.");
    scene.wait_turns(5);
    // What steers goes before what waits.
    scene.co("hold again");
    scene.wait_chat("Holding again.");
    scene.co("waits");
    scene.nvim.wait_text("(1 queued)");
    scene.co("/steer now");
    scene.wait_turns(8);
    let later = [
        "hold",
        "cancel",
        "later",
        "hold again",
        "cancel",
        "now",
        "waits",
    ];
    assert_eq!(got(&scene)[3..], later);
    let chat = scene.chat();
    for text in ["First done.", "Third done.", "At once.", "Waited."] {
        assert!(chat.contains(text), "{text}: {chat}");
    }
    assert!(!chat.contains("anew"), "{chat}");
}

#[test]
fn buffers_follow_the_files_that_the_agent_changes_and_lose_nothing() {
    let script = json!({
        // It tells nothing of what it does.
        "quiet": [{ "sh": "echo 2 > clean.txt; echo 2 > mine.txt; echo 2 > a.txt" }, message("Quiet.")],
        "call": [
            call("1", "edit", "Edit clean.txt"),
            { "sh": "echo 3 > clean.txt" },
            ended("1", "completed", ""),
            { "until": "seen" },
            message("Called."),
        ],
    });
    let scene = scene(&script);
    scene.workspace.write("clean.txt", "1\n");
    scene.workspace.write("mine.txt", "1\n");
    scene.command("edit clean.txt");
    scene.command("edit mine.txt | call setline(1, 'not saved')");
    let text_of =
        |name: &str, text: &str| format!("vim.fn.getbufline('{name}', 1, '$')[1] == '{text}'");
    scene.co("quiet");
    scene.wait_chat("Quiet.");
    scene.wait_turns(1);
    scene.wait_for(&text_of("clean.txt", "2"), "the new text");
    scene.wait_notice(
        "mine.txt changed on disk; the buffer keeps your changes: :edit! takes the new text",
    );
    scene.wait_for(&text_of("mine.txt", "not saved"), "the person's text");
    assert_eq!(scene.workspace.read("mine.txt").unwrap(), "2\n");
    // Also while the agent works.
    scene.co("call");
    scene.wait_for(&text_of("clean.txt", "3"), "the next text");
    // The person's own file is not taken for the agent's.
    scene.command("split seen | write | close");
    scene.wait_turns(2);
    // What the person saves then is theirs, and /undo takes only the agent's change back.
    scene.command("buffer mine.txt | write!");
    scene.co("/undo");
    scene.approve();
    scene.wait_notice("1 file taken back");
    scene.wait_for(&text_of("clean.txt", "2"), "the text before the call");
    assert_eq!(scene.workspace.read("mine.txt").unwrap(), "not saved\n");
}

#[test]
fn two_turns_are_reviewed_in_rounds() {
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let script = json!({
        "log": "requests",
        "one": [{ "sh": "sed -i 's/^2$/two/; s/^8$/eight/' big.txt" }, message("One.")],
        "two": [{ "sh": "sed -i 's/^5$/five/' big.txt; echo new > new.txt" }, message("Two.")],
        "three": [{ "sh": "sed -i 's/^9$/nine/' big.txt" }, message("Three.")],
    });
    let scene = scene(&script);
    scene.workspace.write("big.txt", lines);
    let read = |name| scene.workspace.read(name);
    scene.co("one");
    scene.wait_turns(1);
    scene.co("two");
    scene.wait_turns(2);
    // The first round: of three changes of a file, one is taken back, and one is left open.
    scene.co("/review");
    scene.answers(&[
        ("big", "1 of 3", "y"),
        ("big", "2 of 3", "n"),
        ("big", "3 of 3", "q"),
    ]);
    scene.wait_text("1 change accepted");
    let after = "1\ntwo\n3\n4\n5\n6\n7\neight\n9\n";
    wait_until(DEADLINE, "the first lines", || {
        (read("big.txt").unwrap() == after).then_some(())
    });
    // The next turn knows of it, and adds a change.
    scene.co("three");
    scene.wait_turns(3);
    let told = scene.workspace.read("requests").unwrap();
    let told = told.lines().rfind(|it| it.contains("three")).unwrap();
    assert!(
        told.contains("<note>") && told.contains("big.txt"),
        "{told}"
    );
    scene.co("/review");
    scene.answers(&[
        ("big", "1 of 1", "n"),
        ("new", "1 of 1", "n"),
        ("requests", "1 of 1", "y"),
    ]);
    scene.wait_for("vim.uv.fs_stat('new.txt') == nil", "the end of the file");
    // Two changes of lines that touch are one.
    wait_until(DEADLINE, "the lines before", || {
        (read("big.txt").unwrap() == "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n").then_some(())
    });
    scene.co("/review");
    scene.wait_notice("nothing to review: the chat has no change that you have not answered");
}

#[test]
fn resources_are_shown_with_their_names() {
    let link = json!({ "type": "resource_link", "name": "the log", "uri": "file:///tmp/run.log" });
    let block = |content: &Value| json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": content } });
    let text = json!({ "type": "resource", "resource": { "uri": "file:///notes.md", "text": "Read me." } });
    let bytes =
        json!({ "type": "resource", "resource": { "uri": "file:///x.bin", "blob": "AAAA" } });
    let script = json!({ "hi": [
        block(&link),
        message(" and\n"),
        block(&text),
        block(&bytes),
        call("1", "read", "Read it"),
        { "update": {
            "sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed",
            "content": [{ "type": "content", "content": link }, { "type": "content", "content": text }],
        } },
        message("Done."),
    ] });
    let scene = scene_with(&script, json!({}));
    scene.co("hi");
    let chat = scene.wait_chat("Done.");
    scene.wait_turns(1);
    for text in [
        "[the log](file:///tmp/run.log) and",
        "file:///notes.md:\nRead me.",
        "[file:///x.bin, 4 bytes of base64]",
    ] {
        assert!(chat.contains(text), "{text}: {chat}");
    }
    assert_eq!(chat.matches("[the log](file:///tmp/run.log)").count(), 2);
}

#[test]
fn checkhealth_tells_which_agents_are_installed() {
    let scene = scene(&json!({}));
    scene.command("checkhealth co");
    let text = "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')";
    scene.wait_for(
        &format!("{text}:find('`/agent scripted` runs it confined', 1, true)"),
        "the scripted agent",
    );
    scene.wait_for(
        &format!("{text}:find('opencode is not installed', 1, true)"),
        "an agent that is not there",
    );
}
