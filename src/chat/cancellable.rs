//! Waits for a command that can be cancelled.

use co_exec::{Job, Outcome};

/// Waits for the outcome of a command. Cancels it if `cancelled` is ready first.
///
/// A running turn has its own loop, in `turn/run.rs`: it must finish taking an answer when the command ends meanwhile.
pub async fn outcome(job: Job, cancelled: impl Future<Output = ()>) -> Outcome {
    let canceller = job.canceller();
    let outcome = job.outcome();
    tokio::pin!(outcome);
    tokio::select! {
        outcome = &mut outcome => outcome,
        () = cancelled => {
            canceller.cancel();
            outcome.await
        }
    }
}
