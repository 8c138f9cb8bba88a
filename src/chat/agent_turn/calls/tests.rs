use serde_json::json;

use super::*;
use co_acp::schema::{ContentBlock, Diff, ToolCallUpdateFields};

fn update(id: &str, fields: ToolCallUpdateFields) -> ToolCallUpdate {
    ToolCallUpdate::new(id.to_owned(), fields)
}

fn completed() -> ToolCallUpdateFields {
    ToolCallUpdateFields::new().status(ToolCallStatus::Completed)
}

fn call(id: &str) -> ToolCall {
    ToolCall::new(id.to_owned(), format!("does {id}")).kind(ToolKind::Execute)
}

/// Adds a call to the log, and opens it if it is shown at once.
fn add(log: &mut CallLog, id: &str) -> bool {
    let piece = log
        .begin(call(id), Vec::new(), || format!("t{id}"))
        .unwrap();
    match log.take(piece) {
        Some(AgentPiece::Call(key)) => log.open(&key).is_some(),
        _ => false,
    }
}

#[test]
fn what_comes_while_a_call_is_open_waits_for_its_end() {
    let mut log = CallLog::default();
    assert!(log.take(AgentPiece::Text("before".to_owned())).is_some());
    assert!(add(&mut log, "1"));
    assert!(!add(&mut log, "2"));
    for text in ["a", "b"] {
        assert_eq!(log.take(AgentPiece::Text(text.to_owned())), None);
    }
    assert_eq!(log.next_held(), None);
    assert!(log.gives_way_at().is_some());
    assert!(log.close(false).is_none(), "it has not ended");
    assert_eq!(
        log.update(update("2", completed()), Vec::new(), String::new),
        None
    );
    assert_eq!(
        log.update(update("1", completed()), Vec::new(), String::new),
        None
    );
    assert_eq!(log.close(false).unwrap().id, "t1");
    let key = ToolCallId::from("2".to_owned());
    assert_eq!(log.next_held(), Some(AgentPiece::Call(key.clone())));
    assert!(log.open(&key).is_some());
    assert_eq!(log.close(false).unwrap().status(), "");
    assert_eq!(log.next_held(), Some(AgentPiece::Text("ab".to_owned())));
    assert_eq!((log.next_held(), log.gives_way_at()), (None, None));
}

#[test]
fn a_call_that_gives_way_is_shown_again_when_it_ends() {
    let mut log = CallLog::default();
    assert!(add(&mut log, "1"));
    let given_way = log.close(true).unwrap();
    assert_eq!(
        (given_way.status(), given_way.is_ok()),
        ("goes on".to_owned(), false)
    );
    let title = ToolCallUpdateFields::new().title("other".to_owned());
    assert_eq!(
        log.update(update("1", title), Vec::new(), String::new),
        None
    );
    let shown = log.update(update("1", completed()), Vec::new(), || "t1b".to_owned());
    let key = ToolCallId::from("1".to_owned());
    assert_eq!(shown, Some(AgentPiece::Call(key.clone())));
    assert_eq!(log.open(&key).unwrap().id, "t1b");
    assert!(log.close(false).unwrap().is_ok());
}

#[test]
fn an_update_of_an_unknown_call_is_a_call() {
    let mut log = CallLog::default();
    let fields = completed().kind(ToolKind::Edit);
    let shown = log.update(update("x", fields), Vec::new(), || "t".to_owned());
    let key = ToolCallId::from("x".to_owned());
    assert_eq!(shown, Some(AgentPiece::Call(key.clone())));
    let record = log.open(&key).unwrap().record(Path::new("/w"));
    assert_eq!((record.title.as_str(), record.kind.as_str()), ("x", "edit"));
}

