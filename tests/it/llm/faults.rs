//! Every protocol against every fault.

use std::time::Duration;

use co_llm::{Delta, Fault};
use serde_json::json;

use super::wire::{Said, WIRES, Wire, go, key, text};
use crate::support::http::{Ending, Response, Server};

/// Longer than a loaded machine needs to send a line, shorter than a test's patience.
const SILENCE: Duration = Duration::from_secs(3);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

const PAGE: &str = "<!DOCTYPE html>\n<html><head>\n\n<title>Login</title></head></html>";

struct Case {
    name: &'static str,
    reply: fn(Wire) -> Response,
    stall: Duration,
    /// The text before the fault.
    text: &'static str,
    fault: fn(&Fault) -> bool,
    retry: bool,
}

fn begun(wire: Wire) -> Vec<Vec<u8>> {
    let said = Said {
        texts: &["half"],
        arguments: Some(&["{}"]),
        length: false,
    };
    wire.frames(&said).drain(..=wire.prelude()).collect()
}

fn status(status: u16, kind: &str, message: &str) -> Response {
    Response::json(
        status,
        &json!({"error": {"type": kind, "message": message}}),
    )
}

/// The other statuses and error texts are in the unit tests of `remote/error.rs`.
fn before_the_answer() -> Vec<Case> {
    let case = |name, reply, fault, retry| Case {
        name,
        reply,
        stall: ANSWER_TIMEOUT,
        text: "",
        fault,
        retry,
    };
    vec![
        case(
            "429",
            |_| status(429, "rate_limit_error", "slow down").header("retry-after", "5"),
            |fault| fault.retry_after() == Some(Duration::from_secs(5)),
            true,
        ),
        case(
            "404",
            |_| status(404, "not_found_error", "no such model"),
            |fault| {
                matches!(fault, Fault::NotFound { model, body, .. }
                         if model == "test-model" && body == "no such model")
            },
            false,
        ),
        case(
            "a page instead of an answer",
            |_| Response::new(200, "text/html; charset=utf-8", vec![PAGE.into()]),
            |fault| matches!(fault, Fault::HtmlPage { .. }),
            false,
        ),
        case(
            "somewhere else",
            |_| {
                Response::new(302, "text/plain", Vec::new())
                    .header("location", "http://127.0.0.1:1/login")
            },
            |fault| matches!(fault, Fault::HtmlPage { .. }),
            false,
        ),
        case(
            "reset before the answer",
            |_| Response::nothing(Ending::Reset),
            |fault| matches!(fault, Fault::Unreachable { .. }),
            true,
        ),
        case(
            "closed before the answer",
            |_| Response::nothing(Ending::Cut),
            |fault| matches!(fault, Fault::Unreachable { .. }),
            true,
        ),
        case(
            "an empty answer",
            |wire| wire.reply(Vec::new()),
            |fault| matches!(fault, Fault::Cut),
            true,
        ),
    ]
}

fn in_the_answer() -> Vec<Case> {
    let case = |name, reply, fault, retry| Case {
        name,
        reply,
        stall: ANSWER_TIMEOUT,
        text: "half",
        fault,
        retry,
    };
    vec![
        case(
            "closed in the middle",
            |wire| wire.reply(begun(wire)).ending(Ending::Cut),
            |fault| matches!(fault, Fault::Cut),
            true,
        ),
        case(
            "closed in the middle, as if that were the end",
            |wire| wire.reply(begun(wire)).until_close(),
            |fault| matches!(fault, Fault::Cut),
            true,
        ),
        case(
            "a chunk that cannot be read, and a call after it",
            |wire| {
                let mut frames = begun(wire);
                frames.push(wire.malformed());
                frames.extend(wire.frames(&Said {
                    texts: &["more"],
                    arguments: Some(&["{}"]),
                    length: false,
                }));
                wire.reply(frames)
            },
            |fault| matches!(fault, Fault::Malformed { .. }),
            false,
        ),
        case(
            "bytes that are no text",
            |wire| {
                let mut frames = begun(wire);
                frames.push(b"data: \xff\xfe\n\n".to_vec());
                wire.reply(frames)
            },
            |fault| matches!(fault, Fault::Malformed { .. }),
            false,
        ),
    ]
}

fn silences() -> Vec<Case> {
    let case = |name, reply, text| Case {
        name,
        reply,
        stall: SILENCE,
        text,
        fault: |fault| *fault == Fault::Stalled(SILENCE),
        retry: true,
    };
    vec![
        case("no headers", |_| Response::nothing(Ending::Hang), ""),
        case(
            "silence before the answer",
            |wire| wire.reply(Vec::new()).ending(Ending::Hang),
            "",
        ),
        case(
            "silence in the middle",
            |wire| wire.reply(begun(wire)).ending(Ending::Hang),
            "half",
        ),
    ]
}

async fn run(wire: Wire, case: &Case) {
    let name = format!("{wire:?}: {}", case.name);
    let server = Server::always((case.reply)(wire));
    let provider = wire.connect(&server, case.stall);
    let deltas = go(provider.as_ref()).await;
    assert_eq!(text(&deltas), case.text, "{name}: {deltas:?}");
    let Some((Err(fault), before)) = deltas.split_last() else {
        panic!("{name}: no fault at the end: {deltas:?}");
    };
    assert!((case.fault)(fault), "{name}: {fault:?}");
    assert_eq!(fault.is_transient(), case.retry, "{name}: {fault:?}");
    let nothing_done = |delta: &Result<Delta, Fault>| {
        matches!(
            delta,
            Ok(Delta::Text(_) | Delta::Reasoning(_) | Delta::Usage(_))
        )
    };
    assert!(before.iter().all(nothing_done), "{name}: {deltas:?}");
}

async fn table(cases: Vec<Case>) {
    // Together: those that wait, wait at the same time.
    let cells = WIRES
        .into_iter()
        .flat_map(|wire| cases.iter().map(move |case| run(wire, case)));
    futures::future::join_all(cells).await;
}

#[tokio::test]
async fn faults_before_the_answer() {
    table(before_the_answer()).await;
}

#[tokio::test]
async fn faults_in_the_answer() {
    table(in_the_answer()).await;
}

#[tokio::test]
async fn silence() {
    table(silences()).await;
}

#[tokio::test]
async fn nobody_listens() {
    for wire in WIRES {
        let server = Server::always(wire.reply(Vec::new()));
        let settings = wire.settings(&server.url());
        drop(server);
        let provider = co_llm::make_provider(&settings, &key).unwrap();
        let deltas = go(provider.as_ref()).await;
        assert!(
            matches!(deltas.as_slice(), [Err(Fault::Unreachable { .. })]),
            "{wire:?}: {deltas:?}"
        );
    }
}
