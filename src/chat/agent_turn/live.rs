//! Shows the output of the open call so far, at a pace at which a person can read.

use std::time::Duration;

use tokio::time::Instant;

use crate::tool::agent_call::AgentCall;

/// The shortest time between two updates of the output on the screen.
const PACE: Duration = Duration::from_millis(50);

/// The shortest time between two updates of the screen, as a multiple of the time that the last update took to prepare. So at
/// most one fifth of the time goes into preparing updates.
const SHARE: u32 = 5;

/// A call that the chat shows and that has not ended.
#[derive(Debug)]
pub(super) struct LiveCall {
    /// The call as the transcript records it.
    pub began: AgentCall,
    /// The call as the chat shows it.
    pub shown: AgentCall,
    /// The number of the block that shows the call's output.
    pub block: u64,
    /// The lines of the output that are on the screen.
    lines: Vec<String>,
    /// The time of the next update of the screen; none if nothing has changed.
    due: Option<Instant>,
    /// The earliest time of the next update of the screen.
    next: Instant,
}

impl LiveCall {
    pub(super) fn new(call: AgentCall, block: u64) -> Self {
        Self {
            began: call.clone(),
            shown: call,
            block,
            lines: Vec::new(),
            due: None,
            next: Instant::now(),
        }
    }

    /// Notes that the agent has said more about the call, so the screen needs an update.
    pub(super) fn mark(&mut self) {
        self.due.get_or_insert(self.next);
    }

    /// Returns the time at which the screen must be updated; none if nothing has changed.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Stores the output so far; `took` is the time that preparing the output took. Returns the index of the first changed line
    /// and all lines from there; none if nothing has changed.
    pub(super) fn take(&mut self, output: &str, took: Duration) -> Option<(usize, Vec<String>)> {
        self.due = None;
        self.next = Instant::now() + PACE.max(took * SHARE);
        let lines: Vec<_> = output.lines().map(str::to_owned).collect();
        let both = self.lines.iter().zip(&lines);
        let same = both.take_while(|(old, new)| old == new).count();
        if same == lines.len() && lines.len() == self.lines.len() {
            return None;
        }
        self.lines = lines;
        Some((same, self.lines[same..].to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_what_changed_is_sent_and_not_too_often() {
        let call = AgentCall {
            title: "t".to_owned(),
            kind: "execute".to_owned(),
            input: None,
            places: Vec::new(),
        };
        let mut live = LiveCall::new(call, 1);
        let now = Instant::now();
        assert_eq!(live.due(), None);
        live.mark();
        assert_eq!(live.due(), Some(now));
        let mut take = |text: &str| {
            let taken = live.take(text, Duration::from_millis(20));
            taken.map(|(from, lines)| (from, lines.join("|")))
        };
        assert_eq!(take("one\ntw"), Some((0, "one|tw".to_owned())));
        assert_eq!(take("one\ntwo\n"), Some((1, "two".to_owned())));
        assert_eq!(take("one\ntwo"), None);
        // The agent may replace all, or leave lines out.
        assert_eq!(take("other\ntwo"), Some((0, "other|two".to_owned())));
        assert_eq!(take("other"), Some((1, String::new())));
        live.mark();
        live.mark();
        assert_eq!(live.due(), Some(now + Duration::from_millis(100)));
    }
}
