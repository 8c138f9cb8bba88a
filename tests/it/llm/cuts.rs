//! Answers that are cut after any of their bytes.

use std::time::Duration;

use co_llm::{Delta, Fault, Stop};
use futures::{StreamExt, stream};

use super::wire::{Said, WIRES, Wire, ask, request, text, user};
use crate::support::http::{Ending, Response, Server};

/// Cuts a reply after `at` bytes for each `at`, and looks at what comes of it.
async fn cut_everywhere(
    wire: Wire,
    step: usize,
    cut: impl Fn(Response) -> Response + Send + Sync + Copy + 'static,
) {
    let said = Said {
        texts: &["Grüß", " dich"],
        arguments: Some(&[r#"{"cmd":"#, r#""ls"}"#]),
        length: false,
    };
    let whole = wire.frames(&said).concat();
    let total = whole.len();
    let server = Server::start(move |received, _| {
        // The prompt says where to cut.
        let asked = received.body.to_string();
        let at = asked.split("cut-").nth(1).and_then(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<usize>().ok()
        });
        cut(wire.reply(vec![whole[..at.unwrap_or(0)].to_vec()]))
    });
    let provider = wire.connect(&server, Duration::from_secs(30));
    let mut complete = 0;
    let mut answers = stream::iter((0..=total).rev().step_by(step))
        .map(|at| {
            let provider = provider.clone();
            async move {
                let prompt = user(&format!("cut-{at}."));
                (at, ask(provider.as_ref(), request(vec![prompt])).await)
            }
        })
        .buffer_unordered(8);
    while let Some((at, deltas)) = answers.next().await {
        let told = text(&deltas);
        assert!("Grüß dich".starts_with(&told), "{wire:?} at {at}: {told}");
        let calls = deltas
            .iter()
            .filter(|delta| matches!(delta, Ok(Delta::Call(_))))
            .count();
        match deltas.last() {
            Some(Ok(Delta::Stop(Stop::Done))) => {
                complete += 1;
                assert_eq!((told.as_str(), calls), ("Grüß dich", 1), "{wire:?} at {at}");
            }
            Some(Err(Fault::Cut | Fault::Malformed { .. })) => {
                assert_eq!(calls, 0, "{wire:?} at {at}: a call of a broken answer");
            }
            other => panic!("{wire:?} at {at} of {total}: {other:?}"),
        }
        let faults = deltas.iter().filter(|delta| delta.is_err()).count();
        assert!(faults <= 1, "{wire:?} at {at}: {deltas:?}");
    }
    assert!(complete > 0, "{wire:?}: the whole answer is one");
    // Only what follows the reason for the end may be missing without harm: the usage, and the mark of the end.
    assert!(complete < 200, "{wire:?}: {complete} cuts went unnoticed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_ends_with_the_connection() {
    for wire in WIRES {
        cut_everywhere(wire, 1, Response::until_close).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_whose_end_is_known_to_be_missing() {
    for wire in WIRES {
        // The connection tells of the cut wherever it is: some places are enough.
        cut_everywhere(wire, 7, |reply| reply.ending(Ending::Cut)).await;
    }
}
