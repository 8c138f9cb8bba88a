//! The formats of two kinds of file: the rules that a person saved for a workspace, and the workspace's own rules.

use crate::hosts::HostPattern;
use crate::rules::Pattern;

/// The rules that a person saved for one workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedRules {
    /// The path of the workspace. It is only a comment for a person who reads the file.
    pub workspace: String,
    #[serde(default)]
    pub allow: Vec<Pattern>,
    /// The hosts to which confined commands may connect without a question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_hosts: Vec<HostPattern>,
    /// True if the person lets co try commands of the workspace before it asks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub try_first: bool,
}

impl SavedRules {
    /// Parses a file of saved rules.
    ///
    /// # Errors
    /// Returns the parser's message.
    pub fn read(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    /// Returns the text of a file with these rules.
    pub fn write(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}

/// The rules in a workspace's own rule file. They can only make the policy stricter.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceRules {
    #[serde(default)]
    pub deny: Vec<Pattern>,
    #[serde(default)]
    pub ask: Vec<Pattern>,
    /// The hosts to which confined commands must never connect.
    #[serde(default)]
    pub deny_hosts: Vec<HostPattern>,
}

impl WorkspaceRules {
    /// Parses a workspace's own rule file.
    ///
    /// # Errors
    /// Returns the parser's message.
    pub fn read(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let saved = SavedRules {
            workspace: "/w".to_owned(),
            allow: vec!["cargo test".parse().unwrap(), Pattern::exact("a 'b'\nc")],
            allow_hosts: vec!["*.example.org:8080".parse().unwrap()],
            try_first: true,
        };
        assert_eq!(SavedRules::read(&saved.write()).unwrap(), saved);
    }

    #[test]
    fn a_workspace_only_tightens() {
        assert!(WorkspaceRules::read("deny = ['curl']\nask = ['ls']").is_ok());
        assert!(WorkspaceRules::read("deny_hosts = ['example.org']").is_ok());
        for bad in [
            "allow = ['rm']",
            "allow_hosts = ['example.org']",
            "deny_hosts = ['https://example.org']",
            "safe_commands = []",
            "deny = 3",
            "deny = ['a; b']",
            "[",
        ] {
            assert!(WorkspaceRules::read(bad).is_err(), "{bad}");
        }
    }
}
