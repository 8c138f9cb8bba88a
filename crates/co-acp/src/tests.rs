//! Tests against agents that are scripted with the types of the protocol's own crate, and by raw lines for faults.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use crate::schema::{
    AgentCapabilities, ContentBlock, ContentChunk, Diff, InitializeResponse, NewSessionResponse,
    PermissionOption, PermissionOptionKind, PromptResponse, RequestPermissionRequest, SessionId,
    SessionNotification, SessionUpdate, StopReason, ToolCall, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use crate::{
    AgentAnswer, AgentConnection, ClientName, Incoming, RequestNumber, SendError, SessionSetup,
};

/// The agent's side of a connection.
struct ScriptedAgent {
    requests: Lines<BufReader<ReadHalf<DuplexStream>>>,
    output: WriteHalf<DuplexStream>,
}

impl ScriptedAgent {
    /// Returns the next message of the client.
    async fn read(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(20), self.requests.next_line());
        let line = line.await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn write(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.unwrap();
    }

    async fn say(&mut self, message: Value) {
        self.write(&format!("{message}\n")).await;
    }

    /// Reads a request of this method, and answers it.
    async fn answer(&mut self, method: &str, result: impl Serialize) {
        let request = self.read().await;
        assert_eq!(request["method"], method);
        let result = serde_json::to_value(result).unwrap();
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }))
            .await;
    }

    async fn update(&mut self, update: SessionUpdate) {
        let params = SessionNotification::new("s", update);
        self.say(json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }))
            .await;
    }

    async fn ask(&mut self, id: Value) {
        let options = vec![
            PermissionOption::new("yes", "Yes", PermissionOptionKind::AllowOnce),
            PermissionOption::new("no", "No", PermissionOptionKind::RejectOnce),
        ];
        let call = ToolCallUpdate::new("call", ToolCallUpdateFields::new());
        let params = RequestPermissionRequest::new("s", call, options);
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params }))
            .await;
    }
}

const CLIENT: ClientName = ClientName {
    name: "co",
    version: "1.2.3",
};

fn connect() -> (AgentConnection, ScriptedAgent) {
    let (client, agent) = tokio::io::duplex(4096);
    let (output, input) = tokio::io::split(client);
    let (requests, own_output) = tokio::io::split(agent);
    let agent = ScriptedAgent {
        requests: BufReader::new(requests).lines(),
        output: own_output,
    };
    (AgentConnection::new(output, input), agent)
}

async fn next(connection: &mut AgentConnection) -> Incoming {
    let next = tokio::time::timeout(Duration::from_secs(20), connection.next());
    next.await.expect("the agent wrote a message")
}

async fn answer(connection: &mut AgentConnection, sent: RequestNumber) -> AgentAnswer {
    match next(connection).await {
        Incoming::Answer { number, answer } if number == sent => answer.unwrap(),
        other => panic!("{other:?} is no answer"),
    }
}

fn session() -> SessionId {
    SessionId::new("s")
}

fn prompt(connection: &mut AgentConnection) -> RequestNumber {
    let sent = connection.prompt(&session(), vec![ContentBlock::from("go")]);
    sent.unwrap()
}

fn message(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text)))
}

/// Returns the message for a garbage line.
fn garbage(text: &str) -> Incoming {
    Incoming::Garbage {
        start: text.to_owned(),
        length: text.len(),
    }
}

