//! How long to wait before a request is sent again.
//!
//! Knows no clock and does not sleep: the turn does, and shows it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use crate::fault::Fault;

const FIRST: Duration = Duration::from_millis(500);
const CAP: Duration = Duration::from_secs(30);
/// A provider that asks for more has a quota, not a hiccup.
const LONGEST_ASKED: Duration = Duration::from_secs(300);
const TRIES: u32 = 5;

/// The waits of one request: 500 ms, doubled each time, at most 30 s, ±20 %, five of them; longer where the provider asks
/// for that.
#[derive(Debug, Default)]
pub struct Backoff {
    tries: u32,
}

impl Backoff {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the next wait; none where trying again cannot help, or has been tried enough.
    pub fn next(&mut self, fault: &Fault) -> Option<Duration> {
        if !fault.retry() || self.tries >= TRIES {
            return None;
        }
        let asked = fault.retry_after().unwrap_or_default();
        if asked > LONGEST_ASKED {
            return None;
        }
        let own = FIRST
            .saturating_mul(1 << self.tries)
            .min(CAP)
            .mul_f64(0.8 + 0.4 * random());
        self.tries += 1;
        // Not sooner than by itself: some ask for no wait, or until a time that is past by the clock here.
        Some(asked.max(own))
    }
}

/// A number from 0 up to 1; the standard library's hasher is seeded anew each time.
fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(retry_after: Option<Duration>) -> Fault {
        Fault::Server {
            provider: "x".into(),
            status: 500,
            retry_after,
        }
    }

    #[test]
    fn waits_double_with_a_little_chance_and_end() {
        let mut backoff = Backoff::new();
        for expected in [500.0, 1000.0, 2000.0, 4000.0, 8000.0] {
            let wait = backoff.next(&server(None)).unwrap().as_secs_f64() * 1000.0;
            assert!(
                (0.8 * expected..=1.2 * expected).contains(&wait),
                "{wait} for {expected}"
            );
        }
        assert_eq!(backoff.next(&server(None)), None);
    }

    #[test]
    fn what_the_provider_asks_for_is_what_it_gets() {
        let secs = Duration::from_secs;
        assert_eq!(Backoff::new().next(&server(Some(secs(5)))), Some(secs(5)));
        assert_eq!(
            Backoff::new().next(&server(Some(secs(300)))),
            Some(secs(300))
        );
        assert_eq!(Backoff::new().next(&server(Some(secs(301)))), None);
    }

    #[test]
    fn a_provider_that_asks_for_no_wait_is_not_asked_at_once() {
        let mut backoff = Backoff::new();
        for least in [0.4, 0.8, 1.6, 3.2, 6.4] {
            let wait = backoff.next(&server(Some(Duration::ZERO))).unwrap();
            assert!(wait.as_secs_f64() >= least, "{wait:?}");
        }
        assert_eq!(backoff.next(&server(Some(Duration::ZERO))), None);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let waits = |fault: Fault| Backoff::new().next(&fault).is_some();
        assert!(waits(Fault::RateLimited {
            provider: "x".into(),
            retry_after: None
        }));
        assert!(waits(Fault::Unreachable {
            url: "x".into(),
            cause: "y".into()
        }));
        for fault in [
            Fault::NoProvider,
            Fault::Overflow { body: "x".into() },
            Fault::Cut,
            Fault::Stalled(Duration::from_secs(120)),
            Fault::BadRequest {
                provider: "x".into(),
                body: "y".into(),
            },
        ] {
            assert!(!waits(fault.clone()), "{fault:?}");
        }
    }
}
