//! `read_file`, `list_files`, `search` and `editor_context` in a turn.

use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::chat::{Chat, asks_for, assert_order, call, done, eventually, says, tool};
use crate::buffers::BufferReply;
use crate::protocol::{EditorEntry, ServerPlace, ToEditor};
use co_edit::CharacterUnit;
use co_llm::transcript::{Decision, Item};

#[tokio::test(start_paused = true)]
async fn a_read_waits_for_a_command_of_the_person_as_long_as_that_takes() {
    let mut chat = Chat::new([
        asks_for("1", "read_file", json!({"path": "note"})),
        says("I have read it."),
    ]);
    chat.write("note", "x\n");
    let open = chat.open.take();
    chat.say("read it");
    let request = chat.until(pick!(ToEditor::ReadBuffers { request, .. } => *request));
    let request = request.await;
    tokio::time::advance(Duration::from_secs(3600)).await;
    chat.open = open;
    let reply = BufferReply::Read(Vec::new());
    chat.services.buffers.reply(request, reply);
    assert_eq!(chat.ended().await, "done");
    chat.assert_told("1", "x\n[all 1 lines");
}

#[tokio::test]
async fn looks_run_unasked_beside_commands_and_appear_in_order() {
    let mut chat = Chat::new([
        vec![
            tool("1", "read_file", json!({"path": "src/main.rs"})),
            call("2", "echo between"),
            tool("3", "list_files", json!({})),
            tool("4", "search", json!({"pattern": "main"})),
            done(),
        ],
        says("I have seen it."),
    ]);
    chat.write("src/main.rs", "fn main() {}\n");
    assert_eq!(chat.turn("look around").await, "done");
    assert_eq!(chat.asks(), 0);
    assert_eq!(
        chat.told("1"),
        "fn main() {}\n[all 1 lines; hash 536e506bb90914c2]"
    );
    chat.assert_told("2", "between");
    assert_eq!(chat.told("3"), "src/\nsrc/main.rs\n[2 entries]");
    assert_eq!(
        chat.told("4"),
        "src/main.rs:1:fn main() {}\n[1 matching line in 1 file]"
    );
    let screen = chat.screen();
    let shown = [
        "· read src/main.rs  [1]",
        "· echo between",
        "· list ., search \"main\"\n  list .  2 entries\n  search \"main\"  1 matching line",
    ];
    assert_order(&screen, &shown);
    assert!(
        !screen.contains("fn main"),
        "what was read is for the model: {screen}"
    );
    let unasked = chat
        .disk()
        .iter()
        .filter(|item| {
            matches!(
                item,
                Item::Decision {
                    decision: Decision::Unasked,
                    ..
                }
            )
        })
        .count();
    assert_eq!(unasked, 4);
    eventually("looks are audited", || {
        chat.audit().contains("read_file src/main.rs")
    })
    .await;
    // Resumed, it reads the same.
    let resumed = chat.resumed().await;
    for piece in ["· read src/main.rs  [1]", "  list .  2 entries"] {
        assert!(resumed.contains(piece), "{resumed}");
    }
}

#[tokio::test]
async fn the_editor_is_asked_unasked_and_tells_nothing_of_secrets() {
    let mut chat = Chat::new([
        vec![
            tool("1", "editor_context", json!({"what": "diagnostics"})),
            tool(
                "2",
                "editor_context",
                json!({"what": "diagnostics", "path": "/etc"}),
            ),
            done(),
        ],
        says("ok"),
    ]);
    chat.write("src/a.rs", "");
    chat.write(".env", "KEY=value\n");
    chat.write(".ssh/config", "");
    let entry = |file: PathBuf| EditorEntry {
        file: file.into_os_string().into_vec(),
        line: Some(3),
        column: None,
        text: b"error: bad".to_vec(),
    };
    let files = ["src/a.rs", ".env", ".ssh/config", "../b.rs"].map(|file| chat.work.join(file));
    chat.editor_answer.entries = files.into_iter().map(entry).collect();
    assert_eq!(chat.turn("look").await, "done");
    assert_eq!(chat.asks(), 0);
    let told = chat.told("1");
    assert_eq!(
        told,
        "src/a.rs:3: error: bad\n[1 entry; 3 left out, outside the workspace or secret]"
    );
    chat.assert_told("2", "outside the workspace");
    chat.assert_shown("· look up diagnostics  [1 entry; 3 left out");
}

#[tokio::test]
async fn the_lines_at_places_are_read_and_those_elsewhere_left_out() {
    let references = json!({"what": "references", "path": "src/a.rs", "name": "b"});
    let mut chat = Chat::new([asks_for("1", "editor_context", references), says("ok")]);
    chat.write("src/a.rs", "let é, b;\n");
    std::os::unix::fs::symlink("/etc/passwd", chat.work.join("link")).unwrap();
    let place = |file: &str, character| ServerPlace {
        file: chat.work.join(file).into_os_string().into_vec(),
        row: 0,
        character,
        unit: CharacterUnit::Utf16,
    };
    chat.editor_answer.places = vec![place("link", 0), place("src/a.rs", 7)];
    assert_eq!(chat.turn("look").await, "done");
    assert_eq!(
        chat.told("1"),
        "src/a.rs:1:9: let é, b;\n[1 entry; 1 left out, outside the workspace or secret]"
    );
}

/// Whoever opens the pipe waits for a writer that never comes.
#[tokio::test]
async fn a_look_that_hangs_is_left_behind_when_it_is_cancelled() {
    let mut chat = Chat::new([asks_for("1", "list_files", json!({}))]);
    let pipe = chat.work.join(".gitignore");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    chat.say("look");
    chat.state(crate::protocol::ChatState::Running).await;
    chat.send(crate::chat::Msg::Cancel);
    assert_eq!(chat.ended().await, "cancelled");
    // Lets the thread go, which the runtime waits for.
    let opened = nix::fcntl::open(
        &pipe,
        nix::fcntl::OFlag::O_WRONLY | nix::fcntl::OFlag::O_NONBLOCK,
        nix::sys::stat::Mode::empty(),
    );
    drop(opened);
}

#[tokio::test]
async fn a_look_outside_or_at_a_secret_is_refused_with_the_way_to_ask() {
    let mut chat = Chat::new([
        vec![
            tool("1", "read_file", json!({"path": "/etc/passwd"})),
            tool("2", "read_file", json!({"path": ".env"})),
            tool("3", "search", json!({"pattern": "x", "path": ".."})),
            tool("4", "read_file", json!({"path": "gone"})),
            tool("5", "read_file", json!({"path": "a", "offset": "first"})),
            done(),
        ],
        says("ok"),
    ]);
    chat.write(".env", "KEY=value\n");
    assert_eq!(chat.turn("look").await, "done");
    assert_eq!(chat.asks(), 0);
    for (id, word) in [
        ("1", "outside the workspace"),
        ("2", "looks like a secret"),
        ("3", "outside the workspace"),
    ] {
        let told = chat.told(id);
        assert!(
            told.contains(word) && told.contains("run_shell_command"),
            "{told}"
        );
    }
    chat.assert_told("4", "No such file");
    chat.assert_told("5", "do not fit");
    let forbidden = chat
        .disk()
        .iter()
        .filter(|item| {
            matches!(
                item,
                Item::Decision {
                    decision: Decision::Forbidden { .. },
                    ..
                }
            )
        })
        .count();
    assert_eq!(forbidden, 3);
    eventually("refusals are audited", || {
        chat.audit().contains("read_file /etc/passwd")
    })
    .await;
}
