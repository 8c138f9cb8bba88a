//! Waits for a command that can be cancelled.

use std::time::Duration;

use co_exec::{CommandOutcome, RunningCommand};
use co_text::{end_of, printable};

/// The time for a program to end by itself after it closed its output. Then its processes are ended.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Waits for the outcome of a command. Cancels it if `cancelled` is ready first.
pub(crate) async fn outcome(
    command: RunningCommand,
    cancelled: impl Future<Output = ()>,
) -> CommandOutcome {
    let canceller = command.canceller();
    let outcome = command.outcome();
    tokio::pin!(outcome);
    tokio::select! {
        outcome = &mut outcome => outcome,
        () = cancelled => {
            canceller.cancel();
            outcome.await
        }
    }
}

/// Waits a short time for the end of a program, then ends it. Returns the end of its standard error, printable and of at most
/// `longest` bytes.
pub(crate) async fn last_words(command: RunningCommand, longest: usize) -> String {
    let outcome = outcome(command, tokio::time::sleep(END_TIMEOUT)).await;
    end_of(&printable(outcome.output.trim()), longest).to_owned()
}