#[test]
fn the_output_has_all_that_the_agent_tells() {
    let output = |call: ToolCall, unread: &[&str], metas: &[serde_json::Value]| {
        let mut logged = LoggedCall::new(call, "t".to_owned());
        let unread = unread.iter().map(|it| (*it).to_owned()).collect();
        logged.add(unread, None);
        for meta in metas {
            logged.add(Vec::new(), meta.as_object());
        }
        (logged.output(), logged.status())
    };
    let terminal = || ToolCallContent::Terminal(co_acp::schema::Terminal::new("nobody's"));
    let (text, _) = output(call("1").content(vec![terminal()]), &["{\"new\":1}"], &[]);
    assert_eq!(text, "[terminal nobody's]\n{\"new\":1}");
    let deltas = [
        json!({ "terminal_output_delta": { "data": "on", "terminal_id": "x" } }),
        json!({ "terminal_output_delta": { "data": "e\n" } }),
        json!({ "terminal_exit": { "exit_code": 3 } }),
    ];
    let ended = call("1")
        .content(vec![terminal()])
        .status(ToolCallStatus::Completed);
    let ended = ended.raw_output(json!({ "formatted_output": "again" }));
    assert_eq!(
        output(ended, &[], &deltas),
        ("one".to_owned(), "exit 3".to_owned())
    );
    let raw = call("1").raw_output(json!({ "formatted_output": "told\n" }));
    assert_eq!(output(raw, &[], &[]).0, "told");
    let odd = call("1").raw_output(json!({ "x": [1] }));
    assert!(output(odd, &[], &[]).0.contains("\"x\""));
    let diff = Diff::new("/w/a", "new\n").old_text("old\n".to_owned());
    let (text, _) = output(call("1").content(vec![diff.into()]), &[], &[]);
    assert!(text.contains("-old\n+new"), "{text}");
    let large = Diff::new("/w/large", "y\n".repeat(MOST_COMPARED / 2 + 1));
    let small = Diff::new("/w/small", "z\n");
    let (text, _) = output(
        call("1").content(vec![small.into(), large.into()]),
        &[],
        &[],
    );
    assert!(text.contains("+z\n"), "{text}");
    assert!(
        text.ends_with("[/w/large: too large to show its difference]"),
        "{text}"
    );
    let long = call("1").content(vec![
        ContentBlock::from("x".repeat(2 * LONGEST_OUTPUT + 5)).into(),
    ]);
    assert!(output(long, &[], &[]).0.ends_with("\n[5 more bytes]"));
}

fn of_claude(id: &str) -> ToolCall {
    call(id).name("mcp__co__run_shell_command".to_owned())
}

#[test]
fn a_call_of_a_tool_of_co_is_shown_only_if_co_carried_out_none() {
    let mut log = CallLog::default();
    log.hold("run_shell_command");
    let begin = |log: &mut CallLog, call: ToolCall| log.begin(call, Vec::new(), String::new);
    for id in ["1", "2", "3"] {
        assert_eq!(begin(&mut log, of_claude(id)), None);
    }
    assert_eq!(log.take(AgentPiece::Text("x".to_owned())), None);
    log.go_on();
    assert!(log.next_held().is_some());
    let end =
        |log: &mut CallLog, id: &str| log.update(update(id, completed()), Vec::new(), String::new);
    let key = |id: &str| AgentPiece::Call(ToolCallId::from(id.to_owned()));
    assert_eq!(end(&mut log, "1"), None);
    assert_eq!(end(&mut log, "2"), Some(key("2")));
    assert_eq!(log.stale(String::new), [key("3")], "it has not ended");
    assert_eq!(end(&mut log, "1"), None, "it stays hidden");
}

#[test]
fn what_a_model_chooses_makes_no_call_one_of_co() {
    let is_own = |call: &ToolCall| own_tool(call).is_some();
    let input = json!({ "server": "co", "tool": "editor_context" });
    let of_codex = ToolCall::new("1", "mcp.co.editor_context").raw_input(input.clone());
    let meta = json!({ "claudeCode": { "toolName": "mcp__co__rename_symbol" } });
    for own in [
        of_codex,
        ToolCall::new("1", "Rename").meta(meta.as_object().cloned()),
        ToolCall::new("1", "rename_symbol (co MCP Server)").kind(ToolKind::Other),
        ToolCall::new("1", "co_rename_symbol").kind(ToolKind::Other),
    ] {
        assert!(is_own(&own), "{own:?}");
    }
    let command = json!({ "command": "mcp.co.editor_context" });
    for other in [
        ToolCall::new("1", "mcp.co.editor_context").raw_input(command),
        ToolCall::new("1", "mcp__co__editor_context"),
        ToolCall::new("1", "rename_symbol (co MCP Server)").kind(ToolKind::Execute),
        ToolCall::new("1", "co_rename_symbol").kind(ToolKind::Execute),
        ToolCall::new("1", "mcp.co.odd").raw_input(input),
    ] {
        assert!(!is_own(&other), "{other:?}");
    }
}
