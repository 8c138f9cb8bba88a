//! The tools of co, called by a confined agent.

use std::fs::{File, OpenOptions};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Map, Value, json};
use tokio::net::unix::pipe;

use super::agents::{message, scene, settings};
use super::rename;
use super::scene::Scene;
use crate::support::workspace::Workspace;
use co_mcp::{AnswerPart, ClientName, ServerConnection, ToolAnswer, call_events};

/// Returns a step in which the agent calls a tool.
fn tool(name: &str, arguments: Value) -> Value {
    json!({ "tool": name, "arguments": arguments })
}

fn run(command: &str) -> Value {
    tool("run_shell_command", json!({ "cmd": command }))
}

/// Returns a step in which the agent calls a command, and does not wait for its result.
fn begin(command: &str) -> Value {
    json!({ "call": "run_shell_command", "arguments": { "cmd": command } })
}

/// Returns a step in which the agent tells a call of a tool as codex does.
fn told(id: &str, name: &str, status: &str) -> Value {
    let input = json!({ "server": "co", "tool": name, "arguments": {} });
    json!({ "update": {
        "sessionUpdate": if status == "in_progress" { "tool_call" } else { "tool_call_update" },
        "toolCallId": id, "title": format!("mcp.co.{name}"), "kind": "execute", "status": status, "rawInput": input,
    } })
}

/// Returns a scene with a scripted agent and more settings.
fn scene_with(script: &Value, more: Value) -> Scene {
    scene_in(Workspace::new(), script, (json!({}), more))
}

fn scene_in(workspace: Workspace, script: &Value, (agent, more): (Value, Value)) -> Scene {
    workspace.write("a.txt", "one\ntwo\n");
    workspace.write("script.json", &script.to_string());
    let mut settings = settings(&workspace, agent);
    for (name, value) in more.as_object().unwrap() {
        settings[name] = value.clone();
    }
    let scene = Scene::in_workspace(workspace, settings, &[]);
    scene.co("/agent scripted");
    scene.wait_notice("scripted works in this chat");
    scene
}

/// Returns how often a text has another one in it.
fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn an_agent_asks_the_editor_and_the_person_reads_it_once() {
    let script = json!({ "do it": [
        message("I ask."),
        told("1", "editor_context", "in_progress"),
        tool("editor_context", json!({ "what": "state" })),
        told("1", "editor_context", "completed"),
        told("2", "rename_symbol", "in_progress"),
        told("2", "rename_symbol", "completed"),
        message("All through."),
    ] });
    let mut scene = scene(&script);
    scene.command("edit a.txt");
    scene.co("do it");
    scene.wait_turns(1);
    let chat = scene.wait_chat("All through.");
    assert!(chat.contains("result: a.txt: the person's"), "{chat}");
    assert_eq!(count(&chat, "look up"), 1, "{chat}");
    assert!(!chat.contains("mcp.co.editor_context"), "{chat}");
    // co has carried out no such call.
    assert!(chat.contains("mcp.co.rename_symbol"), "{chat}");
    scene.assert_outcomes(2);
    scene.restart();
    scene.resume();
    let resumed = scene.wait_chat("All through.");
    assert_eq!(count(&resumed, "look up"), 1, "{resumed}");
}

#[test]
fn commands_look_unasked_and_others_ask_and_are_taken_back() {
    let background = json!({ "cmd": "true", "background": true });
    let script = json!({ "do it": [
        run("cat a.txt"),
        run("printf more >> a.txt; echo hunter2-token"),
        { "sh": "printf own > b.txt" },
        run("git push origin main"),
        tool("run_shell_command", background),
        tool("read_file", json!({ "path": "a.txt" })),
        message("All through."),
    ] });
    // The agent could write what a rule names, so only its deny rules count.
    let rules = json!({ "deny": ["git push"], "allow": ["printf", "echo"], "auto_confirm": true });
    let scene = scene_with(&script, rules);
    scene.workspace.write(".env", "TOKEN=hunter2-token\n");
    scene.co("do it");
    let asked = scene.wait_ask("1/1").join("\n");
    for text in ["printf more", "a confined agent makes the call"] {
        assert!(asked.contains(text), "{text}: {asked}");
    }
    assert!(!asked.contains("always"), "{asked}");
    scene.co("/always 1 everything");
    scene.wait_notice("question 1 takes no /always");
    scene.answer_ask("1/1", "y");
    scene.wait_turns(1);
    let chat = scene.wait_chat("All through.");
    for text in [
        "result: one",
        "failed: Refused by a deny rule",
        "failed: Not run: there are no jobs here",
        "failed: Not run: co has no tool of this name",
    ] {
        assert!(chat.contains(text), "{text}: {chat}");
    }
    assert!(chat.contains("result: [redacted: secret value]"), "{chat}");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\ntwo\nmore");
    scene.assert_outcomes(4);
    scene.co("/undo");
    scene.approve();
    scene.wait_notice("2 files taken back");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\ntwo\n");
    assert!(!scene.workspace.exists("b.txt"));
}

