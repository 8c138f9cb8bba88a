//! Checks of the requests of a chat, and of the processes that it started.

use std::path::Path;
use std::time::Duration;

use co_llm::transcript::Item;

use super::chat::DEADLINE;

/// Checks that the parts stand in a text in this order.
#[track_caller]
pub(super) fn assert_order(text: &str, parts: &[&str]) {
    let at = |part: &&str| {
        text.find(part)
            .unwrap_or_else(|| panic!("no {part} in\n{text}"))
    };
    assert!(
        parts.iter().map(at).is_sorted(),
        "{parts:?} are not in this order in\n{text}"
    );
}

/// Returns the result of a call in a request. Fails unless the request answers every call exactly once.
#[track_caller]
pub(super) fn told(items: &[Item], id: &str) -> String {
    let outcomes = items
        .iter()
        .filter_map(pick!(Item::Outcome(outcome) if outcome.call == id => outcome.text.clone()));
    let outcomes: Vec<_> = outcomes.collect();
    assert_eq!(outcomes.len(), 1, "{id} has one outcome in {items:#?}");
    without_frame(&outcomes[0])
}

/// Returns a result without the lines around its output, which `prompt/output_frame.rs` tests.
fn without_frame(text: &str) -> String {
    let is_frame = |line: &&str| line.starts_with("<output-") || line.starts_with("</output-");
    text.split_inclusive('\n')
        .filter(|line| !is_frame(line))
        .collect()
}

/// Checks that every call has exactly one outcome.
#[track_caller]
pub(super) fn valid(items: &[Item]) {
    for item in items {
        if let Item::Call(call) = item {
            told(items, &call.id);
        }
    }
}

/// Waits until a condition holds that no message reports.
pub(super) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(DEADLINE, wait).await;
    assert!(waited.is_ok(), "{what}");
}

/// Returns true if the process lives whose id is in the file.
pub(super) fn lives(pid: &Path) -> bool {
    let pid = std::fs::read_to_string(pid).unwrap();
    let pid = nix::unistd::Pid::from_raw(pid.trim().parse().unwrap());
    nix::sys::signal::kill(pid, None).is_ok()
}
