//! Servers that never answer or never stop: co neither waits nor collects without an end.

use std::collections::HashSet;
use std::time::Duration;

use co_llm::{Delta, Fault};

use super::wire::{Wire, go};
use crate::support::http::{Ending, Response, Server};

const MIB: usize = 1 << 20;
/// The time without a byte after which a server has stalled.
const SILENCE: Duration = Duration::from_secs(1);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

async fn fault(reply: Response, stall: Duration) -> Fault {
    let server = Server::always(reply);
    let provider = Wire::Ollama.connect(&server, stall);
    let deltas = go(provider.as_ref()).await;
    match deltas.as_slice() {
        [Err(fault)] => fault.clone(),
        _ => panic!("nothing but a fault: {deltas:?}"),
    }
}

#[tokio::test]
async fn an_error_that_does_not_end_is_known_by_its_status() {
    let words = br#"no such option"#.to_vec();
    let reply = Response::new(400, "text/plain", vec![words]).ending(Ending::Hang);
    let fault = fault(reply, SILENCE).await;
    assert!(
        matches!(&fault, Fault::BadRequest { body, .. } if body == "no such option"),
        "{fault:?}"
    );
}

#[tokio::test]
async fn an_error_that_is_long_is_not_read_to_its_end() {
    // Were it read on, silence would come before an end.
    let reply = Response::new(500, "text/plain", vec![vec![b'x'; MIB]]).ending(Ending::Hang);
    let fault = tokio::time::timeout(ANSWER_TIMEOUT, fault(reply, 10 * ANSWER_TIMEOUT)).await;
    assert!(matches!(fault, Ok(Fault::Server { .. })), "{fault:?}");
}

#[tokio::test]
async fn a_line_without_an_end_is_a_fault() {
    let mut pieces = vec![b"{\"message\": \"".to_vec()];
    pieces.extend(std::iter::repeat_n(vec![b'x'; MIB], 33));
    let reply = Response::new(200, "application/x-ndjson", pieces).ending(Ending::Hang);
    let fault = fault(reply, 10 * SILENCE).await;
    assert!(
        matches!(&fault, Fault::Malformed { detail } if detail.contains("32 MiB")),
        "{fault:?}"
    );
}

#[test]
fn calls_without_ids_hold_up_nobody_however_many() {
    const CALLS: usize = 30_000;
    let (tell, told) = std::sync::mpsc::channel();
    // Not a time-out of the runtime's: its one thread would be the one held up.
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let deltas = runtime.block_on(async {
            let call = r#"{"function":{"name":"x","arguments":{}}}"#;
            let calls = vec![call; CALLS].join(",");
            let line = format!("{{\"message\":{{\"tool_calls\":[{calls}]}},\"done\":true}}\n");
            let reply = Response::new(200, "application/x-ndjson", vec![line.into_bytes()]);
            let server = Server::always(reply);
            let provider = Wire::Ollama.connect(&server, ANSWER_TIMEOUT);
            go(provider.as_ref()).await
        });
        tell.send(deltas)
    });
    let deltas = told
        .recv_timeout(ANSWER_TIMEOUT)
        .expect("an answer in time");
    let ids: HashSet<_> = deltas
        .into_iter()
        .filter_map(|delta| match delta {
            Ok(Delta::Call(call)) => Some(call.id),
            _ => None,
        })
        .collect();
    assert_eq!(ids.len(), CALLS);
}
