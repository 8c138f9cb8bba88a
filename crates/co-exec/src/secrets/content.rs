//! Finds files that are secret by their contents, because other files have the same names.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::extract;
use crate::regular;
use co_policy::secret_names as names;

/// The most bytes of a file of credentials. Larger files are data.
const MAX: u64 = regular::SMALL;

/// Directories of translations, in which "password" is the label of a field.
const LOCALES: [&str; 8] = [
    "i18n",
    "l10n",
    "lang",
    "langs",
    "languages",
    "locale",
    "locales",
    "translations",
];

static PRIVATE_KEY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----\r?\n(?:[^\n]*: [^\n]*\n|\r?\n)*[A-Za-z0-9+/=]{16,}\r?$")
        .expect("the tests compile this expression")
});

/// Returns whether a file contains credentials although its name does not show it: a service account, an `auth.json`,
/// a private key in a file that is named like source text. Reads only files that may be one of these.
pub fn is_secret(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !decides(&name) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let key = names::is_key(&name);
    let bytes = regular::read(path, MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    match key {
        true => PRIVATE_KEY.is_match(&text),
        false if name == "auth.json" => is_auth(path, &text),
        false => is_service_account(&text),
    }
}

/// True for the name of a file that may be secret by its content.
pub(super) fn decides(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    names::is_key(&lower) || lower.ends_with(".json")
}

fn is_service_account(text: &str) -> bool {
    let may_be = text.contains("service_account") && text.contains("PRIVATE KEY");
    may_be
        && serde_json::from_str::<Value>(text)
            .is_ok_and(|json| json["type"] == "service_account" && json["private_key"].is_string())
}

/// Returns whether a value looks like a password and not like a label.
fn is_auth(path: &Path, text: &str) -> bool {
    let is_locale = path
        .iter()
        .any(|part| LOCALES.iter().any(|name| part == *name));
    let is_label = |value: &str| {
        let rest = value.get(1..).unwrap_or_default();
        let digit = value.contains(|c: char| c.is_ascii_digit());
        value.contains(char::is_whitespace)
            || !digit
                && (is_locale
                    || !rest.contains(|c: char| !c.is_lowercase())
                        && value.starts_with(char::is_uppercase))
    };
    extract::values("auth.json", text)
        .iter()
        .any(|value| !is_label(&value.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n";

    #[track_caller]
    fn check(name: &str, text: &str, expected: bool) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        assert_eq!(is_secret(&path), expected, "{name}: {text}");
    }

    #[test]
    fn the_content_decides_where_the_name_does_not() {
        let account =
            serde_json::json!({ "type": "service_account", "private_key": KEY }).to_string();
        check("project-1234.json", &account, true);
        check(
            "project-1234.json",
            r#"{"type": "service_account", "about": "PRIVATE KEY"}"#,
            false,
        );
        check(
            "data.json",
            &account.replace("service_account", "other"),
            false,
        );
        check("readme.md", &account, false);
        let large = format!("{}{account}", " ".repeat(100 << 10));
        check("large.json", &large, true);
        check(
            "auth.json",
            r#"{"http-basic": {"h": {"username": "u", "password": "hunterhunter"}}}"#,
            true,
        );
        check(
            "auth.json",
            r#"{"tokens": {"access_token": "eyJhbGciOi1NiIsInR5cCI6"}}"#,
            true,
        );
        check(
            "auth.json",
            r#"{"password": "Password", "token": "The token is wrong"}"#,
            false,
        );
        check(
            "locales/auth.json",
            r#"{"password": "kennwort", "api_key": "Schlüssel"}"#,
            false,
        );
        check(
            "locales/auth.json",
            r#"{"password": "hunter2-hunter3"}"#,
            true,
        );
        check("id_rsa.py", "x = 1\n", false);
        check("id_rsa.py", KEY, true);
        check("id_map.py", "ids = {}\n", false);
    }
}
