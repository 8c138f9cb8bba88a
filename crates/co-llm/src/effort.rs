//! The effort that a model puts into its thinking.

use std::fmt;
use std::str::FromStr;

/// The effort that a person sets. Each family of models has its own names for efforts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// No thinking, or as little as the model allows.
    None,
    Low,
    Medium,
    High,
    /// As much thinking as the model offers.
    Max,
}

impl Effort {
    /// The names of all efforts, from the least to the most.
    pub const NAMES: [&str; 5] = ["none", "low", "medium", "high", "max"];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
        }
    }
}

impl fmt::Display for Effort {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let all = [Self::None, Self::Low, Self::Medium, Self::High, Self::Max];
        let named = all.into_iter().find(|effort| effort.name() == name);
        named.ok_or(UnknownEffort)
    }
}

/// The error for a text that names no effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an effort is none, low, medium, high or max")]
pub struct UnknownEffort;
