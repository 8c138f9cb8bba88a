//! Another agent in the place of a model: a scripted one, confined.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use co_acp::schema::{
    AvailableCommand, AvailableCommandsUpdate, CompactionStatus, CompactionSummaryChunk,
    CompactionUpdate, ContentChunk, Cost, CreateElicitationRequest, CurrentModeUpdate,
    ElicitationFormMode, ElicitationSchema, ElicitationSessionScope, ElicitationUrlMode, Notice,
    NoticeSeverity, PlanMarkdown, PlanRemoved, PlanUpdate, PlanUpdateContent, SessionConfigOption,
    SessionConfigOptionCategory, SessionConfigSelectOption, SessionInfoUpdate, SessionMode,
    SessionModeState, SessionReference, SessionUpdate, SetSessionConfigOptionRequest,
    SubagentUpdate, Terminal, ToolCall, ToolCallContent, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind, UsageUpdate,
};

use super::scene::{Scene, wait_gone};
use crate::support::DEADLINE;
use crate::support::proc::wait_until;
use crate::support::runner::python;
use crate::support::workspace::Workspace;

const LONG: Duration = Duration::from_secs(20);

/// Returns a scene with a chat in which the scripted agent works.
pub(super) fn scene(script: &Value) -> Scene {
    scene_with(script, json!({}))
}

pub(super) fn scene_with(script: &Value, more: Value) -> Scene {
    scene_in(Workspace::new(), &script.to_string(), more)
}

pub(super) fn scene_in(workspace: Workspace, script: &str, more: Value) -> Scene {
    workspace.write("a.txt", "one\ntwo\n");
    workspace.write("script.json", script);
    let settings = settings(&workspace, more);
    let scene = Scene::in_workspace(workspace, settings, &[]);
    scene.co("/agent scripted");
    scene.wait_notice("scripted works in this chat");
    scene
}

/// Returns the settings with the agent of the workspace's script.
pub(super) fn settings(workspace: &Workspace, more: Value) -> Value {
    let program = format!("{}/tests/it/editor/agent.py", env!("CARGO_MANIFEST_DIR"));
    let script = workspace.path().join("script.json");
    let mut agent = json!({ "cmd": [python(), program, script] });
    for (name, value) in more.as_object().unwrap() {
        agent[name] = value.clone();
    }
    json!({ "agents": { "scripted": agent } })
}

/// Returns a step of the script that sends an update.
pub(super) fn said(update: SessionUpdate) -> Value {
    json!({ "update": update })
}

