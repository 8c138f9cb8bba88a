//! The progress of a call, as its server tells it.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use tokio::sync::watch;

/// The most bytes of a server's words about its progress.
const LONGEST_WORDS: usize = 200;

/// The progress of a call. A server may say anything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallProgress {
    /// The part that is done, from 0 to 1.
    pub done: Option<f64>,
    /// The server's own words, at most 200 bytes.
    pub words: String,
}

/// Takes the progress of one call. A new one replaces the last.
pub type ProgressSender = watch::Sender<CallProgress>;

/// A call whose progress somebody follows.
pub(crate) struct FollowedCall {
    pub(crate) token: ProgressToken,
    pub(crate) sender: ProgressSender,
}

impl CallProgress {
    pub(crate) fn new(told: ProgressNotificationParam) -> Self {
        let done = told.total.map(|total| told.progress / total);
        let mut words = told.message.unwrap_or_default();
        let mut ends = (0..=words.len().min(LONGEST_WORDS)).rev();
        let end = ends.find(|at| words.is_char_boundary(*at));
        words.truncate(end.unwrap_or(0));
        Self {
            done: done.filter(|it| (0.0..=1.0).contains(it)),
            words,
        }
    }
}
