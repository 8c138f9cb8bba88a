//! Waits for a command that can be cancelled.

use co_exec::{CommandOutcome, RunningCommand};

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