#[test]
fn an_agent_without_tools_of_its_own_works_by_those_of_co() {
    let replaced = json!([{ "old": "two", "new": "three" }]);
    let script = json!({ "log": "requests", "do it": [
        tool("read_file", json!({ "path": "a.txt" })),
        tool("search", json!({ "pattern": "^tw." })),
        tool("edit_file", json!({ "path": "a.txt", "edits": replaced })),
        run("cat a.txt"),
        message("All through."),
    ] });
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\ntwo\n");
    workspace.write("script.json", &script.to_string());
    // Nobody is asked about the hosts of its vendor.
    let hosts = ["api.anthropic.com", "claude.ai", "platform.claude.com"];
    let more = json!({ "tools": "co", "hosts": hosts });
    let mut settings = settings(&workspace, more);
    let agent = settings["agents"]["scripted"].take();
    settings["agents"] = json!({ "claude": agent, "codex": agent });
    let scene = Scene::in_workspace(workspace, settings, &[]);
    scene.co("/agent claude");
    scene.wait_notice("claude works in this chat");
    scene.co("do it");
    scene.answer_text("edit_file a.txt  +1 -1", "y");
    scene.wait_turns(1);
    let chat = scene.wait_chat("All through.");
    for text in ["read a.txt", "a.txt:2:two", "result: one\nthree"] {
        assert!(chat.contains(text), "{text}: {chat}");
    }
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\nthree\n");
    let requests = scene.workspace.read("requests").unwrap();
    let session = requests.lines().find(|it| it.contains("session/new"));
    for option in [
        r#""tools":[]"#,
        r#""strictMcpConfig":true"#,
        r#""allowedTools":["mcp__co"]"#,
    ] {
        assert!(session.unwrap().contains(option), "{requests}");
    }
    scene.co("/undo");
    scene.approve();
    // Also the log of the scripted agent.
    scene.wait_notice("2 files taken back");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\ntwo\n");
    scene.co("/new");
    scene.co("/agent codex");
    scene.wait_notice("codex works in this chat");
    scene.co("do it");
    scene.wait_text("codex cannot work: co cannot switch");
}

#[test]
fn a_command_is_tried_before_it_is_kept() {
    let script = json!({ "do it": [
        run("printf more >> a.txt; rm b.txt"),
        run("rm a.txt"),
        message("All through."),
    ] });
    let scene = scene(&script);
    scene.workspace.write("b.txt", "b\n");
    scene.co("do it");
    scene.answer_ask("1/1", "t");
    scene.nvim.wait_text("ran  as a trial: exit 0");
    scene.nvim.wait_text("+ more");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\ntwo\n");
    scene.answer("y");
    scene.answer_text("rm a.txt", "t");
    scene.nvim.wait_text("ran  as a trial: exit 0");
    scene.answer("n");
    scene.wait_turns(1);
    let chat = scene.wait_chat("All through.");
    for text in ["kept what it changed: a.txt, b.txt", "dropped. User denied"] {
        assert!(chat.contains(text), "{text}: {chat}");
    }
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\ntwo\nmore");
    assert!(!scene.workspace.exists("b.txt"));
    scene.assert_outcomes(2);
    scene.co("/undo");
    scene.approve();
    scene.wait_notice("2 files taken back");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\ntwo\n");
    assert_eq!(scene.workspace.read("b.txt").unwrap(), "b\n");
}

#[test]
fn a_turn_for_a_plan_only_looks() {
    let modes = ["ask", "plan"].map(|it| json!({ "id": it, "name": it }));
    let script = json!({
        "session": { "modes": { "currentModeId": "ask", "availableModes": modes } },
        "a plan": [run("touch new"), run("cat a.txt"), message("1. Look")],
    });
    let scene = scene(&script);
    scene.co("/plan a plan");
    scene.wait_turns(1);
    let chat = scene.wait_chat("1. Look");
    assert!(
        chat.contains("failed: Not run: /plan only looks."),
        "{chat}"
    );
    assert!(chat.contains("result: one"), "{chat}");
    assert!(!scene.workspace.exists("new"));
}

#[test]
fn a_rename_is_asked_about_and_taken_back() {
    let rename = json!({ "path": "a.txt", "name": "name", "new_name": "other" });
    let script = json!({ "do it": [tool("rename_symbol", rename), message("All through.")] });
    let scene = scene(&script);
    scene.workspace.write("a.txt", "a name\n");
    scene.command("edit a.txt");
    scene.command(&rename::server(&["a.txt"]));
    scene.co("do it");
    scene.approve();
    scene.wait_turns(1);
    let chat = scene.wait_chat("All through.");
    assert!(chat.contains("result: "), "{chat}");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "a other\n");
    scene.assert_outcomes(1);
    scene.co("/undo");
    scene.approve();
    scene.wait_notice("1 file taken back");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "a name\n");
}