#[tokio::test]
async fn a_whole_turn() {
    let (mut connection, mut agent) = connect();
    let sent = connection.initialize(CLIENT).unwrap();
    let request = agent.read().await;
    assert_eq!(request["jsonrpc"], "2.0");
    assert_eq!(request["params"]["protocolVersion"], 1);
    assert_eq!(request["params"]["clientInfo"]["name"], "co");
    // Exactly what is rendered.
    let offered = json!({
        "fs": { "readTextFile": false, "writeTextFile": false },
        "terminal": false,
        "session": { "configOptions": { "boolean": {} }, "notices": {}, "compaction": {} },
        "subagents": {},
        "plan": {},
        "auth": { "terminal": true },
        "elicitation": { "form": {}, "url": {} },
    });
    assert_eq!(request["params"]["clientCapabilities"], offered);
    let made = InitializeResponse::new(agent_client_protocol_schema::ProtocolVersion::V1)
        .agent_capabilities(AgentCapabilities::new().load_session(true));
    agent
        .say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": made }))
        .await;
    match answer(&mut connection, sent).await {
        AgentAnswer::Initialized(it) => assert!(it.agent_capabilities.load_session),
        other => panic!("{other:?}"),
    }
    let sent = connection.authenticate(&"key".into()).unwrap();
    let request = agent.answer("authenticate", Value::Null);
    let (answered, ()) = tokio::join!(answer(&mut connection, sent), request);
    assert_eq!(answered, AgentAnswer::Authenticated);
    let sent = connection.list_sessions("/work".into(), Some("2".to_owned()));
    let page = json!({ "sessions": [{ "sessionId": "s", "cwd": "/work" }], "nextCursor": "3" });
    let request = agent.answer("session/list", page);
    let (answered, ()) = tokio::join!(answer(&mut connection, sent.unwrap()), request);
    assert!(
        matches!(answered, AgentAnswer::Sessions(it) if it.next_cursor.as_deref() == Some("3"))
    );
    let sent = connection
        .new_session(SessionSetup {
            cwd: "/work".into(),
            ..SessionSetup::default()
        })
        .unwrap();
    let request = async {
        agent
            .answer("session/new", NewSessionResponse::new("s"))
            .await
    };
    let (answered, ()) = tokio::join!(answer(&mut connection, sent), request);
    assert!(matches!(answered, AgentAnswer::Session(it) if it.session_id == session()));

    let sent = prompt(&mut connection);
    let request = agent.read().await;
    assert_eq!(request["params"]["prompt"][0]["text"], "go");
    let call = ToolCall::new("1", "edit a")
        .kind(ToolKind::Edit)
        .content(vec![Diff::new("/work/a", "new").into()])
        .raw_input(json!({ "path": "a" }));
    let updates = [
        message("hello"),
        SessionUpdate::ToolCall(call),
        SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
            "1",
            ToolCallUpdateFields::new().status(ToolCallStatus::Completed),
        )),
    ];
    for update in updates.clone() {
        agent.update(update).await;
    }
    let ended = PromptResponse::new(StopReason::EndTurn);
    agent
        .say(json!({ "id": request["id"], "result": ended }))
        .await;
    for expected in updates {
        match next(&mut connection).await {
            Incoming::Update { update, unread } => {
                assert_eq!(update.update, expected);
                assert!(unread.is_empty());
            }
            other => panic!("{other:?}"),
        }
    }
    let ended = answer(&mut connection, sent).await;
    assert!(matches!(ended, AgentAnswer::Prompted(it) if it.stop_reason == StopReason::EndTurn));
}

#[tokio::test]
async fn a_question_is_answered_once() {
    let (mut connection, mut agent) = connect();
    for id in [json!(7), json!("q")] {
        agent.ask(id.clone()).await;
        let Incoming::Permission { id: asked, request } = next(&mut connection).await else {
            panic!("no question");
        };
        assert_eq!(request.options.len(), 2);
        let option = request.options[0].option_id.clone();
        for _ in 0..2 {
            connection
                .answer_permission(&asked, Some(option.clone()))
                .unwrap();
        }
        let reply = agent.read().await;
        assert_eq!(reply["id"], id);
        assert_eq!(
            reply["result"]["outcome"],
            json!({ "outcome": "selected", "optionId": "yes" })
        );
    }
    // Nothing else was written.
    let _sent = prompt(&mut connection);
    assert_eq!(agent.read().await["method"], "session/prompt");
}

