//! One setting: its name, its kind, its default and its help.

use std::path::Path;

use serde_json::Value;

use super::Config;
use super::value::{BadValue, Kind, object};

/// The prefix of environment variables that are settings.
pub(super) const PREFIX: &str = "CO_CLI_";

/// The time from which a changed value of a setting applies, if the backend runs when the value changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// A change applies at once, in every chat, to everything that starts after the change.
    Now,
    /// In chats that begin later.
    NextChat,
    /// When the next backend starts.
    Restart,
}

impl Applies {
    /// Returns the description for the help.
    pub fn words(self) -> &'static str {
        match self {
            Self::Now => "at once",
            Self::NextChat => "from the next chat",
            Self::Restart => "after |co-/restart|",
        }
    }
}

/// A row of the table of settings.
pub struct Setting {
    pub name: &'static str,
    pub(super) kind: Kind,
    pub applies: Applies,
    /// True if a wrong value of the setting blocks all prompts until it is corrected. The default value must not replace a wrong
    /// value of such a strict setting: it could send prompts to the wrong server or weaken the protection.
    pub(super) strict: bool,
    /// True if the setting also affects the confinement of the person's commands. While its value is wrong, none of these
    /// commands runs.
    pub(super) confines: bool,
    /// The default value in the text form of the environment. It is a description in parentheses if no text has this value.
    pub default: &'static str,
    /// The help text for `doc/co.txt`. Names in braces, such as `{fallback}`, are replaced by values of the table of providers.
    pub help: &'static str,
}

impl Setting {
    /// Returns the name of the setting's environment variable.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase())
    }

    /// Returns a description of valid values, to follow "must be".
    pub fn accepts(&self) -> String {
        self.kind.accepts()
    }

    pub(super) const fn applies(self, applies: Applies) -> Self {
        Self { applies, ..self }
    }

    pub(super) const fn strict(self) -> Self {
        Self {
            strict: true,
            ..self
        }
    }

    pub(super) const fn confines(self) -> Self {
        Self {
            confines: true,
            ..self.strict()
        }
    }
}

/// Reads a table whose fields are settings, such as the table of a profile.
///
/// # Errors
/// A field is unknown, or its value is wrong.
pub(super) fn read_fields<'a>(
    table: &Value,
    known: impl Iterator<Item = &'a Setting> + Clone,
    home: Option<&Path>,
) -> Result<Config, BadValue> {
    let mut read = Config::default();
    for (field, value) in object(table)? {
        let setting = known.clone().find(|it| it.name == field);
        setting
            .ok_or(BadValue)?
            .kind
            .take(&mut read, &value, home)?;
    }
    Ok(read)
}

/// Makes a row for a setting that applies at once. To choose another time, call the method `applies` of the row.
pub(super) const fn setting(
    name: &'static str,
    default: &'static str,
    kind: Kind,
    help: &'static str,
) -> Setting {
    Setting {
        name,
        kind,
        applies: Applies::Now,
        strict: false,
        confines: false,
        default,
        help,
    }
}
