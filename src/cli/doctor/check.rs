//! The result of one check.

use serde::Serialize;

/// The severity of the result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckLevel {
    Ok,
    /// A warning: co works with restrictions.
    Warn,
    /// An error: something will fail.
    Error,
}

/// A row of the doctor: the name of a check and its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub level: CheckLevel,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self {
            name,
            level: CheckLevel::Ok,
            message: message.into(),
            advice: None,
        }
    }

    pub(super) fn bad(
        name: &'static str,
        level: CheckLevel,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            name,
            level,
            message: message.into(),
            advice: Some(advice.into()),
        }
    }
}