#[tokio::test]
async fn a_cancel_answers_the_questions_and_updates_still_come() {
    let (mut connection, mut agent) = connect();
    let sent = prompt(&mut connection);
    let request = agent.read().await;
    agent.ask(json!(0)).await;
    assert!(matches!(
        next(&mut connection).await,
        Incoming::Permission { .. }
    ));
    connection.cancel(&session()).unwrap();
    assert_eq!(agent.read().await["method"], "session/cancel");
    let reply = agent.read().await;
    assert_eq!(reply["result"]["outcome"]["outcome"], "cancelled");
    agent.update(message("late")).await;
    agent
        .say(json!({ "id": request["id"], "result": { "stopReason": "cancelled" } }))
        .await;
    assert!(matches!(
        next(&mut connection).await,
        Incoming::Update { .. }
    ));
    let ended = answer(&mut connection, sent).await;
    assert!(matches!(ended, AgentAnswer::Prompted(it) if it.stop_reason == StopReason::Cancelled));
}

#[tokio::test]
async fn a_question_that_the_agent_takes_back_gets_no_late_answer() {
    let (mut connection, mut agent) = connect();
    agent.ask(json!(5)).await;
    let Incoming::Permission { id, .. } = next(&mut connection).await else {
        panic!("no question");
    };
    let cancel = json!({ "method": "$/cancel_request", "params": { "requestId": 5 } });
    agent.say(cancel).await;
    assert_eq!(next(&mut connection).await, Incoming::Withdrawn(id.clone()));
    assert_eq!(agent.read().await["error"]["code"], -32800);
    connection.answer_permission(&id, None).unwrap();
    let _sent = prompt(&mut connection);
    assert_eq!(agent.read().await["method"], "session/prompt");
}

#[tokio::test]
async fn faults_are_told_with_their_text_and_the_next_message_is_read() {
    let (mut connection, mut agent) = connect();
    let long = "x".repeat(300);
    let lines = [
        "no json",
        "[1, 2]",
        "3",
        "{\"id\":9,\"result\":{}}",
        "{}",
        &long,
    ];
    for line in lines {
        agent.write(&format!("{line}\n\n  \n")).await;
    }
    agent.output.write_all(b"\xff\xfe\n").await.unwrap();
    agent.update(message("after")).await;
    for line in &lines[..5] {
        assert_eq!(next(&mut connection).await, garbage(line));
    }
    let cut = Incoming::Garbage {
        start: long[..200].to_owned(),
        length: 300,
    };
    assert_eq!(next(&mut connection).await, cut);
    let bytes = Incoming::Garbage {
        start: "\u{fffd}\u{fffd}".to_owned(),
        length: 2,
    };
    assert_eq!(next(&mut connection).await, bytes);
    assert!(matches!(
        next(&mut connection).await,
        Incoming::Update { .. }
    ));
}

#[tokio::test]
async fn a_line_that_is_too_long_counts_as_memory() {
    let (mut connection, mut agent) = connect();
    let length = (8 << 20) + 1;
    let line = "x".repeat(length) + "\n";
    let (incoming, ()) = tokio::join!(next(&mut connection), agent.write(&line));
    assert_eq!(
        incoming,
        Incoming::Garbage {
            start: line[..200].to_owned(),
            length
        }
    );
    assert_eq!(connection.memory_taken(), length as u64);
}