#[test]
fn a_call_ends_with_its_agent_and_its_turn() {
    let script = json!({
        "die": [begin("touch never"), { "until": "die" }, { "die": 3 }],
        "stop": [begin("touch never"), { "await": "cancel" }],
        "leave": [begin("touch never"), { "until": "leave" }, message("Left.")],
        "again": [run("cat a.txt"), message("Still here.")],
    });
    let scene = scene(&script);
    scene.co("die");
    scene.wait_ask("1/1");
    scene.workspace.write("die", "");
    scene.wait_turns(1);
    scene.wait_chat("scripted has ended");
    scene.co("stop");
    scene.wait_ask("1/1");
    scene.interrupt();
    scene.wait_turns(2);
    scene.co("leave");
    scene.wait_ask("1/1");
    scene.workspace.write("leave", "");
    scene.wait_chat("Left.");
    scene.wait_turns(3);
    scene.co("again");
    scene.wait_turns(4);
    let chat = scene.wait_chat("Still here.");
    assert!(chat.contains("result: one"), "{chat}");
    assert!(!scene.workspace.exists("never"));
    scene.assert_outcomes(4);
}

#[test]
fn only_an_agent_with_the_token_of_its_chat_is_served() {
    let hostile = r#"python3 -c '
import os, socket, time
port, ping = int(os.environ["CO_TOOLS_PORT"]), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"
def talk(data):
    try:
        stream = socket.create_connection(("127.0.0.1", port), 30)
        stream.sendall(data)
        return stream.recv(1000)
    except OSError:
        return b""
token = os.environ["CO_TOOLS_TOKEN"].encode() + b"\n"
print("wrong", talk(b"0" * 64 + b"\n" + ping), talk(b"GET / HTTP/1.1\r\n" * 9))
print("long", talk(token + b"x" * (9 << 20)))
held = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(200)]
began = time.monotonic()
print("right", talk(token + ping), "at once" if time.monotonic() - began < 5 else "late")
if os.path.exists("token"):
    print("other", talk(open("token", "rb").read() + ping))
open("token", "wb").write(token)
'"#;
    let script = json!({ "one": [{ "sh": hostile }, message("One.")], "two": [{ "sh": hostile }, message("Two.")] });
    let scene = scene(&script);
    scene.co("one");
    scene.wait_turns(1);
    let chat = scene.wait_chat("One.");
    for text in ["wrong b'' b''", "long b''", "right b'{", "at once"] {
        assert!(chat.contains(text), "{text}: {chat}");
    }
    let port = 17_481;
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    scene.co("/new");
    scene.co("/agent scripted");
    scene.co("two");
    scene.wait_turns(2);
    let chat = scene.wait_buffer("co://chat/2", "Two.");
    assert!(
        chat.contains("right b'{") && chat.contains("other b''"),
        "{chat}"
    );
}

// The agent is not confined, because no pipe with a name leads into the confinement.
#[test]
fn a_client_of_the_protocol_crate_lists_and_calls_the_tools() {
    let workspace = Workspace::new();
    let [input, output] = ["input", "output"].map(|name| workspace.path().join(name));
    let made = Command::new("mkfifo")
        .args([&input, &output])
        .status()
        .unwrap();
    assert!(made.success());
    let script = json!({
        "open": [{ "relay": [input, output] }, message("Open.")],
        "wait": [message("Waits."), { "until": "go" }, message("Done.")],
    });
    let scene = scene_in(
        workspace,
        &script,
        (json!({ "confinement": "none" }), json!({})),
    );
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    scene.co("open");
    // Each waits until the agent has opened the other end.
    let input = OpenOptions::new().write(true).open(input).unwrap();
    let output = File::open(output).unwrap();
    scene.wait_turns(1);
    scene.co("wait");
    scene.wait_chat("Waits.");
    let text = |answer: ToolAnswer| match answer.parts.as_slice() {
        [AnswerPart::Text(text)] => (text.clone(), answer.is_error),
        other => panic!("{other:?}"),
    };
    runtime.block_on(async {
        let input = pipe::Sender::from_file(input).unwrap();
        let output = pipe::Receiver::from_file(output).unwrap();
        let client = ClientName {
            name: "test",
            version: "1",
        };
        let connection = ServerConnection::open(output, input, client).await.unwrap();
        let (tools, _) = connection.tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            names,
            ["editor_context", "rename_symbol", "run_shell_command"]
        );
        let command = json!({ "cmd": "echo $((6 * 7))" });
        let command = command.as_object().unwrap().clone();
        let answer = connection
            .call("run_shell_command", command.clone(), call_events().0)
            .await;
        let (said, failed) = text(answer.unwrap());
        assert!(said.starts_with("42") && !failed, "{said}");
        let answer = connection
            .call("odd", Map::new(), call_events().0)
            .await
            .unwrap();
        assert!(text(answer).1);
        scene.workspace.write("go", "");
        scene.wait_turns(2);
        let answer = connection
            .call("run_shell_command", command, call_events().0)
            .await;
        let (said, failed) = text(answer.unwrap());
        assert!(
            said.starts_with("Not run: the person's prompt") && failed,
            "{said}"
        );
    });
}