/// Returns modes with these ids, the first of which is the present one.
fn modes<const COUNT: usize>(ids: [&'static str; COUNT]) -> SessionModeState {
    let modes = ids.map(|id| SessionMode::new(id, id.to_uppercase()));
    SessionModeState::new(ids[0], modes.to_vec())
}

pub(super) fn message(text: &str) -> Value {
    json!({ "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } } })
}

pub(super) fn call(id: &str, kind: &str, title: &str) -> Value {
    json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": id, "title": title, "kind": kind, "status": "in_progress" } })
}

pub(super) fn ended(id: &str, status: &str, output: &str) -> Value {
    json!({ "update": {
        "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status,
        "content": [{ "type": "content", "content": { "type": "text", "text": output } }],
    } })
}

#[test]
fn a_turn_is_shown_recorded_and_taken_back() {
    let script = json!({
        "do it": [
            message("I look first.\n"),
            { "update": { "sessionUpdate": "plan", "entries": [
                { "content": "change a file", "priority": "high", "status": "in_progress" },
                { "content": "make another", "priority": "low", "status": "pending" },
            ] } },
            call("1", "execute", "sed -i s/two/2/ a.txt"),
            call("2", "edit", "b.txt"),
            { "sh": "sed -i s/two/2/ a.txt; printf new > b.txt" },
            ended("2", "completed", "made"),
            ended("1", "failed", "line 1\nline 2"),
            message("All through."),
        ],
        "again": [message("Still here.")],
    });
    let mut scene = scene(&script);
    scene.co("do it");
    scene.wait_turns(1);
    let chat = scene.wait_chat("All through.");
    assert!(chat.contains("I look first."), "{chat}");
    assert!(chat.contains("line 1\n    line 2"), "{chat}");
    scene.nvim.wait_text("sed -i s/two/2/ a.txt  failed");
    scene.nvim.wait_text("change a file");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\n2\n");
    scene.assert_outcomes(3);
    let items = scene.items();
    let order: Vec<_> = items
        .iter()
        .filter_map(|it| {
            it["item"]
                .as_str()
                .filter(|it| ["call", "outcome"].contains(it))
        })
        .collect();
    assert_eq!(
        order,
        ["call", "outcome"].repeat(3),
        "one call after the other"
    );
    // The same process takes the next prompt.
    scene.co("again");
    scene.wait_chat("Still here.");
    scene.wait_turns(2);
    assert!(!scene.chat().contains("starts anew"));
    scene.co("/undo");
    scene.approve();
    scene.wait_notice("2 files taken back");
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\ntwo\n");
    assert!(scene.workspace.read("b.txt").is_none());
    // It reads as it did live.
    let live = scene.chat();
    scene.restart();
    scene.resume();
    let resumed = scene.wait_chat("Still here.");
    for text in ["I look first.", "line 1\n    line 2", "made"] {
        assert!(
            live.contains(text) && resumed.contains(text),
            "{text}: {resumed}"
        );
    }
    scene.co("/export chat.md");
    let file = || {
        scene
            .workspace
            .read("chat.md")
            .filter(|it| it.contains("Still here."))
    };
    let exported = wait_until(LONG, "the exported chat", file);
    for text in ["I look first.", "sed -i s/two/2/ a.txt", "line 2", "made"] {
        assert!(exported.contains(text), "{text}: {exported}");
    }
}

#[test]
fn contexts_and_images_go_to_an_agent_that_takes_images() {
    for takes in [true, false] {
        let script = json!({
            "log": "requests",
            "capabilities": { "promptCapabilities": { "image": takes } },
            "see @file:a.txt and @file:shot.png": [message("Seen.")],
        });
        let scene = scene(&script);
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0IEND";
        std::fs::write(scene.workspace.path().join("shot.png"), png).unwrap();
        scene.co("see @file:a.txt and @file:shot.png");
        let chat = scene.wait_chat("Seen.");
        scene.wait_turns(1);
        let requests = scene.workspace.read("requests").unwrap();
        assert!(requests.contains(r"one\ntwo\n"), "{requests}");
        assert_eq!(requests.contains(r#""mimeType":"image/png""#), takes);
        let left_out = "left out: @file:shot.png; scripted takes no images";
        assert_eq!(chat.contains(left_out), !takes, "{chat}");
    }
}

#[test]
fn the_output_of_a_call_is_shown_while_it_comes() {
    let update = |fields: ToolCallUpdateFields, meta: Value| {
        let update = ToolCallUpdate::new("1", fields).meta(meta.as_object().cloned());
        said(SessionUpdate::ToolCallUpdate(update))
    };
    let none = ToolCallUpdateFields::new;
    let delta = |text: &str| update(none(), json!({ "terminal_output_delta": { "data": text } }));
    let terminal = ToolCallContent::Terminal(Terminal::new("nobody's"));
    let begun = ToolCall::new("1", "Test")
        .kind(ToolKind::Execute)
        .status(ToolCallStatus::InProgress)
        .content(vec![terminal])
        .raw_input(json!({ "command": "make test" }));
    let places = vec![
        ToolCallLocation::new("/elsewhere/b.txt"),
        ToolCallLocation::new("PLACE").line(2),
    ];
    let script = json!({ "do it": [
        said(SessionUpdate::ToolCall(begun)),
        delta("compiling hunter2-token\nte"),
        { "until": "seen" },
        delta("sting\n"),
        update(none().title("Test all".to_owned()).locations(places), Value::Null),
        { "until": "told" },
        update(none().status(ToolCallStatus::Completed), json!({ "terminal_exit": { "exit_code": 3 } })),
        message("Done."),
    ] });
    let workspace = Workspace::new();
    let file = workspace.path().join("a.txt").display().to_string();
    let script = script.to_string().replace("PLACE", &file);
    workspace.write(".env", "TOKEN=hunter2-token\n");
    let mut scene = scene_in(workspace, &script, json!({}));
    scene.co("do it");
    let live = scene.wait_chat("    te\n");
    assert!(
        live.contains("compiling") && !live.contains("hunter2"),
        "{live}"
    );
    assert!(live.contains("\"command\": \"make test\""), "{live}");
    scene.workspace.write("seen", "");
    let live = scene.wait_chat("    testing\n");
    assert!(!live.contains("Done."));
    scene.nvim.wait_text("Test all");
    scene.nvim.wait_text("/elsewhere/b.txt and 1 more");
    scene.workspace.write("told", "");
    scene.wait_chat("Done.");
    scene.wait_turns(1);
    let live = scene.chat();
    scene.restart();
    scene.resume();
    let resumed = scene.wait_chat("Done.");
    for text in ["Test all  exit 3", "testing", "a.txt:2", "make test"] {
        assert!(
            live.contains(text) && resumed.contains(text),
            "{text}: {resumed}"
        );
    }
}

#[test]
fn modes_and_options_are_chosen_and_shown() {
    let option = |id: &str, category, values: &[&str]| {
        let values = values.iter();
        let values: Vec<_> = values
            .map(|it| SessionConfigSelectOption::new((*it).to_owned(), it.to_uppercase()))
            .collect();
        let first = values[0].value.clone();
        SessionConfigOption::select(id.to_owned(), id.to_owned(), first, values).category(category)
    };
    let options = [
        option(
            "model",
            SessionConfigOptionCategory::Model,
            &["big", "small"],
        ),
        option(
            "thinks",
            SessionConfigOptionCategory::ThoughtLevel,
            &["low", "high"],
        ),
    ];
    let script = json!({
        "log": "requests",
        "session": { "modes": modes(["ask", "plan", "broken"]), "configOptions": options },
        "hi": [message("Hello.")],
        "change": [
            message("Ready."),
            { "await": "session/set_mode" },
            said(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new("ask"))),
            message("Changed."),
        ],
        "a plan": [message("1. Look\\n2. Change it")],
        "more": [message("More.")],
    });
    let scene = scene(&script);
    let sent = |method: &str| {
        let requests = scene.workspace.read("requests").unwrap_or_default();
        let requests = requests.lines().map(|it| serde_json::from_str(it).unwrap());
        let requests = requests.filter(|it: &Value| it["method"] == method);
        requests.map(|it| it["params"].clone()).collect::<Vec<_>>()
    };
    // The agent may have started already.
    scene.co("/effort high");
    scene.wait_notice("scripted takes the effort high");
    scene.co("hi");
    scene.wait_turns(1);
    scene.nvim.wait_text("mode ASK");
    let set: SetSessionConfigOptionRequest =
        serde_json::from_value(sent("session/set_config_option").remove(0)).unwrap();
    assert_eq!(
        (set.config_id.to_string().as_str(), set.value),
        ("thinks", "high".into())
    );
    let complete = |text: &str| {
        let words = scene
            .nvim
            .lua("return vim.fn.getcompletion(..., 'cmdline')", json!([text]));
        words
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(complete("Co /mode "), ["ask", "broken", "plan"]);
    assert_eq!(complete("Co /model s"), ["small"]);
    assert_eq!(complete("Co /effort "), ["high", "low"]);
    // Between two turns, and during one.
    scene.co("/model huge");
    scene.wait_notice("scripted has no model huge; it has: big, small");
    scene.co("/mode broken");
    scene.wait_notice("scripted takes the mode broken now");
    scene.co("change");
    scene.wait_chat("scripted did not take the change: this mode is broken");
    scene.wait_chat("Ready.");
    scene.co("/mode plan");
    scene.wait_chat("Changed.");
    scene.wait_turns(2);
    scene.nvim.wait_text("mode ASK");
    // A turn for a plan uses the agent's plan mode, and leaves it.
    scene.co("/plan a plan");
    scene.wait_chat("2. Change it");
    scene.wait_turns(3);
    scene.nvim.wait_text("this answer is the plan");
    scene.co("more");
    scene.wait_turns(4);
    let modes: Vec<_> = sent("session/set_mode")
        .into_iter()
        .map(|it| it["modeId"].clone())
        .collect();
    assert_eq!(modes, ["broken", "plan", "plan", "ask"]);
    scene.nvim.wait_text("mode ASK");
}

#[test]
fn all_kinds_of_updates_are_shown() {
    let chunk = |text: &str| ContentChunk::new(text.into());
    let of_child = |update: SessionUpdate| json!({ "of": "child", "update": update });
    let reference = ToolCall::new("task", "Delegate")
        .kind(ToolKind::Other)
        .status(ToolCallStatus::InProgress)
        .content(vec![SessionReference::new("child").into()]);
    let done = ToolCallUpdateFields::new().status(ToolCallStatus::Completed);
    let commands = vec![AvailableCommand::new("review", "Reviews a file")];
    let step = |number| json!({ "content": format!("step {number}"), "priority": "low", "status": "pending" });
    let many_steps: Vec<_> = (1..=32).map(step).collect();
    let script = json!({
        "do it": [
            said(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))),
            said(SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().title("Agent title".to_owned()))),
            said(SessionUpdate::UsageUpdate(UsageUpdate::new(50, 200).cost(Cost::new(1.5, "EUR")))),
            said(SessionUpdate::Notice(
                Notice::new(NoticeSeverity::Warning, "Slow server").description("It takes longer.".to_owned()),
            )),
            said(SessionUpdate::CompactionUpdate(CompactionUpdate::new("c1", CompactionStatus::InProgress))),
            said(SessionUpdate::CompactionSummaryChunk(CompactionSummaryChunk::new("c1", "All in short.".into()))),
            said(SessionUpdate::CompactionUpdate(CompactionUpdate::new("c1", CompactionStatus::Completed))),
            said(SessionUpdate::CompactionSummaryChunk(CompactionSummaryChunk::new("c2", "In short again.".into()))),
            said(SessionUpdate::UserMessageChunk(chunk("do it\n"))),
            said(SessionUpdate::UserMessageChunk(chunk("it"))),
            said(SessionUpdate::UserMessageChunk(chunk("Stopped by a hook."))),
            said(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new("dreaming"))),
            { "update": { "sessionUpdate": "session_message", "messageId": "m1", "senderSessionId": "x", "content": [{ "type": "text", "text": "between others" }] } },
            { "update": { "sessionUpdate": "agent_message_chunk", "messageId": "a", "content": { "type": "text", "text": "First mess" } } },
            { "update": { "sessionUpdate": "agent_message_chunk", "messageId": "a", "content": { "type": "text", "text": "age." } } },
            { "update": { "sessionUpdate": "agent_message_chunk", "messageId": "b", "content": { "type": "text", "text": "Second message." } } },
            { "update": { "sessionUpdate": "plan", "entries": many_steps } },
            said(SessionUpdate::SubagentUpdate(SubagentUpdate::new("child").title("Finder".to_owned()))),
            said(SessionUpdate::ToolCall(reference)),
            of_child(SessionUpdate::AgentMessageChunk(chunk("The child looks."))),
            of_child(SessionUpdate::ToolCall(ToolCall::new("1", "grep needle"))),
            said(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new("task", done))),
            of_child(SessionUpdate::AgentMessageChunk(chunk("The child goes on."))),
            said(SessionUpdate::PlanUpdate(PlanUpdate::new(PlanUpdateContent::Markdown(
                PlanMarkdown::new("p", "# The plan as text"),
            )))),
            said(SessionUpdate::PlanRemoved(PlanRemoved::new("p"))),
            { "update": { "sessionUpdate": "dream", "text": "of sheep" } },
            { "update": { "sessionUpdate": "plan", "entries": [{ "content": "step", "priority": "high", "status": "pending" }, { "odd": "entry" }] } },
            message("All through."),
        ],
        "/review a.txt": [message("Reviewed.")],
    });
    let mut scene = scene(&script);
    scene.co("do it");
    scene.wait_chat("All through.");
    scene.wait_turns(1);
    let live = scene.chat();
    let shown = [
        "scripted warns: Slow server",
        "sum up the session",
        "All in short.",
        "In short again.",
        "scripted was asked: it",
        "scripted was asked: Stopped by a hook.",
        "scripted is in the mode dreaming",
        "between others",
        "First message.\n\nSecond message.",
        "the plan of scripted has 2 more steps, which are not shown",
        "Delegate",
        "The child looks.",
        "- grep needle",
        "sub-agent Finder",
        "The child goes on.",
        "# The plan as text",
        "scripted dropped its plan",
        "of sheep",
        r#"{"odd":"entry"}"#,
        "scripted says that its session cost 1.5 EUR so far",
    ];
    for text in shown {
        assert!(live.contains(text), "{text}: {live}");
    }
    assert!(!live.contains("was asked: do it"), "{live}");
    scene.nvim.wait_text("window 25%");
    scene.nvim.wait_text("Agent title");
    let words = scene.nvim.lua(
        "return vim.fn.getcompletion('Co /agent:', 'cmdline')",
        json!([]),
    );
    assert_eq!(words, json!(["/agent:review"]));
    scene.co("/agent:odd x");
    scene.wait_notice("scripted has no command odd");
    scene.co("/agent:review a.txt");
    scene.wait_chat("Reviewed.");
    scene.wait_turns(2);
    scene.restart();
    scene.resume();
    let resumed = scene.wait_chat("Reviewed.");
    for text in shown {
        assert!(resumed.contains(text), "{text}: {resumed}");
    }
}