#[tokio::test]
async fn unknown_kinds_keep_their_text() {
    let (mut connection, mut agent) = connect();
    let update =
        json!({ "sessionId": "s", "update": { "sessionUpdate": "dream", "text": "of sheep" } });
    agent
        .say(json!({ "method": "session/update", "params": update }))
        .await;
    match next(&mut connection).await {
        Incoming::Unknown { method, text } => {
            assert_eq!(method, "session/update");
            assert!(text.contains("of sheep"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    let call = json!({
        "sessionUpdate": "tool_call", "toolCallId": "1", "title": "t", "kind": "sing", "status": "humming",
        "content": [{ "type": "song", "notes": "abc" }, { "type": "terminal", "terminalId": "nobody's" }],
    });
    let update = json!({ "sessionId": "s", "update": call });
    agent
        .say(json!({ "method": "session/update", "params": update }))
        .await;
    match next(&mut connection).await {
        Incoming::Update { update, unread } => {
            assert!(
                matches!(update.update, SessionUpdate::ToolCall(call) if call.content.len() == 1)
            );
            assert_eq!(unread.len(), 3, "{unread:?}");
            assert!(unread[0].contains("abc") && unread[1].contains("humming"));
            assert_eq!(unread[2], "\"sing\"");
        }
        other => panic!("{other:?}"),
    }
    // What is not offered is refused, and told.
    for method in [
        "fs/write_text_file",
        "terminal/create",
        "session/request_permission",
    ] {
        agent
            .say(json!({ "id": 1, "method": method, "params": { "path": "/x" } }))
            .await;
        assert!(
            matches!(next(&mut connection).await, Incoming::Unknown { method: it, .. } if it == method)
        );
        assert!(agent.read().await["error"]["code"].is_i64());
    }
    agent.say(json!({ "method": "$/unheard" })).await;
    agent.update(message("after")).await;
    assert!(matches!(
        next(&mut connection).await,
        Incoming::Update { .. }
    ));
}

#[tokio::test]
async fn an_error_and_an_answer_that_cannot_be_read_end_the_request() {
    let (mut connection, mut agent) = connect();
    for reply in [
        json!({ "error": { "code": -32000, "message": "log in first" } }),
        json!({ "error": "log in first" }),
        json!({ "result": { "stopReason": "log in first" } }),
        json!({}),
    ] {
        let sent = prompt(&mut connection);
        let mut reply = reply;
        reply["id"] = agent.read().await["id"].clone();
        agent.say(reply).await;
        match next(&mut connection).await {
            Incoming::Answer { number, answer } => {
                assert_eq!(number, sent);
                let error = answer.unwrap_err();
                let told = format!("{} {:?}", error.message, error.data);
                assert!(
                    told.contains("log in first") || told.contains("session/prompt"),
                    "{told}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn the_death_of_the_agent_is_told_for_ever_and_a_half_line_before_it() {
    let (mut connection, mut agent) = connect();
    agent.write("{\"method\":\"session/upd").await;
    drop(agent);
    assert_eq!(
        next(&mut connection).await,
        garbage("{\"method\":\"session/upd")
    );
    for _ in 0..2 {
        assert_eq!(next(&mut connection).await, Incoming::Ended);
    }
    // The writer notices it with the first message.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while connection.initialize(CLIENT) != Err(SendError::Closed("agent")) {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_agent_that_does_not_read_fills_a_queue_and_no_memory() {
    let (mut connection, _agent) = connect();
    let text = "x".repeat(1 << 16);
    let blocks = || vec![ContentBlock::from(text.as_str())];
    let full = (0..1000).position(|_| connection.prompt(&session(), blocks()).is_err());
    assert!(full.unwrap() <= 66);
    assert_eq!(
        connection.cancel(&session()),
        Err(SendError::Stuck("agent"))
    );
}

#[tokio::test]
async fn an_agent_that_asks_without_end_is_refused() {
    let (mut connection, mut agent) = connect();
    for id in 0..40 {
        agent.ask(json!(id)).await;
        let asked = matches!(next(&mut connection).await, Incoming::Permission { .. });
        assert_eq!(asked, id < 32);
    }
    assert_eq!(agent.read().await["error"]["code"], -32602);
}

#[tokio::test]
async fn ten_thousand_updates_come_in_order_and_none_is_lost() {
    let (mut connection, mut agent) = connect();
    let sent = prompt(&mut connection);
    let request = agent.read().await;
    let writer = tokio::spawn(async move {
        for number in 0..10_000 {
            agent.update(message(&number.to_string())).await;
        }
        agent
            .say(json!({ "id": request["id"], "result": { "stopReason": "end_turn" } }))
            .await;
        agent
    });
    for number in 0..10_000 {
        match next(&mut connection).await {
            Incoming::Update { update, .. } => {
                assert_eq!(update.update, message(&number.to_string()));
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(
        answer(&mut connection, sent).await,
        AgentAnswer::Prompted(_)
    ));
    let _agent = writer.await.unwrap();
}
