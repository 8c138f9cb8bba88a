//! The connection to servers that are scripted here, message by message.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::connection::MOST_LIST_BYTES;
use super::*;

const CLIENT: ClientName = ClientName {
    name: "test",
    version: "1",
};

/// The server's side of a connection.
struct Server {
    input: BufReader<DuplexStream>,
    output: DuplexStream,
}

impl Server {
    /// Returns the next message of the client.
    async fn next(&mut self) -> Value {
        let mut line = String::new();
        self.input.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap_or(Value::Null)
    }

    async fn write(&mut self, text: &str) {
        self.output.write_all(text.as_bytes()).await.unwrap();
    }

    async fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        self.write(&format!("{message}\n")).await;
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.send(&json!({ "id": request["id"], "result": result }))
            .await;
    }

    /// Does the handshake of the old form of the protocol.
    async fn begin(&mut self) {
        self.refuse_probe().await;
        self.initialize().await;
    }

    async fn refuse_probe(&mut self) {
        let probe = self.next().await;
        assert_eq!(probe["method"], "server/discover");
        let unknown = json!({ "code": -32601, "message": "Method not found" });
        self.send(&json!({ "id": probe["id"], "error": unknown }))
            .await;
    }

    async fn initialize(&mut self) {
        let capabilities = json!({ "tools": { "listChanged": true } });
        self.initialize_with(capabilities).await;
    }

    async fn initialize_with(&mut self, capabilities: Value) {
        let asked = self.next().await;
        assert_eq!(asked["params"]["protocolVersion"], "2025-11-25");
        let offered = json!({ "elicitation": { "form": {} } });
        assert_eq!(asked["params"]["capabilities"], offered);
        let result = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "serverInfo": { "name": "scripted", "version": "3" },
        });
        self.answer(&asked, result).await;
        assert_eq!(self.next().await["method"], "notifications/initialized");
    }
}

/// Returns the streams of a client, and the server at their other ends.
fn pipes() -> (DuplexStream, DuplexStream, Server) {
    let (output, of_server) = tokio::io::duplex(1 << 16);
    let (input, to_server) = tokio::io::duplex(1 << 16);
    let server = Server {
        input: BufReader::new(to_server),
        output: of_server,
    };
    (output, input, server)
}

/// Returns a listener of which nobody receives.
fn unfollowed() -> CallListener {
    call_events().0
}

/// Returns an open connection, and its server.
async fn connect() -> (ServerConnection, Server) {
    let (output, input, mut server) = pipes();
    let open = ServerConnection::open(output, input, CLIENT);
    let (connection, ()) = tokio::join!(open, server.begin());
    (connection.unwrap(), server)
}

pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

pub(crate) fn answered(text: &str) -> ToolAnswer {
    ToolAnswer {
        parts: vec![AnswerPart::Text(text.to_owned())],
        is_error: false,
    }
}