#[test]
fn an_agent_goes_on_with_its_session_where_it_can() {
    let user = |text: &str| {
        said(SessionUpdate::UserMessageChunk(ContentChunk::new(
            text.into(),
        )))
    };
    let cases = [
        (
            json!({ "loadSession": true }),
            json!({}),
            "goes on with its session of this chat",
        ),
        (
            json!({ "loadSession": true, "sessionCapabilities": { "resume": {} } }),
            json!({ "load": [{ "die": 1 }] }),
            "goes on with its session of this chat",
        ),
        (
            json!({ "loadSession": true }),
            json!({ "load": [message("Replayed.")] }),
            "goes on with its session, which knows 0 of the 1 prompts of this chat",
        ),
        (
            json!({ "loadSession": true }),
            json!({ "lost": "no such session" }),
            "before: no such session",
        ),
        (
            json!({}),
            json!({}),
            "does not know what this chat said before: it cannot continue sessions",
        ),
    ];
    for (capabilities, more, told) in cases {
        let mut script = json!({
            "capabilities": capabilities,
            "load": [user("hi"), message("Replayed.")],
            "hi": [message("Hello.")],
            "on": [message("Back.")],
        });
        for (name, value) in more.as_object().unwrap() {
            script[name] = value.clone();
        }
        let mut scene = scene(&script);
        scene.co("hi");
        scene.wait_turns(1);
        scene.restart_with(settings(&scene.workspace, json!({})));
        scene.resume();
        scene.wait_chat("Hello.");
        scene.co("on");
        let chat = scene.wait_chat("Back.");
        assert!(chat.contains(told), "{told}: {chat}");
        assert!(!chat.contains("Replayed."), "{chat}");
        scene.wait_turns(1);
        let sessions = scene.items();
        let sessions = sessions
            .iter()
            .filter(|it| it["item"] == "agent_session")
            .count();
        assert_eq!(
            sessions,
            if told.contains("goes on") { 1 } else { 2 },
            "{told}"
        );
    }
}

