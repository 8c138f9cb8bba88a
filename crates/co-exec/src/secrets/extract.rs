//! Extracts secret values from the text of a secret file: dotenv, JSON, YAML, TOML, netrc, pgpass, PEM.
//!
//! A value counts as secret if the name of its key suggests it, or if it looks random.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::matcher::MIN;
use super::redact::{is_stand_in, promises};

/// The least characters of a random value. Shorter text may be a name or a version.
const MIN_RANDOM: usize = 16;

/// The least changes between capitals, small letters and digits in a random value.
const MIN_CHANGES: usize = 5;

/// A longer value is cut into pieces of this many bytes, and each piece counts by itself.
const PIECE: usize = 64;

/// The bytes that two pieces share, so that a base64 text has no gap between them.
const OVERLAP: usize = 2;

/// The pieces of one value that count.
const MAX_PIECES: usize = 128;

/// A block of PEM, also within a string that has `\n` for its line breaks.
static PEM: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?s:(?P<body>.*?))(?:-----END [A-Z0-9 ]+-----|\z)")
});

/// `key=value`, `key: value` and the like, one on each line.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?m)^[\s\-]*(?:export\s+|set\s+|declare\s+-x\s+)?["']?(?P<key>[\w.\-/:@]+?)["']?[ \t]*(?:=>|:=|=|:[ \t])[ \t]*(?P<value>\S.*)$"#,
    )
});

/// The fields of a netrc file.
static NETRC: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:^|\s)(?P<key>password|passwd|account)\s+(?P<value>\S+)"));

/// A password in an address.
static ADDRESS: LazyLock<Regex> = LazyLock::new(|| regex(r"://[^\s/:@]*:(?P<value>[^\s@]+)@"));

fn regex(source: &str) -> Regex {
    Regex::new(source).expect("the tests compile this expression")
}

/// Returns the secret values in `text`, which a secret file called `name` contains.
pub(super) fn values(name: &str, text: &str) -> BTreeSet<String> {
    let mut found = Extraction::default();
    if let Ok(json) = serde_json::from_str(text) {
        found.json("", &json);
        return found.values;
    }
    let rest = found.blocks(text);
    for hit in ADDRESS.captures_iter(&rest) {
        found.add(&hit["value"]);
    }
    for hit in PAIR.captures_iter(&rest) {
        found.pair(&hit["key"], unquoted(&hit["value"]));
    }
    if name.contains("netrc") {
        for hit in NETRC.captures_iter(&rest) {
            found.pair(&hit["key"], &hit["value"]);
        }
    }
    if name.contains("pgpass") {
        found.pgpass(&rest);
    }
    // A file may hold one value and nothing else.
    let whole = rest.trim();
    if !whole.contains(char::is_whitespace) && !PAIR.is_match(whole) {
        found.pair("secret", whole);
    }
    found.tokens(&rest);
    found.values
}

#[derive(Default)]
struct Extraction {
    values: BTreeSet<String>,
}

impl Extraction {
    fn add(&mut self, value: &str) {
        if value.len() >= MIN {
            self.values
                .extend(pieces(value).take(MAX_PIECES).map(str::to_owned));
        }
    }

