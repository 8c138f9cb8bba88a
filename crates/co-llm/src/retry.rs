//! The waiting times between the tries of one request.
//!
//! This module has no clock and does not sleep. The caller waits, and shows the waiting time.

use std::time::Duration;

use crate::fault::Fault;

const FIRST_WAIT: Duration = Duration::from_millis(500);
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The longest waiting time that a provider may ask for. If it asks for a longer one, a quota is used up.
const MAX_ASKED_WAIT: Duration = Duration::from_secs(300);
const MAX_TRIES: u32 = 5;
/// The largest number of retries if the server sends nothing. It is small because each try takes minutes.
const MAX_STALLED_TRIES: u32 = 1;

/// Counts the tries of one request, and returns the waiting times between them.
///
/// The first wait is 500 ms, and each next wait is twice as long, up to 30 s. Each wait varies by 20 %. There are at most five
/// waits. If the provider asks for a longer wait, this longer wait is used.
#[derive(Debug, Default)]
pub struct Backoff {
    tries: u32,
}

impl Backoff {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the next waiting time. Returns `None` if another try cannot help, or if all tries are used up.
    pub fn next(&mut self, fault: &Fault) -> Option<Duration> {
        let most = match fault {
            Fault::Stalled(_) => MAX_STALLED_TRIES,
            _ => MAX_TRIES,
        };
        if !fault.is_transient() || self.tries >= most {
            return None;
        }
        let asked = fault.retry_after().unwrap_or_default();
        if asked > MAX_ASKED_WAIT {
            return None;
        }
        let own = FIRST_WAIT
            .saturating_mul(1 << self.tries)
            .min(MAX_WAIT)
            .mul_f64(0.8 + 0.4 * fastrand::f64());
        self.tries += 1;
        // Never shorter than our own wait: some providers ask for none, or name a time that is past by our clock.
        Some(asked.max(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(retry_after: Option<Duration>) -> Fault {
        Fault::Server {
            provider: "x".into(),
            status: 500,
            retry_after,
            body: String::new(),
            explained: false,
        }
    }

    #[test]
    fn waits_double_vary_a_little_and_end() {
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
    fn a_wait_is_as_long_as_the_provider_asks() {
        let secs = Duration::from_secs;
        assert_eq!(Backoff::new().next(&server(Some(secs(5)))), Some(secs(5)));
        assert_eq!(
            Backoff::new().next(&server(Some(secs(300)))),
            Some(secs(300))
        );
        assert_eq!(Backoff::new().next(&server(Some(secs(301)))), None);
    }

    #[test]
    fn a_request_for_no_wait_is_not_followed() {
        let mut backoff = Backoff::new();
        for least in [0.4, 0.8, 1.6, 3.2, 6.4] {
            let wait = backoff.next(&server(Some(Duration::ZERO))).unwrap();
            assert!(wait.as_secs_f64() >= least, "{wait:?}");
        }
        assert_eq!(backoff.next(&server(Some(Duration::ZERO))), None);
    }

    #[test]
    fn only_a_fault_that_may_pass_is_tried_again() {
        let waits = |fault: Fault| Backoff::new().next(&fault).is_some();
        assert!(waits(Fault::RateLimited {
            provider: "x".into(),
            retry_after: None
        }));
        assert!(waits(Fault::Unreachable {
            url: "x".into(),
            cause: "y".into()
        }));
        assert!(waits(Fault::Cut));
        let silent = Fault::Stalled(Duration::from_secs(120));
        let mut backoff = Backoff::new();
        assert!(backoff.next(&silent).is_some() && backoff.next(&silent).is_none());
        for fault in [
            Fault::NoProvider,
            Fault::Overflow { body: "x".into() },
            Fault::Tls {
                url: "https://h/".into(),
                cause: "invalid peer certificate".into(),
            },
            Fault::BadRequest {
                provider: "x".into(),
                body: "y".into(),
            },
        ] {
            assert!(!waits(fault.clone()), "{fault:?}");
        }
    }
}
