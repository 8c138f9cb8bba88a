//! The source of the shell and the variables of a command.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;

use serde::{Deserialize, Deserializer};
use serde_bytes::ByteBuf;

/// Environment variables: names and values.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// Variables that keep git from starting programs and from taking optional locks: git then uses no fetch, no pager, no prompt, no
/// file-system monitor and no hooks.
pub const GIT_ENVIRONMENT: [(&str, &str); 9] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_0", "false"),
    ("GIT_CONFIG_KEY_1", "core.hooksPath"),
    ("GIT_CONFIG_VALUE_1", "/dev/null"),
];

/// The source from which a command gets its shell and its variables.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Environment {
    /// Uses bash, and the variables of the executor that are in the allowlist.
    #[default]
    Executor,
    /// Uses bash, and the given variables that are in the allowlist.
    Restricted(HostEnvironment),
    /// Uses the given shell, and all given variables except forbidden ones.
    Inherit(HostEnvironment),
}

impl Environment {
    /// Returns the variables of the editor, from which co selects the variables of the command. Returns `None` if co selects from
    /// the variables of the executor.
    pub(crate) fn variables(&self) -> Option<&Variables> {
        match self {
            Self::Executor => None,
            Self::Restricted(host) | Self::Inherit(host) => Some(&host.variables),
        }
    }

    /// Returns whether the command gets all variables that are not forbidden.
    pub(crate) fn inherits(&self) -> bool {
        matches!(self, Self::Inherit(_))
    }

    /// Returns the shell and its flags, which precede the text of the command. Returns `None` for bash.
    pub(crate) fn shell(&self) -> Option<&[OsString]> {
        match self {
            Self::Inherit(host) if !host.shell.is_empty() => Some(&host.shell),
            _ => None,
        }
    }
}

/// The shell and the variables of the editor. The values may be secrets, so [`Debug`](fmt::Debug) omits them.
#[derive(Clone, Default, PartialEq)]
pub struct HostEnvironment {
    /// The shell and its flags. The text of the command is the next argument.
    pub shell: Vec<OsString>,
    pub variables: Vec<(OsString, OsString)>,
}

impl fmt::Debug for HostEnvironment {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.variables.len();
        write!(to, "HostEnvironment {{ {count} variables }}")
    }
}

/// Reads `{ shell, variables }`: a list of arguments, and a list of `NAME=value` entries. Both may have any bytes.
impl<'de> Deserialize<'de> for HostEnvironment {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Message {
            #[serde(default)]
            shell: Vec<ByteBuf>,
            #[serde(default)]
            variables: Vec<ByteBuf>,
        }
        let Message { shell, variables } = Message::deserialize(from)?;
        let text = |bytes: ByteBuf| OsString::from_vec(bytes.into_vec());
        let pair = |bytes: ByteBuf| {
            let mut bytes = bytes.into_vec();
            let at = memchr::memchr(b'=', &bytes)?;
            let value = bytes.split_off(at + 1);
            bytes.truncate(at);
            Some((OsString::from_vec(bytes), OsString::from_vec(value)))
        };
        Ok(Self {
            shell: shell.into_iter().map(text).collect(),
            variables: variables.into_iter().filter_map(pair).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_come_as_lines_and_stay_out_of_logs() {
        let json = r#"{ "shell": ["zsh", "-c"], "variables": ["A=b=c", "EMPTY=", "odd"] }"#;
        let host: HostEnvironment = serde_json::from_str(json).unwrap();
        assert_eq!(host.shell, ["zsh", "-c"]);
        let expected = [("A", "b=c"), ("EMPTY", "")].map(|(k, v)| (k.into(), v.into()));
        assert_eq!(host.variables, expected);
        let shown = format!("{:?}", Environment::Inherit(host));
        assert_eq!(shown, "Inherit(HostEnvironment { 2 variables })");
        let none: HostEnvironment = serde_json::from_str("{}").unwrap();
        assert_eq!(none, HostEnvironment::default());
    }
}
