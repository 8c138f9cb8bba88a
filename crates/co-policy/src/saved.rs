//! The format in which a person's lasting rules for one workspace are kept.

use crate::rules::Pattern;

/// The rules of one workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedRules {
    /// The workspace's path, for a person who looks into the file.
    pub workspace: String,
    #[serde(default)]
    pub allow: Vec<Pattern>,
}

impl SavedRules {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What the reader says of a text that is not such a file.
    pub fn read(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    /// Returns the text of a file.
    pub fn write(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}

/// What a workspace's own file may say: only what tightens.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkspaceRules {
    #[serde(default)]
    pub deny: Vec<Pattern>,
    #[serde(default)]
    pub ask: Vec<Pattern>,
}

impl WorkspaceRules {
    /// Reads a file's text.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence's worth of words.
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
        };
        assert_eq!(SavedRules::read(&saved.write()).unwrap(), saved);
    }

    #[test]
    fn a_workspace_only_tightens() {
        assert!(WorkspaceRules::read("deny = ['curl']\nask = ['ls']").is_ok());
        for bad in [
            "allow = ['rm']",
            "safe_commands = []",
            "deny = 3",
            "deny = ['a; b']",
            "[",
        ] {
            assert!(WorkspaceRules::read(bad).is_err(), "{bad}");
        }
    }
}