    fn json(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(text) => {
                let rest = self.blocks(text);
                for hit in ADDRESS.captures_iter(&rest) {
                    self.add(&hit["value"]);
                }
                self.pair(key, &rest);
                self.tokens(&rest);
            }
            Value::Array(items) => items.iter().for_each(|item| self.json(key, item)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| self.json(key, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Extracts the lines of private keys, and returns the text without PEM blocks.
    fn blocks(&mut self, text: &str) -> String {
        for block in PEM.captures_iter(text) {
            if block["kind"].contains("PRIVATE KEY") {
                let body = block["body"].replace("\\n", "\n").replace("\\r", "\n");
                let base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
                for line in body
                    .lines()
                    .map(str::trim)
                    .filter(|line| line.chars().all(base64))
                {
                    self.add(line);
                }
            }
        }
        PEM.replace_all(text, "\n").into_owned()
    }

    fn pair(&mut self, key: &str, value: &str) {
        let stem = value.trim_start_matches(['/', '.', '~']);
        let place = stem.len() < value.len() && (stem.contains('/') || !is_random(stem));
        let place = place || value.contains("://");
        if promises(key) && !is_stand_in(value) && !place {
            self.add(value);
        }
        // `Server=db;Password=…`
        for (key, value) in value
            .split([';', '&'])
            .filter_map(|part| part.split_once('='))
        {
            if promises(key.trim()) && !is_stand_in(value) {
                self.add(value);
            }
        }
    }

    /// Extracts random values.
    fn tokens(&mut self, text: &str) {
        let between = |c: char| c.is_whitespace() || "\"'`,;:&?@=|<>(){}[]".contains(c);
        for token in text.split(between).filter(|token| is_random(token)) {
            self.add(token);
        }
    }

    /// Extracts the last of the five fields of each line.
    fn pgpass(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (mut fields, mut escaped) = (0, false);
            let password = line.char_indices().find_map(|(at, c)| {
                fields += usize::from(c == ':' && !escaped);
                escaped = c == '\\' && !escaped;
                (fields == 4).then_some(at + 1)
            });
            if let Some(at) = password {
                self.add(&line[at..]);
            }
        }
    }
}

/// Returns a short value as it is, and a long one in pieces. Its last piece is as long as the others.
fn pieces(value: &str) -> impl Iterator<Item = &str> {
    let mut left = Some(0);
    std::iter::from_fn(move || {
        let start = left?;
        if value.len() - start <= PIECE {
            left = None;
            let last = value.len().saturating_sub(PIECE);
            let last = (last..).find(|at| value.is_char_boundary(*at))?;
            return Some(&value[last..]);
        }
        let boundary = |most: usize| (0..=most).rev().find(|at| value.is_char_boundary(*at));
        let end = boundary(start + PIECE)?;
        left = boundary(end - OVERLAP);
        Some(&value[start..end])
    })
}

/// Returns a value without its quotes or the comment after it.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    if let Some(quote) = value.chars().next().filter(|c| "\"'`".contains(*c)) {
        let inner = &value[1..];
        return inner.rfind(quote).map_or(inner, |end| &inner[..end]);
    }
    let end = value.find(" #").unwrap_or(value.len());
    value[..end].trim_end_matches([',', ';', ' ', '\t'])
}