#[tokio::test]
async fn a_server_of_the_old_form_is_spoken_to_in_it() {
    let (connection, mut server) = connect().await;
    assert_eq!(connection.protocol(), "2025-11-25");
    assert_eq!(
        connection.server(),
        Some(("scripted".to_owned(), "3".to_owned()))
    );
    let serve = async {
        let asked = server.next().await;
        assert_eq!(asked["method"], "tools/list");
        let tool = json!({ "name": "add", "description": "Adds.", "inputSchema": { "type": "object", "b": 1, "a": 2 } });
        let page = json!({ "tools": [tool], "nextCursor": "2" });
        server.answer(&asked, page).await;
        let asked = server.next().await;
        assert_eq!(asked["params"]["cursor"], "2");
        let tool = json!({ "name": "bare", "inputSchema": {} });
        server.answer(&asked, json!({ "tools": [tool] })).await;
        let asked = server.next().await;
        assert_eq!(asked["params"]["arguments"], json!({ "a": 1 }));
        server.answer(&asked, text("2")).await;
    };
    let ask = async {
        let (tools, more) = connection.tools().await.unwrap();
        assert!(!more);
        assert_eq!(
            (tools[0].name.as_str(), tools[0].description.as_str()),
            ("add", "Adds.")
        );
        assert_eq!(
            tools[0].schema.keys().collect::<Vec<_>>(),
            ["type", "b", "a"]
        );
        assert_eq!(tools[1].name, "bare");
        let arguments = Map::from_iter([("a".to_owned(), json!(1))]);
        let answer = connection.call("add", arguments, unfollowed()).await;
        assert_eq!(answer, Ok(answered("2")));
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn a_server_of_the_new_form_needs_no_handshake() {
    let (output, input, mut server) = pipes();
    let serve = async {
        let probe = server.next().await;
        assert_eq!(probe["method"], "server/discover");
        let result = json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "ttlMs": 0,
            "cacheScope": "private",
        });
        server.answer(&probe, result).await;
    };
    let open = ServerConnection::open(output, input, CLIENT);
    let (connection, ()) = tokio::join!(open, serve);
    assert_eq!(connection.unwrap().protocol(), "2026-07-28");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_to_the_probe_does_no_harm() {
    let (output, input, mut server) = pipes();
    let serve = async {
        let probe = server.next().await;
        // The client gives the probe up, and sends the other handshake.
        let mut line = String::new();
        server.input.read_line(&mut line).await.unwrap();
        let asked: Value = serde_json::from_str(&line).unwrap();
        let unknown = json!({ "code": -32601, "message": "Method not found" });
        server
            .send(&json!({ "id": probe["id"], "error": unknown }))
            .await;
        let result = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } });
        server.answer(&asked, result).await;
        server.next().await;
    };
    let open = ServerConnection::open(output, input, CLIENT);
    let (connection, ()) = tokio::join!(open, serve);
    assert_eq!(connection.unwrap().protocol(), "2025-11-25");
}

#[tokio::test]
async fn answers_to_nothing_and_second_answers_are_dropped() {
    let (connection, mut server) = connect().await;
    let serve = async {
        for expected in ["one", "two"] {
            let asked = server.next().await;
            server.write("Listening on stdio\n").await;
            server.write(&format!("{}\n", "[".repeat(10_000))).await;
            server
                .send(&json!({ "id": 999, "result": text("wrong") }))
                .await;
            server.send(&json!({ "method": "notifications/message", "params": { "level": "info", "data": "x" } })).await;
            // A number as a text is still that number.
            let id = json!(asked["id"].to_string());
            server
                .send(&json!({ "id": id, "result": text(expected) }))
                .await;
            server
                .send(&json!({ "id": asked["id"], "result": text("again") }))
                .await;
        }
    };
    let ask = async {
        for expected in ["one", "two"] {
            let answer = connection.call("x", Map::new(), unfollowed()).await;
            assert_eq!(answer, Ok(answered(expected)));
        }
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn a_server_gets_answers_to_pings_and_refusals() {
    let (connection, mut server) = connect().await;
    server.send(&json!({ "id": "p", "method": "ping" })).await;
    assert_eq!(
        server.next().await,
        json!({ "jsonrpc": "2.0", "id": "p", "result": {} })
    );
    for method in ["sampling/createMessage", "roots/list", "odd"] {
        let params = json!({ "messages": [], "maxTokens": 1 });
        server
            .send(&json!({ "id": 1, "method": method, "params": params }))
            .await;
        assert_eq!(server.next().await["error"]["code"], -32601, "{method}");
    }
    drop(connection);
}

#[tokio::test]
async fn a_storm_of_requests_from_a_server_that_reads_nothing_ends_in_an_answer() {
    let (connection, mut server) = connect().await;
    let serve = async {
        let asked = server.next().await;
        for at in 0..20_000 {
            server.send(&json!({ "id": at, "method": "ping" })).await;
        }
        server.answer(&asked, text("done")).await;
    };
    let (answer, ()) = tokio::join!(connection.call("x", Map::new(), unfollowed()), serve);
    assert_eq!(answer, Ok(answered("done")));
    let refused = connection.call("x", Map::new(), unfollowed()).await;
    assert_eq!(refused, Err(CallError::Stuck));
    connection.ended().await;
}

#[tokio::test]
async fn a_message_that_is_too_long_ends_the_connection() {
    let (connection, mut server) = connect().await;
    let serve = async {
        server.next().await;
        let piece = "x".repeat(1 << 16);
        // The client closes the pipe.
        while server.output.write_all(piece.as_bytes()).await.is_ok() {}
    };
    let (answer, ()) = tokio::join!(connection.call("x", Map::new(), unfollowed()), serve);
    assert_eq!(answer, Err(CallError::Ended));
    connection.ended().await;
}

#[tokio::test]
async fn a_flood_that_nobody_asked_for_ends_the_connection() {
    let (connection, mut server) = connect().await;
    let log = json!({ "level": "info", "data": "x".repeat(1 << 16) });
    let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log });
    let log = format!("{log}\n");
    // An answer begins the count again.
    for _ in 0..3 {
        let serve = async {
            let asked = server.next().await;
            for _ in 0..500 {
                server.write(&log).await;
            }
            server.answer(&asked, text("done")).await;
        };
        let (answer, ()) = tokio::join!(connection.call("x", Map::new(), unfollowed()), serve);
        assert_eq!(answer, Ok(answered("done")));
    }
    // The client closes the pipe.
    while server.output.write_all(log.as_bytes()).await.is_ok() {}
    connection.ended().await;
}

