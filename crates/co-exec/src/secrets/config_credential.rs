//! Finds credentials in configuration files whose names are not secret: those of git, cargo and Go.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::extract;
use crate::beneath;

/// A key for a credential, and its value: `token = "…"` in cargo's configuration, `oauthtoken = …` in git's.
static CREDENTIAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?im)^\s*[\w.-]*(?:token|password|passwd|secret|secret-key|api-?key)\s*=\s*["']?[^\s"'#;]{6,}"#)
        .expect("the tests compile this expression")
});

/// Returns true if a configuration file contains a credential: a token, or a password in a URL or a header. Returns false for a
/// file that cannot be read.
pub(crate) fn is_in(config: &Path) -> bool {
    let text = beneath::text_resolved(config).unwrap_or_default();
    CREDENTIAL.is_match(&text) || !extract::git_config(&text).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_configuration_are_found() {
        let check = |text: &str, expected: bool| {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("config");
            std::fs::write(&path, text).unwrap();
            assert_eq!(is_in(&path), expected, "{text}");
        };
        check("[registry]\ntoken = \"cioAbCdEfGhIjKlMn\"\n", true);
        check(
            "[registries.own]\n  secret-key = 'k3.secret.abcdef'\n",
            true,
        );
        check("[github]\n\toauthtoken = abcdef0123456789\n", true);
        let header = "[http]\n\textraheader = Authorization: Bearer abcdef0123456789\n";
        check(header, true);
        let address = "[url \"https://me:hunter2hunter2@example.org/\"]\n\tinsteadOf = x:\n";
        check(address, true);
        check(
            "[user]\n\temail = a@example.org\n\tsigningkey = 0123456789ABCDEF\n",
            false,
        );
        check(
            "[credential]\n\thelper = store\n[alias]\n\ttoken = log\n",
            false,
        );
        check("GOPROXY=https://me:hunter2hunter2@example.org\n", true);
        check(
            "GOPROXY=https://example.org,direct\nGOFLAGS=-mod=mod\n",
            false,
        );
        check("[build]\nrustflags = [\"-Ctarget-cpu=native\"]\n", false);
        check(
            "[registries.own]\nindex = \"https://example.org/index\"\n",
            false,
        );
    }
}