/// Returns whether a program, not a person, chose these letters and digits.
pub(super) fn is_random(text: &str) -> bool {
    if text.len() < MIN_RANDOM || text.starts_with(['/', '.', '~']) || !text.is_ascii() {
        return false;
    }
    let kind = |byte: u8| match byte {
        b'a'..=b'z' => Some(0),
        b'A'..=b'Z' => Some(1),
        b'0'..=b'9' => Some(2),
        _ => None,
    };
    let kinds: Vec<_> = text.bytes().filter_map(kind).collect();
    let digits = kinds.iter().filter(|kind| **kind == 2).count();
    let changes = kinds.windows(2).filter(|two| two[0] != two[1]).count();
    digits >= 1 && kinds.len() - digits >= 4 && changes >= MIN_CHANGES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[&str]) {
        let found = values(name, text);
        assert_eq!(
            found.iter().map(String::as_str).collect::<Vec<_>>(),
            expected,
            "{text}"
        );
    }

    #[test]
    fn values_of_promising_names() {
        check(
            ".env",
            "DB_PASSWORD=hunterhunter\nHOST=localhost\nNODE_ENV=development\n",
            &["hunterhunter"],
        );
        check(".env", "export DB_PASS='hunter # two'\n", &["hunter # two"]);
        check(
            ".env",
            "SECRET=\"hunterhunter\" # the old one\n",
            &["hunterhunter"],
        );
        check(
            ".env",
            "SECRET=hunterhunter # the old one\r\n",
            &["hunterhunter"],
        );
        check(
            ".env",
            "PASSWORD=changeme\nPASSWORD=short\nKEY_PATH=/etc/some/key\nTOKEN=${OTHER_TOKEN}\n",
            &[],
        );
        check(
            ".env",
            "URL=postgres://me:hunterhunter@db/x\n",
            &["hunterhunter"],
        );
        check(
            "secrets.yaml",
            "db:\n  - password: hunterhunter\n    user: somebody\n",
            &["hunterhunter"],
        );
        check(
            "secrets.toml",
            "[db]\npassphrase = 'hunterhunter'\n",
            &["hunterhunter"],
        );
        check(
            "secrets.json",
            r#"{"a": [{"password": "hunter\"hunter", "port": 5432}]}"#,
            &["hunter\"hunter"],
        );
        check(
            "credentials",
            "Server=db;Password=hunterhunter;Port=1\n",
            &["hunterhunter"],
        );
        check(
            ".my.cnf",
            "[client]\nuser=somebody\npassword=\"hunterhunter\"\n",
            &["hunterhunter"],
        );
        check(
            ".npmrc",
            "//registry.npmjs.org/:_authToken=hunterhunter\n",
            &["hunterhunter"],
        );
    }

    #[test]
    fn values_of_known_files() {
        check(
            ".netrc",
            "machine h login somebody password hunterhunter\n",
            &["hunterhunter"],
        );
        check(
            ".netrc",
            "machine h\n login somebody\n password hunterhunter\n",
            &["hunterhunter"],
        );
        check(
            ".pgpass",
            "# c\nh:5432:db\\:x:me:hunter:hunter\n",
            &["hunter:hunter"],
        );
        check(
            ".git-credentials",
            "https://me:hunterhunter@h\n",
            &["hunterhunter"],
        );
        check("db_key", "hunterhunter\n", &["hunterhunter"]);
    }

    #[test]
    fn keys_but_no_certificates() {
        let key = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEvQIBADANBgkqhkiG\nabcd\n9w0BAQEFAASCBKcw\n-----END RSA PRIVATE KEY-----\n";
        let lines = ["9w0BAQEFAASCBKcw", "MIIEvQIBADANBgkqhkiG"];
        check("id_rsa", key, &lines);
        check(
            "a.pem",
            &format!(
                "{}{key}",
                key.replace("PRIVATE KEY", "CERTIFICATE")
                    .replace("MII", "NII")
            ),
            &lines,
        );
        let json = serde_json::json!({ "type": "service_account", "private_key": key });
        check("a.json", &json.to_string(), &lines);
        check(
            ".env",
            &format!("KEY=\"{}\"", key.trim().replace('\n', "\\n")),
            &lines,
        );
    }

    #[test]
    fn a_long_value_becomes_short_pieces() {
        let token = |length: usize| -> String {
            let digit = |n: usize| char::from_digit(u32::try_from(n * n % 31).unwrap(), 36);
            (0..length).filter_map(digit).collect()
        };
        let text = format!("TOKEN={}\n", token(700_000));
        let found = values(".env", &text);
        assert!(found.len() <= MAX_PIECES, "{}", found.len());
        assert!(found.iter().all(|piece| piece.len() <= PIECE));
        // Every byte is in a piece, and no piece is shorter than the others.
        for value in [token(65), token(200), "pässwörd".repeat(40)] {
            let all: Vec<&str> = pieces(&value).collect();
            let mut end = 0;
            for piece in &all {
                let start = piece.as_ptr() as usize - value.as_ptr() as usize;
                assert!(start <= end && (PIECE - 3..=PIECE).contains(&piece.len()));
                end = start + piece.len();
            }
            assert_eq!(end, value.len(), "{all:?}");
        }
        let exact = token(PIECE);
        assert_eq!(pieces(&exact).collect::<Vec<_>>(), [exact.as_str()]);
    }

    #[test]
    fn values_that_look_random() {
        check(
            ".vault-token",
            "hvs.CAESIJ3kq9Zx7w2Lm5pT\n",
            &["hvs.CAESIJ3kq9Zx7w2Lm5pT"],
        );
        check(
            ".env",
            "ID=a81f0c3e9d7b2456\nREGION=us-east-1\nAT=2024-01-01T00:00:00Z\n",
            &["a81f0c3e9d7b2456"],
        );
        check(
            ".htpasswd",
            "me:$apr1$x9Kq2LmZ$7wXaPt5rYb1NcVd0EfGh\n",
            &[
                "$apr1$x9Kq2LmZ$7wXaPt5rYb1NcVd0EfGh",
                "me:$apr1$x9Kq2LmZ$7wXaPt5rYb1NcVd0EfGh",
            ],
        );
        for ordinary in [
            "some-ordinary-name-of-2-words",
            "AN_UPPER_CASE_NAME_2",
            "registry.example.com/foo-1.2.3",
        ] {
            assert!(!is_random(ordinary), "{ordinary}");
        }
    }
}
