//! Waits for commands, with cancellation.

use std::time::Duration;

use co_exec::{CommandOutcome, RunningCommand};
use co_text::{end_of, printable};

/// The time-out for a program to end after it has closed its output. Then co ends its processes.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Waits for the outcome of a command. Cancels the command if the future `cancelled` completes first.
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

/// Waits a short time for a program to end, then ends it. Returns at most `longest` bytes from the end of its standard error, in
/// printable form.
pub(crate) async fn last_words(command: RunningCommand, longest: usize) -> String {
    let outcome = outcome(command, tokio::time::sleep(END_TIMEOUT)).await;
    end_of(&printable(outcome.output.trim()), longest).to_owned()
}
