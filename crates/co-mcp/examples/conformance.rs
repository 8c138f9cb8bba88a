//! A client for the protocol's conformance tests. It connects to the address in its last argument, calls each tool once, and
//! answers each form with the form's default values. `scripts/test_agents.py` runs it.

use std::error::Error;

use co_mcp::{
    CallEvents, ClientName, HttpEndpoint, QuestionReply, ServerConnection, ServerQuestion,
    ServerTool, call_events,
};
use serde_json::{Map, Value, json};

const CLIENT: ClientName = ClientName {
    name: "co",
    version: env!("CARGO_PKG_VERSION"),
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().next_back().unwrap_or_default();
    let _again = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let http = http.no_proxy().tls_certs_only([]).build()?;
    let headers = Vec::new();
    let endpoint = HttpEndpoint { url, headers };
    let connection = ServerConnection::open_http(http, &endpoint, CLIENT).await?;
    let (tools, _) = connection.tools().await?;
    for tool in &tools {
        call(&connection, tool).await?;
    }
    Ok(())
}

/// Calls a tool, and answers the forms that the server sends during the call.
async fn call(connection: &ServerConnection, tool: &ServerTool) -> Result<(), Box<dyn Error>> {
    let (listener, mut events) = call_events();
    let called = connection.call(&tool.name, arguments(&tool.schema), listener);
    tokio::pin!(called);
    loop {
        let CallEvents { questions, .. } = &mut events;
        tokio::select! {
            answer = &mut called => {
                answer?;
                return Ok(());
            }
            Some(question) = questions.recv() => {
                let reply = QuestionReply::Accept(defaults(&question));
                question.answer(reply);
            }
        }
    }
}

/// Makes arguments that match a schema.
fn arguments(schema: &Map<String, Value>) -> Map<String, Value> {
    let argument = |(name, field): (&String, &Value)| {
        let value = match field["type"].as_str() {
            Some("number" | "integer") => json!(2),
            Some("boolean") => json!(true),
            _ => json!("text"),
        };
        (name.clone(), value)
    };
    let fields = schema.get("properties").and_then(Value::as_object);
    fields.into_iter().flatten().map(argument).collect()
}

/// Returns the default values of a form.
fn defaults(question: &ServerQuestion) -> Map<String, Value> {
    let fields = question.schema["properties"].as_object();
    let default = |(name, field): (&String, &Value)| {
        let value = field.get("default")?.clone();
        Some((name.clone(), value))
    };
    fields.into_iter().flatten().filter_map(default).collect()
}
