//! One job, as a turn sees it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::advice::Conditions;
use super::board::Post;
use co_exec::{InputError, Outcome, Reading};

/// Silence after which nothing more is waited for.
const QUIET: Duration = Duration::from_millis(500);

/// A job of the session; holding one keeps nothing alive.
#[derive(Debug, Clone)]
pub(in crate::chat) struct Seen {
    pub number: u64,
    pub command: String,
    /// What names it in a line.
    pub short: String,
    pub cwd: PathBuf,
    pub conditions: Conditions,
    pub(super) reading: Arc<Reading>,
    pub(super) post: Post,
    pub(super) cancel: CancellationToken,
    pub(super) began: Instant,
    pub(super) end: watch::Receiver<Option<Arc<Outcome>>>,
}

impl Seen {
    /// Whether its end was not seen yet.
    pub(in crate::chat) fn runs(&self) -> bool {
        self.end.borrow().is_none()
    }

    /// How it ended, if it did.
    pub(in crate::chat) fn outcome(&self) -> Option<Arc<Outcome>> {
        self.end.borrow().clone()
    }

    /// Waits for its end.
    pub(in crate::chat) async fn ended(&self) {
        let mut end = self.end.clone();
        // Who would tell is gone where this fails, and the job with it.
        let _ = end.wait_for(Option::is_some).await;
    }

    /// Waits until it printed something new and fell silent, or ended; `most` at most.
    pub(in crate::chat) async fn settled(&self, most: Duration) {
        let settled = async {
            self.reading.settled(QUIET).await;
            if self.reading.is_over() {
                self.ended().await;
            }
        };
        let _ = tokio::time::timeout(most, settled).await;
    }

    /// Ends it and all it started.
    pub(in crate::chat) async fn end(&self) {
        self.cancel.cancel();
        self.ended().await;
    }

    /// Types `text`, and ends the input if that is asked for.
    ///
    /// # Errors
    /// Too much waits already, or nobody will ever read it.
    pub(in crate::chat) fn write(&self, text: &str, close: bool) -> Result<(), InputError> {
        // What the return key of a terminal sends.
        let text = match self.post.is_terminal() {
            true => text.replace('\n', "\r"),
            false => text.to_owned(),
        };
        self.post.write(text.into_bytes(), close)
    }

    /// What was typed of a line that has not ended.
    pub(in crate::chat) fn line(&self) -> String {
        self.post.line()
    }

    /// What it printed since it was last read, or from a line on.
    pub(in crate::chat) fn read(&self, since: Option<u64>) -> Option<String> {
        match since {
            None => self.reading.next(),
            Some(line) => self.reading.from_line(line),
        }
    }

    /// Where it stands, in a line for the model.
    pub(in crate::chat) fn status(&self, outcome: Option<&Outcome>) -> String {
        let Some(outcome) = outcome else {
            return format!(
                "[job {} runs, for {} s so far, {}]",
                self.number,
                self.began.elapsed().as_secs(),
                self.reading.amount()
            );
        };
        let spill = outcome.spill.as_ref();
        let all = spill.map_or_else(String::new, |path| format!("; kept in {}", path.display()));
        let mut line = format!("[job {} ended: {}{all}]", self.number, outcome.status());
        if let Some(advice) = self.conditions.advice(outcome) {
            line.push('\n');
            line.push_str(&advice);
        }
        line
    }

    /// What is told of its end.
    pub(in crate::chat) fn end_line(&self) -> String {
        let outcome = self.outcome();
        let how = outcome.as_ref().map_or_else(String::new, |it| it.status());
        let line = format!("job {} ({}) ended: {how}", self.number, self.short);
        // A failure that the read-only level may have caused is worth another try.
        let advice = outcome.filter(|it| self.conditions.may_be_to_blame(it));
        match advice.and_then(|outcome| self.conditions.advice(&outcome)) {
            Some(advice) => format!("{line}. {advice}"),
            None => line,
        }
    }

    /// Whether it failed where the sandbox may be the cause.
    pub(in crate::chat) fn failed_confined(&self) -> bool {
        let outcome = self.outcome();
        outcome.is_some_and(|it| self.conditions.may_be_to_blame(&it))
    }
}