#[tokio::test]
async fn a_message_of_too_many_values_ends_the_connection_and_a_text_of_commas_does_not() {
    let (connection, mut server) = connect().await;
    let table = "\"a\",[1],\\,".repeat(100_000);
    let serve = async {
        let asked = server.next().await;
        server.answer(&asked, text(&table)).await;
        let asked = server.next().await;
        let mut result = text("many");
        result["_meta"] = json!({ "x": vec![0; 1 << 20] });
        let message = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        // The client closes the pipe.
        server
            .output
            .write_all(format!("{message}\n").as_bytes())
            .await
            .ok();
    };
    let ask = async {
        let answer = connection.call("x", Map::new(), unfollowed()).await;
        assert_eq!(answer, Ok(answered(&table)));
        let answer = connection.call("x", Map::new(), unfollowed()).await;
        assert_eq!(answer, Err(CallError::Ended));
        connection.ended().await;
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let (connection, mut server) = connect().await;
    let asked = tokio::select! {
        _ = connection.call("x", Map::new(), unfollowed()) => panic!("nobody answers"),
        asked = server.next() => asked,
    };
    let cancelled = server.next().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
    // Its answer comes too late for the next call.
    let serve = async {
        let next = server.next().await;
        server.answer(&asked, text("late")).await;
        server.answer(&next, text("in time")).await;
    };
    let (answer, ()) = tokio::join!(connection.call("y", Map::new(), unfollowed()), serve);
    assert_eq!(answer, Ok(answered("in time")));
}

#[tokio::test]
async fn each_request_that_is_given_up_is_cancelled() {
    let (connection, mut server) = connect_to_all().await;
    let argument = || OpenArgument {
        of: ArgumentOf::Prompt("p".to_owned()),
        name: "a".to_owned(),
        value: String::new(),
        others: HashMap::new(),
    };
    for method in [
        "prompts/get",
        "resources/read",
        "completion/complete",
        "resources/list",
    ] {
        let request = async {
            match method {
                "prompts/get" => drop(connection.prompt("p", Map::new()).await),
                "resources/read" => drop(connection.resource("x:1").await),
                "completion/complete" => drop(connection.complete(argument()).await),
                _ => drop(connection.offers().await),
            }
        };
        let asked = tokio::select! {
            () = request => panic!("nobody answers {method}"),
            asked = server.next() => asked,
        };
        assert_eq!(asked["method"], method);
        let cancelled = server.next().await;
        assert_eq!(cancelled["method"], "notifications/cancelled", "{method}");
        assert_eq!(cancelled["params"]["requestId"], asked["id"], "{method}");
    }
}

#[tokio::test]
async fn lists_without_end_are_cut() {
    let (connection, mut server) = connect().await;
    let (done, mut is_done) = mpsc::channel::<()>(1);
    let serve = async {
        loop {
            let asked = tokio::select! {
                asked = server.next() => asked,
                _ = is_done.recv() => return,
            };
            let page =
                json!({ "tools": [{ "name": "t", "inputSchema": {} }], "nextCursor": "more" });
            server.answer(&asked, page).await;
        }
    };
    let ask = async {
        let (tools, more) = connection.tools().await.unwrap();
        assert!(more && tools.len() <= MOST_TOOLS, "{}", tools.len());
        drop(done);
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn a_list_of_large_tools_is_cut_and_not_kept_twice() {
    let (connection, mut server) = connect().await;
    let (done, mut is_done) = mpsc::channel::<()>(1);
    let serve = async {
        let schema = json!({ "x": vec![0; 50_000] });
        let mut pages = 0;
        loop {
            let asked = tokio::select! {
                asked = server.next() => asked,
                _ = is_done.recv() => return pages,
            };
            pages += 1;
            // The server asks the client to keep each page.
            let page = json!({
                "tools": [{ "name": "t", "inputSchema": schema }], "nextCursor": pages.to_string(), "ttlMs": 3_600_000,
            });
            server.answer(&asked, page).await;
        }
    };
    let ask = async {
        for _ in 0..2 {
            let (tools, more) = connection.tools().await.unwrap();
            let bytes = tools
                .iter()
                .map(|it| serde_json::to_string(&it.schema).unwrap().len());
            assert!(more && bytes.sum::<usize>() <= MOST_LIST_BYTES);
            assert!(tools.len() > 5, "{}", tools.len());
        }
        drop(done);
    };
    let (pages, ()) = tokio::join!(serve, ask);
    assert!(pages > 12, "{pages}");
}

#[tokio::test]
async fn a_changed_list_is_counted() {
    let (connection, mut server) = connect().await;
    assert_eq!(connection.changes(), 0);
    server
        .send(&json!({ "method": "notifications/tools/list_changed" }))
        .await;
    while connection.changes() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_refuses_or_ends_says_so() {
    let (output, input, mut server) = pipes();
    let serve = async {
        for _ in 0..2 {
            let asked = server.next().await;
            let error = json!({ "code": -32000, "message": "no key" });
            server
                .send(&json!({ "id": asked["id"], "error": error }))
                .await;
        }
    };
    let (refused, ()) = tokio::join!(ServerConnection::open(output, input, CLIENT), serve);
    assert!(matches!(refused, Err(OpenError::Refused(why)) if why == "no key"));
    let (output, input, server) = pipes();
    drop(server);
    let ended = ServerConnection::open(output, input, CLIENT).await;
    assert!(matches!(ended, Err(OpenError::Ended)));
    let (connection, mut server) = connect().await;
    let serve = async {
        server.next().await;
        let mut rest = Vec::new();
        drop(server.output);
        server.input.read_to_end(&mut rest).await.unwrap();
    };
    let ask = async {
        let answer = connection.call("x", Map::new(), unfollowed()).await;
        assert_eq!(answer, Err(CallError::Ended));
        connection.ended().await;
        drop(connection);
    };
    tokio::join!(serve, ask);
}

#[tokio::test]
async fn the_progress_of_a_call_is_told() {
    let (connection, mut server) = connect().await;
    let (listener, mut events) = call_events();
    let serve = async {
        let asked = server.next().await;
        let token = &asked["params"]["_meta"]["progressToken"];
        for (token, progress, words) in [
            (&json!("another"), 1, "of nobody".to_owned()),
            (token, 2, "é".repeat(200)),
        ] {
            let params = json!({ "progressToken": token, "progress": progress, "total": 4, "message": words });
            let told = json!({ "method": "notifications/progress", "params": params });
            server.send(&told).await;
        }
        events.progress.changed().await.unwrap();
        let told = events.progress.borrow_and_update().clone();
        assert_eq!((told.done, told.words), (Some(0.5), "é".repeat(100)));
        server.answer(&asked, json!({ "content": [] })).await;
    };
    let call = connection.call("x", Map::new(), listener);
    let (answer, ()) = tokio::join!(call, serve);
    assert_eq!(answer, Ok(ToolAnswer::default()));
}

#[tokio::test]
async fn a_server_asks_the_person_one_question_at_a_time_and_only_in_a_call() {
    let (connection, mut server) = connect().await;
    let (listener, mut events) = call_events();
    let ask = |id: u64| {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let params = json!({ "message": "Who?", "requestedSchema": schema });
        json!({ "id": id, "method": "elicitation/create", "params": params })
    };
    // Outside of a call, nobody is asked.
    server.send(&ask(1)).await;
    let reply = server.next().await;
    assert_eq!(reply["result"], json!({ "action": "decline" }));
    let serve = async {
        let asked = server.next().await;
        server.send(&ask(2)).await;
        let question = events.questions.recv().await.unwrap();
        assert_eq!(question.message, "Who?");
        assert_eq!(question.schema["properties"]["name"]["type"], "string");
        server.send(&ask(3)).await;
        server.send(&ask(4)).await;
        let reply = server.next().await;
        assert_eq!(reply["id"], 4);
        assert_eq!(reply["result"], json!({ "action": "decline" }));
        let content = json!({ "name": "Ann" });
        question.answer(QuestionReply::Accept(content.as_object().unwrap().clone()));
        let reply = server.next().await;
        assert_eq!(reply["id"], 2);
        assert_eq!(
            reply["result"],
            json!({ "action": "accept", "content": content })
        );
        drop(events.questions.recv().await);
        let reply = server.next().await;
        assert_eq!(reply["id"], 3);
        assert_eq!(reply["result"], json!({ "action": "cancel" }));
        server.answer(&asked, json!({ "content": [] })).await;
    };
    let call = connection.call("x", Map::new(), listener);
    let (answer, ()) = tokio::join!(call, serve);
    assert_eq!(answer, Ok(ToolAnswer::default()));
}

/// Returns an open connection to a server that offers all, and the server.
async fn connect_to_all() -> (ServerConnection, Server) {
    let (output, input, mut server) = pipes();
    let capabilities = json!({ "resources": {}, "prompts": {}, "completions": {} });
    let begin = async {
        server.refuse_probe().await;
        server.initialize_with(capabilities).await;
    };
    let (connection, ()) = tokio::join!(ServerConnection::open(output, input, CLIENT), begin);
    (connection.unwrap(), server)
}

#[tokio::test]
async fn offers_are_bounded() {
    let (connection, mut server) = connect_to_all().await;
    let long = "é".repeat(1 << 19);
    let serve = async {
        let mut pages = 0;
        loop {
            let asked = server.next().await;
            let page = match asked["method"].as_str().unwrap() {
                "resources/list" => {
                    pages += 1;
                    let resource =
                        |at: u32| json!({ "uri": format!("x:{pages}/{at}"), "name": long });
                    let resources = match pages {
                        1 => vec![resource(1), json!({ "uri": long, "name": "long" })],
                        _ => (0..400)
                            .map(|at| json!({ "uri": format!("x:{pages}/{at}"), "name": "n" }))
                            .collect(),
                    };
                    json!({ "resources": resources, "nextCursor": "more" })
                }
                "resources/templates/list" => {
                    json!({ "resourceTemplates": [{ "uriTemplate": "x:{a}", "name": "t" }] })
                }
                _ => {
                    let argument = |name: &str| json!({ "name": name, "required": true });
                    let many: Vec<_> = (0..1_000).map(|at| argument(&at.to_string())).collect();
                    let prompts = json!([
                        { "name": "a", "description": long, "arguments": many },
                        { "name": long },
                        { "name": "b", "arguments": [argument(&long)] },
                        { "name": "c" },
                    ]);
                    let page = json!({ "prompts": prompts });
                    server.answer(&asked, page).await;
                    return;
                }
            };
            server.answer(&asked, page).await;
        }
    };
    let (offers, ()) = tokio::join!(connection.offers(), serve);
    assert_eq!(offers.resources.len(), 500);
    assert_eq!(
        (
            offers.resources[0].uri.as_str(),
            offers.resources[0].name.len()
        ),
        ("x:1/1", 1_000)
    );
    assert_eq!(offers.resources[1].uri, "x:2/0");
    assert_eq!(offers.templates[0].uri, "x:{a}");
    let prompts = offers.prompts.iter();
    let prompts: Vec<_> = prompts
        .map(|it| {
            (
                it.name.as_str(),
                it.about.len(),
                it.arguments.len(),
                it.required.len(),
            )
        })
        .collect();
    assert_eq!(prompts, [("a", 1_000, 20, 20), ("c", 0, 0, 0)]);
    assert!(offers.completes);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_comes_is_left_out() {
    let (connection, mut server) = connect_to_all().await;
    let serve = async {
        loop {
            let asked = server.next().await;
            if asked["method"] == "prompts/list" {
                let page = json!({ "prompts": [{ "name": "a" }] });
                server.answer(&asked, page).await;
                return;
            }
        }
    };
    let (offers, ()) = tokio::join!(connection.offers(), serve);
    assert_eq!((offers.resources.len(), offers.prompts.len()), (0, 1));
}

#[tokio::test]
async fn arguments_are_completed_within_bounds() {
    let (connection, mut server) = connect_to_all().await;
    let argument = |of| OpenArgument {
        of,
        name: "file".to_owned(),
        value: "src/".to_owned(),
        others: [("depth".to_owned(), "1".to_owned())].into(),
    };
    let serve = async {
        let asked = server.next().await;
        assert_eq!(asked["method"], "completion/complete");
        let params = &asked["params"];
        assert_eq!(
            params["ref"],
            json!({ "type": "ref/prompt", "name": "review" })
        );
        assert_eq!(
            params["argument"],
            json!({ "name": "file", "value": "src/" })
        );
        assert_eq!(params["context"], json!({ "arguments": { "depth": "1" } }));
        let values: Vec<_> = (0..200).map(|at| at.to_string()).collect();
        let values = [vec!["x".repeat(1_000)], values].concat();
        server
            .answer(&asked, json!({ "completion": { "values": values } }))
            .await;
        let asked = server.next().await;
        assert_eq!(
            asked["params"]["ref"],
            json!({ "type": "ref/resource", "uri": "x:{file}" })
        );
        let error = json!({ "code": -32602, "message": "no such argument" });
        server
            .send(&json!({ "id": asked["id"], "error": error }))
            .await;
    };
    let ask = async {
        let of = ArgumentOf::Prompt("review".to_owned());
        let values = connection.complete(argument(of)).await.unwrap();
        assert_eq!((values.len(), values[0].as_str()), (100, "0"));
        let of = ArgumentOf::Template("x:{file}".to_owned());
        let refused = connection.complete(argument(of)).await;
        assert_eq!(
            refused,
            Err(CallError::Refused("no such argument".to_owned()))
        );
    };
    tokio::join!(serve, ask);
}

/// An offer of one tool that says its argument, and of one that waits until it is cancelled.
struct Echo(mpsc::UnboundedSender<&'static str>);

impl ToolOffer for Echo {
    fn name(&self) -> (&'static str, &'static str) {
        ("echo", "1")
    }

    fn instructions(&self) -> &'static str {
        "Say it."
    }

    fn tools(&self) -> Vec<ServerTool> {
        let schema = json!({ "type": "object" });
        vec![ServerTool {
            name: "say".to_owned(),
            description: "Says it".to_owned(),
            schema: schema.as_object().unwrap().clone(),
        }]
    }

    fn call(&self, call: ClientCall, cancel: CancellationToken) -> ToolWork {
        let told = self.0.clone();
        Box::pin(async move {
            if call.tool == "wait" {
                told.send("begun").unwrap();
                cancel.cancelled().await;
                told.send("cancelled").unwrap();
            }
            let text = call.arguments.get("text").and_then(Value::as_str);
            ToolReply {
                text: text.unwrap_or_default().to_owned(),
                is_error: text.is_none(),
            }
        })
    }
}

/// Returns the client's side of a connection to an offer, and what the offer tells.
fn offer() -> (DuplexStream, mpsc::UnboundedReceiver<&'static str>) {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (told, tells) = mpsc::unbounded_channel();
    let (input, output) = tokio::io::split(theirs);
    tokio::spawn(serve(input, output, Arc::new(Echo(told))));
    (ours, tells)
}

fn arguments(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test]
async fn a_client_lists_and_calls_what_is_offered() {
    let (client, mut tells) = offer();
    let (output, input) = tokio::io::split(client);
    let connection = ServerConnection::open(output, input, CLIENT).await.unwrap();
    assert_eq!(connection.protocol(), "2025-11-25");
    assert_eq!(
        connection.server(),
        Some(("echo".to_owned(), "1".to_owned()))
    );
    let (tools, more) = connection.tools().await.unwrap();
    assert_eq!((tools.len(), more), (1, false));
    assert_eq!(tools[0].description, "Says it");
    let said = arguments(json!({ "text": "one" }));
    assert_eq!(
        connection.call("say", said, unfollowed()).await,
        Ok(answered("one"))
    );
    let failed = connection
        .call("say", Map::new(), unfollowed())
        .await
        .unwrap();
    assert!(failed.is_error);
    // A dropped call is cancelled, and others go on meanwhile.
    tokio::select! {
        _ = connection.call("wait", Map::new(), unfollowed()) => panic!("it waits"),
        told = tells.recv() => assert_eq!(told, Some("begun")),
    }
    assert_eq!(tells.recv().await, Some("cancelled"));
    let said = arguments(json!({ "text": "two" }));
    assert_eq!(
        connection.call("say", said, unfollowed()).await,
        Ok(answered("two"))
    );
}

#[tokio::test]
async fn the_end_of_a_connection_cancels_its_calls() {
    let (mut client, mut tells) = offer();
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "wait" } });
    client
        .write_all(format!("{call}\n").as_bytes())
        .await
        .unwrap();
    assert_eq!(tells.recv().await, Some("begun"));
    drop(client);
    // Its work is dropped, or ends.
    let end = tokio::time::timeout(Duration::from_secs(20), tells.recv()).await;
    assert!(end.is_ok(), "its work goes on");
}

#[tokio::test]
async fn a_hostile_client_gets_errors_or_is_cut_off() {
    let call = |id: usize| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "wait" } });
    let (client, _tells) = offer();
    let (output, mut input) = tokio::io::split(client);
    let mut answers = BufReader::new(output).lines();
    for (sent, code) in [
        ("hello".to_owned(), -32700),
        ("[1]".to_owned(), -32700),
        (json!({ "id": [1], "method": "ping" }).to_string(), -32600),
        (json!({ "id": 1, "method": "odd" }).to_string(), -32601),
        (
            json!({ "id": 1, "method": "tools/call" }).to_string(),
            -32602,
        ),
        (
            json!({ "id": 1, "method": "tools/call", "params": { "name": "say", "arguments": 1 } })
                .to_string(),
            -32602,
        ),
    ] {
        input
            .write_all(format!("{sent}\n").as_bytes())
            .await
            .unwrap();
        let answer: Value =
            serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(answer["error"]["code"], code, "{sent}");
    }
    // The same id twice, and more calls than there may be.
    for id in (0..16).chain([3, 99]) {
        input
            .write_all(format!("{}\n", call(id)).as_bytes())
            .await
            .unwrap();
    }
    for id in [3, 99] {
        let answer: Value =
            serde_json::from_str(&answers.next_line().await.unwrap().unwrap()).unwrap();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!(id), &json!(-32600))
        );
    }
    for flood in ["x".repeat(9 << 20), format!("[{}0]", "0,".repeat(1 << 20))] {
        let (client, _tells) = offer();
        let (output, mut input) = tokio::io::split(client);
        // It may be cut off before all is written.
        input.write_all(format!("{flood}\n").as_bytes()).await.ok();
        assert!(!matches!(
            BufReader::new(output).lines().next_line().await,
            Ok(Some(_))
        ));
    }
}
