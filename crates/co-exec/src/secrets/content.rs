//! Finds files that are secret by their contents, because their names may also belong to harmless files.

use std::path::Path;
use std::sync::LazyLock;

use regex::{Regex, bytes};
use serde_json::Value;

use super::extract;
use crate::beneath::Dir;
use co_policy::secret_names as names;

/// The most bytes of a file with credentials. Larger files are data.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The most bytes of a file that is searched for a private key although its name does not suggest one.
pub(super) const MAX_KEY_BYTES: usize = 64 << 10;

/// Extensions of files that contain no keys. Such files are not read, because there are many of them.
const NO_KEYS: [&str; 26] = [
    "a", "avif", "bin", "class", "d", "dll", "exe", "gif", "gz", "ico", "jar", "jpeg", "jpg",
    "lock", "map", "mp3", "mp4", "o", "pdf", "png", "pyc", "so", "svg", "webp", "woff2", "zip",
];

/// Names of directories with translations, in which "password" is the label of a field.
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

/// The header of a private key in any file, even inside a string in which `\n` stands for line breaks.
static KEY_HEADER: LazyLock<bytes::Regex> = LazyLock::new(|| {
    bytes::Regex::new(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\r?\n|\\[nr]|\z)")
        .expect("the tests compile this expression")
});

/// A private key in source text: a header, and a line of the key. A header alone may belong to a program that reads keys.
static KEY_LINES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----\r?\n(?:[^\n]*: [^\n]*\n|\r?\n)*[A-Za-z0-9+/=]{16,}\r?$")
        .expect("the tests compile this expression")
});

/// Returns true if a file contains credentials although its name does not show this: a service account, an `auth.json`, or a
/// private key. Reads the file only if its name allows one of these.
///
/// `path` must be a canonical path, no component of which may be a symbolic link.
pub fn is_secret(path: &Path) -> bool {
    let dir = Dir::open(path.parent().unwrap_or(path));
    dir.is_ok_and(|dir| is_secret_in(&dir, path))
}

/// Returns the same as [`is_secret`], for a file whose directory is already open.
pub fn is_secret_in(dir: &Dir, path: &Path) -> bool {
    let file = path.file_name().unwrap_or_default();
    let name = file.to_string_lossy();
    match decides(&name) {
        true => has_secret(dir, path, &name),
        false => {
            may_hold_key(&name)
                && (dir.read(file, MAX_KEY_BYTES as u64)).is_ok_and(|bytes| holds_key(&bytes))
        }
    }
}

/// Returns true for the name of a file that may be secret because of its content, so that its content must be checked.
pub(super) fn decides(name: &str) -> bool {
    names::is_key(name) || is_json(name)
}

/// Returns whether the file at `path` in the open directory is secret by its content. Its `name` must pass [`decides`].
pub(super) fn has_secret(dir: &Dir, path: &Path, name: &str) -> bool {
    let file = path.file_name().unwrap_or_default();
    let bytes = dir.read(file, MAX_FILE_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    match is_json(name) {
        false => KEY_LINES.is_match(&text),
        true if name.eq_ignore_ascii_case("auth.json") => is_auth(path, &text),
        true => is_service_account(&text) || bytes.len() <= MAX_KEY_BYTES && holds_key(&bytes),
    }
}

/// Returns true for the name of a file that must be searched for a private key if the file is small.
pub(super) fn may_hold_key(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let extension = lower
        .rsplit_once('.')
        .map_or("", |(_, extension)| extension);
    !names::is_source(&lower) && !NO_KEYS.contains(&extension)
}

/// Returns whether the bytes contain the header of a private key.
pub(super) fn holds_key(bytes: &[u8]) -> bool {
    KEY_HEADER.is_match(bytes)
}

fn is_json(name: &str) -> bool {
    name.len() > 5 && name.as_bytes()[name.len() - 5..].eq_ignore_ascii_case(b".json")
}

fn is_service_account(text: &str) -> bool {
    let may_be = text.contains("service_account") && text.contains("PRIVATE KEY");
    may_be
        && serde_json::from_str::<Value>(text)
            .is_ok_and(|json| json["type"] == "service_account" && json["private_key"].is_string())
}

/// Returns whether the text of an `auth.json` has a value that looks like a password and not like a label.
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
    use crate::test_files;

    const KEY: &str =
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\n-----END PRIVATE KEY-----\n";

    #[track_caller]
    fn check(name: &str, text: &str, expected: bool) {
        let dir = tempfile::tempdir().unwrap();
        test_files::write(dir.path(), name, text);
        assert_eq!(
            is_secret(&dir.path().join(name)),
            expected,
            "{name}: {text}"
        );
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
            true,
        );
        check("readme.md", &account, false);
        for kib in [100, 3_000] {
            let large = format!("{}{account}", " ".repeat(kib << 10));
            check("large.json", &large, true);
        }
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

    #[test]
    fn a_private_key_is_secret_in_a_file_of_any_name() {
        let openssh = KEY.replace("PRIVATE", "OPENSSH PRIVATE");
        check("deploy", &openssh, true);
        check("public.key", KEY, true);
        check(
            "notes.txt",
            &format!("the key:\r\n{}", KEY.replace('\n', "\r\n")),
            true,
        );
        check("settings.yml", &format!("key: {KEY:?}\n"), true);
        check("mail.asc", &KEY.replace("KEY", "KEY BLOCK"), true);
        let large = format!("{KEY}{}", "x".repeat(MAX_KEY_BYTES));
        for (name, text) in [
            ("public.key", &*KEY.replace("PRIVATE", "PUBLIC")),
            (
                "about.txt",
                "A key starts with -----BEGIN PRIVATE KEY----- in PEM.",
            ),
            ("key_test.go", KEY),
            ("logo.png", KEY),
            ("log.txt", &large),
            ("empty", ""),
        ] {
            check(name, text, false);
        }
    }
}
