//! Ends a command inside a container, of which the supervisor sees the engine's client only.

use std::time::Duration;

use super::{Cause, DRAIN_TIMEOUT, REMAINING_OUTPUT_TIMEOUT, STOP_GRACE_PERIOD, Supervisor};
use crate::command::Caller;
use crate::container::Inside;
use crate::outcome::BackgroundProcess;

impl Supervisor {
    /// Ends a command inside its container, unless it has ended by itself, and the engine's client. Returns the cause, and
    /// the processes that the command left.
    pub(super) async fn end_inside(
        &mut self,
        cause: Cause,
        wall: Duration,
    ) -> (Cause, Vec<BackgroundProcess>) {
        let Some(inside) = &self.inside else {
            return (cause, Vec::new());
        };
        let mut left = Vec::new();
        let cause = match cause {
            Cause::Exit if inside.timed_out(inside.reports().code, wall) => Cause::TimedOut,
            cause => cause,
        };
        if cause == Cause::Exit {
            left = inside.left().await;
        }
        let keeps = cause == Cause::Exit && self.caller == Caller::Person;
        if cause != Cause::Exit || !left.is_empty() && !keeps {
            inside.end().await;
        }
        // Docker's client goes on for two seconds if a process that was left may still print.
        let pause = if keeps && !left.is_empty() {
            REMAINING_OUTPUT_TIMEOUT
        } else {
            DRAIN_TIMEOUT
        };
        let client = tokio::time::timeout(pause, self.ended.readable())
            .await
            .is_ok();
        if client {
            self.processes.set_exited();
        }
        if !client && left.is_empty() && cause == Cause::Exit {
            // It did not tell of what it left.
            inside.end().await;
        }
        self.reader.finish(DRAIN_TIMEOUT).await;
        if self.processes.any_runs() {
            self.end_processes(STOP_GRACE_PERIOD).await;
        }
        (cause, left)
    }
}

/// Waits until a command inside a container has ended; for ever if there is none.
pub(super) async fn ended_inside(inside: Option<&Inside>) {
    match inside {
        Some(inside) => inside.ended().await,
        None => std::future::pending().await,
    }
}
