//! The time-out of a command, which can be paused.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// The time-out of a command. It pauses while a [`TimeHold`] exists.
#[derive(Debug, Clone)]
pub struct TimeLimit {
    holds: watch::Sender<usize>,
}

/// Pauses the time-out of a command. Dropping it continues the time-out, unless other holds exist.
#[derive(Debug)]
pub struct TimeHold(watch::Sender<usize>);

impl Default for TimeLimit {
    fn default() -> Self {
        let (holds, _) = watch::channel(0);
        Self { holds }
    }
}

impl TimeLimit {
    /// Pauses the time-out of the command until the returned hold and all other holds are dropped.
    pub fn hold(&self) -> TimeHold {
        self.holds.send_modify(|holds| *holds += 1);
        TimeHold(self.holds.clone())
    }

    /// Waits until the command has run for the time `left`, not counting pauses.
    pub(crate) async fn expired(self, mut left: Duration) {
        let mut holds = self.holds.subscribe();
        loop {
            // The sender exists, so the waits cannot fail.
            let _ = holds.wait_for(|holds| *holds == 0).await;
            let began = Instant::now();
            tokio::select! {
                () = tokio::time::sleep(left) => return,
                _ = holds.wait_for(|holds| *holds > 0) => {
                    left = left.saturating_sub(began.elapsed());
                }
            }
        }
    }
}

impl Drop for TimeHold {
    fn drop(&mut self) {
        self.0.send_modify(|holds| *holds -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_time_stands_still_while_it_is_held() {
        let second = Duration::from_secs(1);
        let (limit, began) = (TimeLimit::default(), Instant::now());
        let expired = tokio::spawn(limit.clone().expired(10 * second));
        tokio::time::sleep(4 * second).await;
        let hold = limit.hold();
        tokio::time::sleep(100 * second).await;
        let another = limit.hold();
        drop(hold);
        tokio::time::sleep(100 * second).await;
        drop(another);
        expired.await.unwrap();
        assert_eq!(began.elapsed().as_secs(), 210);
    }
}