#[test]
fn what_the_agent_asks_becomes_questions() {
    let schema = ElicitationSchema::new()
        .boolean("a_test", true)
        .integer("b_count", 1, 9, true);
    let scope = ElicitationSessionScope::new("s1");
    let form = ElicitationFormMode::new(scope.clone(), schema);
    let form = CreateElicitationRequest::new(form, "Set up the project");
    let address = ElicitationUrlMode::new(scope, "e1", "https://good.test@evil.test/login?x=1");
    let address = CreateElicitationRequest::new(address, "Log in");
    let script = json!({
        "form": [{ "elicit": form }, message("Done.")],
        "url": [
            { "elicit": address },
            { "notify": "elicitation/complete", "params": { "elicitationId": "e1" } },
            message("Opened."),
        ],
        "completed": [
            { "request": "elicitation/create", "id": "q", "params": address },
            { "until": "opened" },
            { "notify": "elicitation/complete", "params": { "elicitationId": "e1" } },
            { "until": "gone" },
            message("Went on."),
        ],
        "cancel": [{ "elicit": address }, { "stop": "cancelled" }],
    });
    let scene = scene(&script);
    scene.co("form");
    let fill_in = |choice: &str, words: &str| {
        scene.nvim.wait_text("Set up the project");
        scene.answer(choice);
        scene.nvim.wait_text("a number from 1 to 9");
        scene.answer("e");
        scene.nvim.wait_mode("i");
        scene.nvim.type_keys(&format!("{words}<CR>"));
    };
    fill_in("1", "many");
    // An answer that is no number is asked for again.
    scene.wait_chat("b_count must be a whole number");
    fill_in("2", "4");
    scene
        .wait_chat(r#"elicited: {"action": "accept", "content": {"a_test": false, "b_count": 4}}"#);
    scene.wait_turns(1);
    scene.co("url");
    scene.nvim.wait_text("this address of evil.test:");
    scene
        .nvim
        .wait_text("https://good.test@evil.test/login?x=1");
    scene.answer("1");
    scene.wait_chat(r#"elicited: {"action": "accept"}"#);
    scene.wait_chat("scripted has what it asked you for");
    scene.wait_turns(2);
    // The question goes when the person has done it without an answer here.
    scene.co("completed");
    scene.nvim.wait_text("this address of evil.test:");
    scene.workspace.write("opened", "");
    scene.nvim.wait_no_text("this address of evil.test:");
    scene.workspace.write("gone", "");
    scene.wait_chat("Went on.");
    scene.wait_turns(3);
    scene.co("cancel");
    scene.nvim.wait_text("chat 1 · #5");
    scene.interrupt();
    scene.wait_turns(4);
    scene.nvim.wait_no_text("this address of evil.test:");
}

#[test]
fn faults_end_no_turn_that_the_agent_does_not_end() {
    let answer = json!({ "jsonrpc": "2.0", "id": 77, "result": {} });
    let ask = json!({
        "toolCall": { "toolCallId": "9", "title": "Run it", "kind": "execute", "rawInput": { "command": "touch made" } },
        "options": [{ "optionId": "no", "name": "Cancel", "kind": "reject_once" }],
    });
    let script = json!({
        "odd": [
            { "raw": "no json\n" },
            { "raw": format!("{answer}\n") },
            { "raw": "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\"," },
            { "raw": "\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"In two pieces.\"}}}}\n" },
            { "update": { "sessionUpdate": "tool_call_update", "toolCallId": "never", "status": "completed", "content": [{ "type": "terminal", "terminalId": "nobody's" }] } },
            call("9", "execute", "Run it"),
            { "ask": ask },
            ended("9", "failed", "refused"),
            { "stop": "cancelled" },
        ],
        "on": [message("Back.")],
    });
    let scene = scene(&script);
    scene.co("odd");
    scene.nvim.wait_text("touch made");
    scene.answer("1");
    scene.wait_turns(1);
    let chat = scene.chat();
    for text in [
        "no json",
        "\"id\":77",
        "In two pieces.",
        "[terminal nobody's]",
        "answered: no",
    ] {
        assert!(chat.contains(text), "{text}: {chat}");
    }
    let items = scene.items();
    let end = items.iter().rfind(|it| it["item"] == "end").unwrap();
    assert_eq!(end["reason"], "cancelled");
    scene.co("on");
    scene.wait_chat("Back.");
    scene.wait_turns(2);
    assert!(!scene.chat().contains("anew"));
}

#[test]
fn its_walls_hold() {
    let script = json!({
        "try": [
            { "sh": "cat ~/.ssh/id; cat .env; echo x > ~/outside; echo x > .git/hooks/pre-commit; echo x > inside && cat inside" },
            { "sh": "exec 3<>/dev/tcp/127.0.0.1/1" },
            message("Tried."),
        ],
    });
    let scene = scene(&script);
    let home = scene.home.path();
    std::fs::create_dir_all(home.join(".ssh")).unwrap();
    std::fs::write(home.join(".ssh/id"), "hunter2-key").unwrap();
    scene.workspace.write(".env", "TOKEN=hunter2-token\n");
    scene.co("try");
    let chat = scene.wait_chat("Tried.");
    assert!(!chat.contains("hunter2"), "{chat}");
    assert!(chat.contains("x\nstatus 0"), "{chat}");
    assert!(!home.join("outside").exists());
    assert!(
        !scene
            .workspace
            .path()
            .join(".git/hooks/pre-commit")
            .exists()
    );
}

#[test]
fn a_permission_is_a_question_with_the_options_of_the_agent() {
    let option = |id: &str, kind: &str| json!({ "optionId": id, "name": format!("Option {id}"), "kind": kind });
    let ask = |command: &str| {
        json!({ "ask": {
            "toolCall": { "toolCallId": "9", "title": "Run it", "kind": "execute", "status": "in_progress", "rawInput": { "command": command } },
            "options": [option("once", "allow_once"), option("always", "allow_always"), option("no", "reject_once"), option("never", "reject_once")],
        } })
    };
    let script = json!({
        "ask": [ask("touch made"), ended("9", "completed", ""), message("Done.")],
        "look": [ask("ls"), message("Looked.")],
        "destroy": [ask("rm -rf /"), message("Not destroyed.")],
        "wait": [ask("touch made"), { "stop": "cancelled" }],
    });
    let scene = scene(&script);
    scene.co("ask");
    let screen = scene.nvim.wait_text("Option never").join("\n");
    // The command is there once, and once more in the chat.
    assert_eq!(screen.matches("touch made").count(), 2, "{screen}");
    assert!(
        screen.contains("1  Option once") && screen.contains("2  Option always"),
        "{screen}"
    );
    scene.answer("2");
    scene.wait_chat("answered: always");
    scene.wait_turns(1);
    assert!(
        scene
            .chat()
            .contains("scripted asked: Run it; you: Option always")
    );
    // Nobody is asked about what only looks.
    scene.co("look");
    scene.wait_turns(2);
    assert!(scene.chat().contains("answered: once"));
    // No answer is sent while the question waits.
    scene.co("wait");
    scene.nvim.wait_text("Option never");
    scene.answer("n");
    scene.wait_chat("answered: no");
    scene.wait_turns(3);
}

#[test]
fn words_to_an_agent_end_its_turn_and_are_the_next_prompt() {
    let ask = json!({ "ask": {
        "toolCall": { "toolCallId": "9", "title": "Run it, so that the float is as wide as all of its keys", "kind": "execute", "rawInput": { "command": "touch made" } },
        "options": [
            { "optionId": "once", "name": "Option once", "kind": "allow_once" },
            { "optionId": "no", "name": "Option no", "kind": "reject_once" },
        ],
    } });
    let script = json!({
        "ask": [ask, { "await": "cancel" }],
        "use b": [message("Took b."), { "await": "cancel" }],
        "use c": [message("Took c.")],
    });
    let scene = scene(&script);
    scene.co("ask");
    scene.nvim.wait_text("2  Option no");
    scene.answer("e");
    // Own words are no answer of their own.
    scene
        .nvim
        .wait_text("1-2 · y yes · n no · N no, because · d all · g?");
    scene.press("N");
    scene.nvim.wait_mode("i");
    scene.nvim.type_keys("use b<CR>");
    scene.wait_chat("answered: no");
    scene.wait_chat("Took b.");
    // So does /steer.
    scene.co("/steer use c");
    scene.wait_chat("Took c.");
    scene.wait_turns(3);
}

#[test]
fn nothing_is_allowed_unasked_for_an_agent_that_is_not_confined() {
    let script = json!({ "look": [
        { "ask": {
            "toolCall": { "toolCallId": "9", "title": "Look", "kind": "execute", "status": "in_progress", "rawInput": { "command": "ls" } },
            "options": [
                { "optionId": "once", "name": "Option once", "kind": "allow_once" },
                { "optionId": "no", "name": "Option no", "kind": "reject_once" },
            ],
        } },
        message("Looked."),
    ] });
    let scene = scene_with(&script, json!({ "confinement": "none" }));
    scene.co("look");
    scene.nvim.wait_text("2  Option no");
    scene.answer("n");
    scene.wait_chat("answered: no");
    scene.wait_turns(1);
}

#[test]
fn a_question_that_is_too_long_can_only_be_refused() {
    let input = json!({ "reason": "x".repeat(30_000), "command": "touch made" });
    let script = json!({ "ask": [
        { "ask": {
            "toolCall": { "toolCallId": "9", "title": "Run it", "kind": "execute", "status": "in_progress", "rawInput": input },
            "options": [
                { "optionId": "once", "name": "Option once", "kind": "allow_once" },
                { "optionId": "no", "name": "Option no", "kind": "reject_once" },
            ],
        } },
        message("Asked."),
    ] });
    let scene = scene(&script);
    scene.co("ask");
    scene.nvim.wait_text("asks to run this command: touch made");
    scene.answer("1");
    scene.wait_chat("answered: no");
    scene.wait_turns(1);
}

#[test]
fn a_dead_agent_is_told_and_the_next_prompt_starts_it_again() {
    let script = json!({
        "die": [message("Going.\n"), call("1", "read", "read a.txt"), { "raw": "no json\n{\"half" }, { "die": 7 }],
        "on": [message("Back.")],
    });
    let scene = scene(&script);
    scene.co("die");
    scene.wait_turns(1);
    let chat = scene.wait_chat("scripted has ended; the next prompt starts it anew");
    assert!(
        chat.contains("it hurts") && chat.contains("no json"),
        "{chat}"
    );
    scene.assert_outcomes(1);
    scene.co("on");
    scene.wait_chat("Back.");
    scene.wait_turns(2);
    assert!(
        scene
            .chat()
            .contains("does not know what this chat said before")
    );
}

#[test]
fn an_agent_that_closes_its_output_and_goes_on_is_ended() {
    let mute = "echo it hurts >&2; exec >&-; sleep 600";
    let scene = scene_with(&json!({}), json!({ "cmd": ["sh", "-c", mute] }));
    scene.co("hi");
    scene.wait_chat("scripted cannot work: it ended: it hurts");
    scene.wait_turns(1);
}

#[test]
fn it_starts_before_the_first_prompt() {
    let script = json!({
        "log": "requests",
        "session": { "modes": modes(["ask", "plan"]) },
        "hi": [message("Hello.")],
    });
    let scene = scene(&script);
    scene.nvim.wait_for(
        "#vim.fn.getcompletion('Co /mode ', 'cmdline') == 2",
        "the modes of the agent",
    );
    assert_eq!(scene.chats().len(), 0, "no chat is recorded yet");
    scene.co("hi");
    scene.wait_chat("Hello.");
    scene.wait_turns(1);
    let requests = scene.workspace.read("requests").unwrap();
    assert_eq!(requests.matches("session/new").count(), 1, "{requests}");
    let sessions = scene.items();
    let sessions = sessions.iter().filter(|it| it["item"] == "agent_session");
    assert_eq!(sessions.count(), 1);
}

/// Returns a scene with the scripted agent, which first runs the shell command `before`.
fn scene_after(before: &str, script: &Value) -> Scene {
    let workspace = Workspace::new();
    workspace.write("agent.py", include_str!("agent.py"));
    let command = format!("{before}; exec {} agent.py script.json", python());
    let agent = json!({ "cmd": ["sh", "-c", command] });
    scene_in(workspace, &script.to_string(), agent)
}

#[test]
fn what_an_agent_tells_before_the_first_prompt_is_known() {
    let commands = vec![AvailableCommand::new("review", "Reviews a file")];
    let script = json!({
        "log": "requests",
        "session": { "modes": modes(["ask", "code", "broken"]) },
        "after": [
            message("Early."),
            said(SessionUpdate::CurrentModeUpdate(CurrentModeUpdate::new("code"))),
            said(SessionUpdate::AvailableCommandsUpdate(AvailableCommandsUpdate::new(commands))),
        ],
        "hi": [message("Hello.")],
    });
    let scene = scene(&script);
    scene.nvim.wait_text("mode CODE");
    scene.nvim.wait_for(
        "#vim.fn.getcompletion('Co /agent:', 'cmdline') == 1",
        "the commands of the agent",
    );
    scene.co("/mode broken");
    scene.wait_notice("scripted did not take the change: this mode is broken");
    scene.co("/mode ask");
    scene.nvim.wait_text("mode ASK");
    scene.co("hi");
    scene.wait_chat("Hello.");
    scene.wait_turns(1);
    assert!(scene.chat().contains("Early."), "{}", scene.chat());
    scene.nvim.wait_text("mode ASK");
}

#[test]
fn an_early_start_that_fails_is_told_at_once() {
    let fails = json!({ "cmd": ["sh", "-c", "echo no key >&2; exit 3"] });
    let scene = scene_with(&json!({}), fails);
    scene.wait_notice("scripted does not start: it ended: no key");
    let lost = json!({ "capabilities": { "loadSession": true }, "lost": "no such session" });
    let scene = scene_in(Workspace::new(), &lost.to_string(), json!({}));
    scene.co("/session s9");
    scene.wait_notice("scripted cannot go on with the session s9: no such session");
}

#[test]
fn a_chat_that_has_not_begun_keeps_its_agent_when_the_backend_is_restarted() {
    let scene = scene(&json!({ "hi": [message("Hello.")] }));
    scene.wait_text("scripted");
    scene.co("/restart");
    scene.wait_notice("a new backend runs");
    scene.co("hi");
    scene.wait_chat("Hello.");
    scene.wait_turns(1);
    assert_eq!(
        scene.server.requests().len(),
        0,
        "no prompt goes to a model"
    );
}

#[test]
fn a_choice_is_shown_as_soon_as_the_agent_has_started() {
    let script = json!({
        "log": "requests",
        "session": { "modes": modes(["ask", "plan"]) },
        "hi": [message("Hello.")],
    });
    let scene = scene_after("until test -e go; do sleep 0.05; done", &script);
    scene.co("/mode plan");
    scene.wait_notice("scripted takes the mode plan with the next prompt");
    scene.workspace.write("go", "");
    scene.nvim.wait_text("mode PLAN");
    scene.co("hi");
    scene.wait_chat("Hello.");
    scene.wait_turns(1);
    let requests = scene.workspace.read("requests").unwrap();
    assert_eq!(
        requests.matches("session/set_mode").count(),
        1,
        "{requests}"
    );
}

#[test]
fn an_early_start_ends_when_the_person_leaves_the_agent() {
    for command in ["/agent none", "/new", "/close"] {
        let scene = scene_after("trap '' TERM; sleep 600", &json!({}));
        let started = scene.wait_below("sleep 600");
        match command {
            "/close" => scene.command("bwipeout! co://chat/1/prompt"),
            "/new" => {
                scene.co("/new");
                scene.command("bwipeout! co://chat/1/prompt");
            }
            _ => scene.co(command),
        }
        wait_gone(&started);
    }
}

#[test]
fn a_host_that_an_early_start_needs_is_asked_about_with_the_first_prompt() {
    let fetch = "import urllib.request as it; it.urlopen('http://host.test/')";
    let fetch = format!("{} -c \"{fetch}\" 2> refused; mv refused done", python());
    let scene = scene_after(&fetch, &json!({ "hi": [message("Hello.")] }));
    wait_until(LONG, "a refusal", || scene.workspace.read("done"));
    scene.co("hi");
    scene.answer_text("host.test", "n");
    scene.wait_chat("Hello.");
    scene.wait_turns(1);
}

#[test]
fn a_session_that_an_early_start_loaded_is_shown_once() {
    let script = json!({
        "log": "requests",
        "capabilities": { "loadSession": true },
        "load": [message("An earlier answer.")],
        "on": [message("Went on.")],
    });
    let scene = scene(&script);
    scene.co("/session s1");
    let loaded = || scene.workspace.read("requests")?.find("session/load");
    wait_until(LONG, "an early start", loaded);
    scene.workspace.write(".env", "TOKEN=hunter2-token\n");
    scene.co("on");
    scene.wait_chat("Went on.");
    scene.wait_turns(1);
    let chat = scene.chat();
    assert_eq!(chat.matches("An earlier answer.").count(), 1, "{chat}");
    let items = scene.items();
    let sessions = items.iter().filter(|it| it["item"] == "agent_session");
    assert_eq!(sessions.count(), 1, "{items:#?}");
}

#[test]
fn a_cancel_of_the_start_leaves_no_process() {
    let deaf = "trap '' TERM; sleep 600 & echo $$ $! > pids; mv pids started; wait";
    let scene = scene_with(
        &json!({}),
        json!({ "cmd": ["sh", "-c", deaf], "confinement": "none" }),
    );
    scene.co("hi");
    wait_until(LONG, "the agent runs", || scene.workspace.read("started"));
    scene.interrupt();
    scene.wait_turns(1);
    let pids = scene.workspace.read("started").unwrap();
    for pid in pids.split_whitespace() {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        assert!(stat.is_err(), "{pid} is left: {stat:?}");
    }
}

#[test]
fn the_start_of_a_long_title_is_shown() {
    let title = "long ".repeat(1000) + "end";
    let script = json!({
        "call": [call("1", "read", &title), ended("1", "completed", "read"), message("Done.")],
    });
    let scene = scene(&script);
    scene.co("call");
    scene.wait_chat("Done.");
    scene.wait_turns(1);
    let items = scene.items();
    let call = items.iter().find(|it| it["item"] == "call").unwrap();
    assert_eq!(call["arguments"]["title"], title[..2000]);
}

#[test]
fn a_cancel_stops_the_agent_and_withdraws_its_question() {
    let script = json!({
        "wait": [message("Waiting."), { "await": "cancel" }],
        "on": [message("Back.")],
    });
    let scene = scene(&script);
    scene.co("wait");
    scene.wait_chat("Waiting.");
    scene.interrupt();
    scene.wait_turns(1);
    scene.co("on");
    scene.wait_chat("Back.");
    scene.wait_turns(2);
    assert!(!scene.chat().contains("starts anew"));
}

#[test]
fn the_end_of_a_turn_withdraws_its_question_about_a_host() {
    let fetch = "import urllib.request as r; r.urlopen('http://unknown.test/')";
    // The request goes on in the background, and its question is open when the turn ends.
    let fetch = format!(
        "python3 -c \"{fetch}\" >/dev/null 2>&1 </dev/null & until test -e go; do sleep 0.05; done"
    );
    let script = json!({
        "fetch": [{ "sh": fetch }, message("Fetched.")],
        "on": [message("Back.")],
    });
    let scene = scene(&script);
    scene.co("fetch");
    scene.nvim.wait_text("wants to reach this host:");
    scene.workspace.write("go", "");
    scene.wait_turns(1);
    scene.nvim.wait_no_text("wants to reach this host:");
    scene.co("on");
    scene.wait_chat("Back.");
    scene.wait_turns(2);
}

/// Opens a connection to 127.0.0.2 by the proxy, and writes what comes until it ends, or one byte, to a file.
const TUNNEL: &str = "import os, socket, sys
name, port = sys.argv[1:]
s = socket.create_connection(('127.0.0.1', int(os.environ['HTTP_PROXY'].rsplit(':', 1)[1])))
s.sendall(f'CONNECT 127.0.0.2:{port} HTTP/1.1\\r\\n\\r\\n'.encode())
head = b''
while not head.endswith(b'\\r\\n\\r\\n'): head += s.recv(1)
assert head.startswith(b'HTTP/1.1 200'), head
open('open-' + name, 'w').close()
got = s.recv(1)
open('new', 'wb').write(got)
os.rename('new', 'got-' + name)
";

#[test]
fn a_connection_that_was_allowed_for_a_turn_ends_with_it() {
    let server = TcpListener::bind("127.0.0.2:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let open = |name: &str| {
        let line = format!(
            "python3 tunnel.py {name} {port} >/dev/null 2>&1 </dev/null & until test -e open-{name}; do sleep 0.05; done"
        );
        json!([{ "sh": line }, { "until": format!("go-{name}") }, message("Opened.")])
    };
    let scene = scene(&json!({ "once": open("once"), "saved": open("saved") }));
    scene.workspace.write("tunnel.py", TUNNEL);
    let got = |name: &str| {
        let file = format!("got-{name}");
        wait_until(DEADLINE, &file, || scene.workspace.read(&file))
    };
    scene.co("once");
    scene.nvim.wait_text("wants to reach this host:");
    // It comes at once, so it may take the focus, and take no keys at first.
    scene.press("");
    scene.answer("y");
    let once = server.accept().unwrap();
    scene.workspace.write("go-once", "");
    scene.wait_turns(1);
    assert_eq!(got("once"), "");
    drop(once);
    // A rule allows this one after the turn too.
    scene.co("saved");
    scene.nvim.wait_text("chat 1 · #2");
    scene.press("");
    scene.answer("as");
    let (mut saved, _) = server.accept().unwrap();
    // The rule is saved before the connection opens.
    scene.workspace.write("go-saved", "");
    scene.wait_turns(2);
    saved.write_all(b"y").unwrap();
    assert_eq!(got("saved"), "y");
}

#[test]
fn ten_thousand_updates_are_shown() {
    let pieces = (0..10_000).map(|number| message(&format!("{number} ")));
    let script = json!({ "talk": pieces.collect::<Vec<_>>() });
    let scene = scene(&script);
    scene.co("talk");
    scene.wait_turns(1);
    let chat = scene.wait_chat("9998 9999");
    assert!(chat.contains("0 1 2 3 "));
}

#[test]
fn an_agent_that_floods_co_is_ended() {
    let script = json!({
        "flood": [message("Flooding."), { "flood": "[]," }],
        "on": [message("Back.")],
    });
    let scene = scene(&script);
    scene.co("flood");
    scene.wait_turns(1);
    scene.wait_chat("sent more in one turn than 256 MiB of memory hold, so co ended it");
    scene.co("on");
    scene.wait_chat("Back.");
    scene.wait_turns(2);
}

#[test]
fn a_chat_has_an_agent_from_its_start_or_none() {
    let scene = scene(&json!({ "hi": [message("Hello.")] }));
    scene.co("hi");
    scene.wait_chat("Hello.");
    scene.wait_turns(1);
    for (command, notice) in [
        ("/agent none", "this chat has begun"),
        ("/model x", "scripted works in this chat"),
        ("/retry", "scripted works in this chat"),
    ] {
        scene.co(command);
        scene.wait_notice(notice);
    }
    scene.co("/new");
    let words = scene.nvim.lua(
        "return vim.fn.getcompletion('Co /agent ', 'cmdline')",
        json!([]),
    );
    let names = ["claude", "codex", "gemini", "none", "opencode", "scripted"];
    assert_eq!(words, json!(names));
    scene.co("/agent nobody");
    scene.wait_notice(
        "there is no agent nobody; the agents are: claude, codex, gemini, opencode, scripted",
    );
}

#[test]
fn what_it_changed_is_reviewed_and_taken_back_while_it_runs() {
    let lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let script = json!({
        "go": [
            { "sh": "sed -i 's/^2$/two/; s/^8$/eight/' big.txt; echo new > new.txt" },
            message("Half done."),
            { "until": "on" },
            { "sh": "sed -i 's/^5$/five/' big.txt; echo more >> new.txt; echo last > last.txt" },
            message("All through."),
        ],
        "next": [message("Went on.")],
    });
    let scene = scene(&script);
    scene.workspace.write("big.txt", lines);
    scene.co("go");
    scene.wait_chat("Half done.");
    // One of its changes is taken back and one accepted, while it runs.
    scene.command("Co /review");
    scene.answers(&[
        ("big", "1 of 2", "n"),
        ("big", "2 of 2", "y"),
        ("new", "1 of 1", "q"),
    ]);
    scene.wait_text("1 change accepted");
    let read = |name| scene.workspace.read(name);
    assert_eq!(read("big.txt").unwrap(), "1\n2\n3\n4\n5\n6\n7\neight\n9\n");
    // All of the turn so far is taken back, also what was accepted.
    scene.co("/undo");
    scene.approve();
    scene.wait_notice("2 files taken back");
    assert_eq!(read("big.txt").unwrap(), lines);
    assert!(read("new.txt").is_none());
    // The person's own file is not taken for the agent's.
    scene.command("tabnew on | write");
    scene.wait_chat("All through.");
    scene.wait_turns(1);
    // What it did later is its own change, and nothing else is.
    let after = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n";
    assert_eq!(read("big.txt").unwrap(), after);
    scene.co("next");
    scene.wait_chat("Went on.");
    scene.wait_turns(2);
    scene.co("/undo");
    scene.approve();
    scene.wait_notice("3 files taken back");
    assert_eq!(read("big.txt").unwrap(), lines);
    assert!(read("new.txt").is_none() && read("last.txt").is_none());
    // The next prompt told the agent.
    let items = scene.items();
    let is_note =
        |it: &Value| it["item"] == "note" && it["text"].as_str().unwrap().contains("big.txt");
    let (note, end) = (
        items.iter().position(is_note).unwrap(),
        items.iter().position(|it| it["item"] == "end").unwrap(),
    );
    assert!(note > end, "{items:#?}");
}

#[test]
fn what_changes_between_two_turns_counts_as_the_persons() {
    let script = json!({
        "go": [
            { "sh": "echo two > a.txt; (until test -e on; do sleep 0.05; done; echo later > b.txt; mv on off) >/dev/null 2>&1 </dev/null &" },
            message("Left something running."),
        ],
        "next": [{ "sh": "echo three >> a.txt" }, message("Went on.")],
    });
    let scene = scene(&script);
    scene.co("go");
    scene.wait_chat("Left something running.");
    scene.wait_turns(1);
    scene.workspace.write("on", "");
    scene.wait_for(
        "vim.uv.fs_stat('off') ~= nil",
        "the process in the background",
    );
    scene.co("next");
    scene.wait_chat("Went on.");
    scene.wait_turns(2);
    for text in ["two\\n", "one\\ntwo\\n"] {
        scene.co("/undo");
        scene.approve();
        let is_back = format!("table.concat(vim.fn.readfile('a.txt', 'b'), '\\n') == \"{text}\"");
        scene.wait_for(&is_back, "the text before the turn");
    }
    assert_eq!(scene.workspace.read("a.txt").unwrap(), "one\ntwo\n");
    assert_eq!(scene.workspace.read("b.txt").unwrap(), "later\n");
}

#[test]
fn a_secret_that_appears_is_told_and_closed_from_the_next_turn_on() {
    let look = json!({ "sh": "cat .env 2>&1" });
    let script = json!({
        "go": [message("Going.\n"), { "until": ".env" }, look, message("Looked.")],
        "again": [look, message("Looked again.")],
    });
    let scene = scene(&script);
    scene.co("go");
    scene.wait_chat("Going.");
    scene.workspace.write(".env", "TOKEN=hunter2-token\n");
    scene.wait_turns(1);
    scene.wait_chat("scripted can read what is secret since it started: .env");
    scene.co("again");
    scene.wait_chat("scripted is started anew, because it could read what is secret now: .env");
    scene.wait_chat("Looked again.");
    scene.wait_turns(2);
    let chat = scene.chat();
    let later = chat.split("started anew").last().unwrap();
    assert!(!later.contains("hunter2"), "{chat}");
    assert!(later.contains("status 1"), "{chat}");
}

/// Returns a step that asks for permission, without waiting for the answer.
fn asks(id: &str, call: &str) -> Value {
    json!({ "request": "session/request_permission", "id": id, "params": {
        "sessionId": "s1",
        "toolCall": { "toolCallId": call, "title": "Run it", "kind": "execute", "status": "in_progress", "rawInput": { "command": "touch made" } },
        "options": [
            { "optionId": "once", "name": "Option once", "kind": "allow_once" },
            { "optionId": "no", "name": "Option no", "kind": "reject_once" },
        ],
    } })
}

#[test]
fn a_question_goes_when_the_agent_goes_on_without_it() {
    let script = json!({
        "call ends": [
            asks("q1", "9"),
            message("Asked."),
            { "until": "seen" },
            ended("9", "completed", "done"),
            { "until": "gone" },
            message("Went on."),
        ],
        "taken back": [asks("q2", "8"), { "until": "seen" }, { "withdraw": "q2" }, { "until": "gone" }, message("Went on too.")],
        "turn ends": [asks("q3", "7"), { "until": "seen" }],
        "on": [message("Back.")],
    });
    let scene = scene(&script);
    for (turn, prompt) in ["call ends", "taken back", "turn ends"].iter().enumerate() {
        for file in ["seen", "gone"] {
            std::fs::remove_file(scene.workspace.path().join(file)).ok();
        }
        scene.co(prompt);
        scene.nvim.wait_text("2  Option no");
        scene.workspace.write("seen", "");
        scene.nvim.wait_no_text("2  Option no");
        scene.workspace.write("gone", "");
        scene.wait_turns(turn as u64 + 1);
    }
    scene.co("on");
    scene.wait_chat("Back.");
    scene.wait_turns(4);
}

#[test]
fn a_login_is_a_choice_of_the_agents_methods() {
    let address = json!({ "mode": "url", "requestId": 1, "elicitationId": "e1", "url": "https://login.test/device", "message": "Enter ABCD-1234" });
    let script = json!({
        "log": "requests",
        "methods": [
            { "id": "bad", "name": "Broken login" },
            { "id": "device", "name": "Device code", "description": "Opens a page" },
            { "id": "term", "name": "In a terminal", "type": "terminal", "args": ["--log-in"] },
        ],
        "login": {
            "bad": [{ "error": "the server is down" }],
            "device": [
                { "elicit": address },
                { "notify": "elicitation/complete", "params": { "elicitationId": "e1" } },
            ],
        },
        "hi": [message("Hello.")],
        "die": [{ "die": 1 }],
        "on": [message("Back.")],
    });
    let scene = scene(&script);
    scene.co("hi");
    let screen = scene
        .nvim
        .wait_text("scripted needs a login: Authentication required");
    let screen = screen.join("\n");
    for text in [
        "1  Broken login",
        "2  Device code",
        "Opens a page",
        "3  In a terminal",
    ] {
        assert!(screen.contains(text), "{text}: {screen}");
    }
    scene.answer("1");
    scene.wait_chat("scripted was not logged in: the server is down");
    scene.wait_turns(1);
    // Nobody logs in.
    scene.co("hi");
    scene.nvim.wait_text("chat 1 · #2");
    scene.answer("n");
    scene.wait_chat("scripted was not logged in, so it did not get the prompt");
    scene.wait_turns(2);
    // The agent asks for an address while it logs in.
    scene.co("hi");
    scene.nvim.wait_text("chat 1 · #3");
    scene.answer("2");
    scene.nvim.wait_text("https://login.test/device");
    scene.nvim.wait_text("Enter ABCD-1234");
    scene.answer("1");
    scene.wait_chat("Hello.");
    scene.wait_turns(3);
    assert!(scene.chat().contains("scripted has what it asked you for"));
    // A later process logs in in the same way, without the question about the methods.
    scene.co("die");
    scene.wait_turns(4);
    scene.co("on");
    scene.nvim.wait_text("chat 1 · #5");
    scene.answer("1");
    scene.wait_chat("Back.");
    scene.wait_turns(5);
}

#[test]
fn a_login_in_a_terminal_is_a_run_of_the_person() {
    let script = json!({
        "methods": [{ "id": "term", "name": "In a terminal", "type": "terminal", "args": ["--log-in"] }],
        "hi": [message("Hello.")],
    });
    let workspace = Workspace::new();
    // The program of the agent also logs in.
    let log_in = "import os, sys\nif sys.argv[-1] == '--log-in':\n    open(os.path.join(os.path.dirname(sys.argv[0]), 'logged-in'), 'w').write(os.getcwd())\n    sys.exit()\n";
    workspace.write(
        "wrapper.py",
        &format!("{log_in}{}", include_str!("agent.py")),
    );
    let wrapper = workspace.path().join("wrapper.py");
    let script_file = workspace.path().join("script.json");
    let cmd = json!({ "cmd": ["python3", wrapper, script_file] });
    let scene = scene_in(workspace, &script.to_string(), cmd);
    scene.co("hi");
    let screen = scene.nvim.wait_text("in a terminal, not confined: python3");
    assert!(screen.join("\n").contains("--log-in"), "{screen:?}");
    scene.answer("1");
    scene.wait_chat("then send the prompt again");
    scene.wait_turns(1);
    wait_until(LONG, "the login", || {
        let place = scene.workspace.read("logged-in");
        // Not in the workspace, where the agent writes.
        place.filter(|place| !place.is_empty() && Path::new(place) != scene.workspace.path())
    });
    scene.wait_for(
        "vim.bo.filetype == 'co-terminal'",
        "the terminal of the login",
    );
    // The prompt came back.
    scene.wait_for(
        "vim.iter(vim.api.nvim_list_bufs()):any(function(buf) return vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] == 'hi' end)",
        "the prompt in its window",
    );
    scene.nvim.type_keys("<C-\\><C-n>");
    scene.co("hi");
    scene.wait_chat("Hello.");
    scene.wait_turns(2);
}

#[test]
fn a_session_of_the_agent_goes_on_in_a_new_chat() {
    let user = |text: &str| {
        said(SessionUpdate::UserMessageChunk(ContentChunk::new(
            text.into(),
        )))
    };
    let session = |id: &str, title: &str| json!({ "sessionId": id, "cwd": "/", "title": title, "updatedAt": "2026-11-29" });
    let script = json!({
        "log": "requests",
        "capabilities": { "loadSession": true, "sessionCapabilities": { "list": {} } },
        "sessions": [[session("s0", "First work")], [session("s1", "Second work")]],
        "load": [user("an earlier prompt"), message("An earlier answer.")],
        "on": [message("Went on.")],
    });
    let mut scene = scene(&script);
    scene.co("/session");
    scene.nvim.wait_text("First work  2026-11-29");
    scene.nvim.wait_text("Second work");
    scene.press("2<CR>");
    scene.wait_notice("scripted goes on with that session");
    scene.co("on");
    scene.wait_chat("Went on.");
    scene.wait_turns(1);
    let chat = scene.chat();
    for text in [
        "scripted was asked: an earlier prompt",
        "An earlier answer.",
        "goes on with its session",
    ] {
        assert!(chat.contains(text), "{text}: {chat}");
    }
    let requests = scene.workspace.read("requests").unwrap();
    assert!(
        requests.contains(r#""method":"session/load""#) && requests.contains(r#""sessionId":"s1""#),
        "{requests}"
    );
    scene.co("/session s0");
    scene.wait_notice("this chat has begun");
    // What it tells again is not recorded twice.
    scene.restart_with(settings(&scene.workspace, json!({})));
    scene.resume();
    scene.wait_chat("Went on.");
    scene.co("on");
    scene.wait_turns(1);
    assert_eq!(scene.chat().matches("An earlier answer.").count(), 1);
}

#[test]
fn the_agent_is_told_what_somebody_else_changed_since() {
    let script = json!({
        "log": "requests",
        "go": [{ "sh": "echo two > a.txt; echo new > b.txt" }, message("Gone.")],
        "next": [message("Went on.")],
        "more": [{ "sh": "echo three > a.txt" }, message("More.")],
    });
    let scene = scene(&script);
    scene.co("go");
    scene.wait_chat("Gone.");
    scene.wait_turns(1);
    scene.workspace.write("a.txt", "mine\n");
    let told = || {
        let requests = scene.workspace.read("requests").unwrap();
        requests
            .matches("somebody else has changed these files since your last change of them: a.txt.")
            .count()
    };
    scene.co("next");
    scene.wait_turns(2);
    assert_eq!(told(), 1);
    // Only once.
    scene.co("next");
    scene.wait_turns(3);
    assert_eq!(told(), 1);
    scene.co("more");
    scene.wait_turns(4);
    scene.workspace.write("a.txt", "mine again\n");
    scene.co("next");
    scene.wait_turns(5);
    assert_eq!(told(), 2);
}

#[test]
fn a_plan_that_the_agent_cannot_begin_ends_with_a_sentence() {
    let modes = modes(["ask", "plan"]);
    // It dies at the change of its mode, and the next one does not change it.
    let dies =
        json!({ "session": { "modes": modes }, "on_change": "die", "on": [message("Back.")] });
    let scene = scene(&dies);
    scene.co("/plan it");
    scene.wait_turns(1);
    scene.wait_chat("scripted has ended; the next prompt starts it anew");
    let option = SessionConfigOption::select(
        "together",
        "Together",
        "default",
        vec![
            SessionConfigSelectOption::new("default", "Default"),
            SessionConfigSelectOption::new("plan", "Plan"),
        ],
    );
    let stays = json!({ "session": { "configOptions": [option] }, "on_change": "stay", "on": [message("Back.")] });
    scene.workspace.write("script.json", &stays.to_string());
    scene.co("/plan it");
    scene.wait_turns(2);
    scene.wait_chat("scripted is not in its plan mode, so it did not get the task");
    scene.co("on");
    scene.wait_chat("Back.");
    scene.wait_turns(3);
    // A cancel while it does not answer leaves it alive.
    let waits =
        json!({ "session": { "modes": modes }, "on_change": "wait", "on": [message("Again.")] });
    scene.workspace.write("script.json", &waits.to_string());
    scene.co("/new");
    scene.co("/agent scripted");
    scene.co("/plan it");
    wait_until(LONG, "the change", || scene.workspace.read("changing"));
    scene.interrupt();
    scene.wait_turns(4);
    scene.workspace.write("go", "");
    scene.co("on");
    let chat = scene.wait_buffer("co://chat/2", "Again.");
    scene.wait_turns(5);
    assert!(!chat.contains("anew"), "{chat}");
}

#[test]
fn its_changes_are_listed_brought_back_rewound_and_copied() {
    let script = json!({
        "one": [{ "sh": "echo 1 > a.txt" }, message("First.")],
        "two": [{ "sh": "echo 2 > a.txt; echo new > b.txt" }, message("Second.")],
        "on": [message("Went on.")],
    });
    let scene = scene(&script);
    let read = |name| scene.workspace.read(name);
    scene.co("one");
    scene.wait_turns(1);
    scene.co("two");
    scene.wait_turns(2);
    scene.co("/changes");
    let entry = "vim.iter(vim.fn.getqflist()):any(function(it) return it.text:find('· scripted', 1, true) ~= nil end)";
    scene.wait_for(entry, "the agent's entry");
    scene.co("/undo");
    scene.approve();
    scene.wait_notice("2 files taken back");
    assert_eq!(
        (read("a.txt").unwrap().as_str(), read("b.txt")),
        ("1\n", None)
    );
    scene.co("/redo");
    scene.approve();
    scene.wait_notice("2 files brought back");
    assert_eq!(read("b.txt").unwrap(), "new\n");
    scene.co("/rewind 1 both");
    scene.approve();
    let is_back = "vim.deep_equal(vim.fn.readfile('a.txt'), { 'one', 'two' })";
    scene.wait_for(is_back, "the text before both turns");
    let draft = "vim.fn.getbufline('co://chat/1/prompt', 1, '$')[1] == 'one'";
    scene.wait_for(draft, "the prompt is the draft");
    // Its agent knows nothing of the chat before, so it starts anew.
    scene.co("one");
    scene.wait_chat("First.");
    scene.wait_turns(3);
    scene.co("two");
    scene.wait_turns(4);
    // A copy has the changes too, and its agent starts anew.
    scene.co("/fork");
    scene.wait_for("require('co.chat.registry').current().id == 1", "the copy");
    scene.co("on");
    scene.wait_chat("does not know what this chat said before");
    scene.wait_turns(5);
    scene.co("/undo");
    scene.approve();
    scene.wait_text("of the turn “two”");
}
