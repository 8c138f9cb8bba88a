//! What may be done about a [`Fault`].

use std::time::Duration;

use super::Fault;

impl Fault {
    /// Returns whether the same request may succeed a little later.
    ///
    /// Only before the first delta: once something was shown, asking again would show it twice.
    pub fn retry(&self) -> bool {
        matches!(
            self,
            Self::RateLimited { .. } | Self::Server { .. } | Self::Unreachable { .. }
        )
    }

    /// Returns how long the provider asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Server { retry_after, .. } => {
                *retry_after
            }
            _ => None,
        }
    }
}
