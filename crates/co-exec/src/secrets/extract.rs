//! Extracts secret values from the text of a secret file: dotenv, JSON, YAML, TOML, netrc, pgpass and PEM.
//!
//! A value counts as secret if the name of its key suggests this, or if the value looks random.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use base64::prelude::{BASE64_STANDARD, Engine};
use regex::Regex;
use serde_json::Value;

use super::redact::{is_stand_in, suggests_secret};
use super::value::SecretValue;

/// The least number of characters in a random value. Shorter text may be a name or a version.
const MIN_RANDOM: usize = 16;

/// The least number of changes between capitals, small letters and digits in a random value.
const MIN_CHANGES: usize = 5;

/// A PEM block, even inside a string in which `\n` stands for line breaks.
static PEM: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"-----BEGIN (?P<kind>[A-Z0-9 ]+)-----(?s:(?P<body>.*?))(?:-----END [A-Z0-9 ]+-----|\z)")
});

/// A line with a key and a value, such as `key=value` or `key: value`.
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    regex(
        r#"(?m)^[\s\-]*(?:export\s+|set\s+|declare\s+-x\s+)?["']?(?P<key>[\w.\-/:@]+?)["']?[ \t]*(?:=>|:=|=|:[ \t])[ \t]*(?P<value>\S.*)$"#,
    )
});

/// A field of a netrc file: a password or an account.
static NETRC: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?:^|\s)(?P<key>password|passwd|account)\s+(?P<value>\S+)"));

/// A user and a password in a URL.
static ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"://(?P<key>[^\s/:@]*):(?P<value>[^\s@]+)@"));

/// A token in a URL, in the place of the user.
static TOKEN_ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| regex(r"://(?P<value>[^\s/:@]{16,})(?::[^\s@]*)?@"));

/// A header that git sends: `extraheader = Authorization: Basic …`.
static HEADER: LazyLock<Regex> = LazyLock::new(|| {
    regex(r#"(?i)\bextraheader\s*=\s*"?(?P<key>[\w-]+):\s*(?:[a-z]+[ \t]+)?(?P<value>[^\s"]+)"#)
});

fn regex(source: &str) -> Regex {
    Regex::new(source).expect("the tests compile this expression")
}

/// Returns the secret values in `text`, which a secret file called `name` contains.
pub(super) fn values(name: &str, text: &str) -> BTreeSet<SecretValue> {
    let mut found = Extraction::default();
    if let Ok(json) = serde_json::from_str(text) {
        found.json("", &json);
        return found.values;
    }
    let rest = found.blocks(text);
    found.addresses(&rest);
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
    if !whole.contains(char::is_whitespace) && !PAIR.is_match(whole) && may_be_secret(whole) {
        found.add(name, whole);
    }
    found.tokens(&rest);
    found.values
}

/// Returns the credentials in the URLs and headers of a git configuration.
pub(super) fn git_config(text: &str) -> BTreeSet<SecretValue> {
    let mut found = Extraction::default();
    found.addresses(text);
    for hit in TOKEN_ADDRESS.captures_iter(text) {
        found.add("", &hit["value"]);
    }
    for hit in HEADER.captures_iter(text) {
        found.add(&hit["key"], &hit["value"]);
        let decoded = BASE64_STANDARD.decode(&hit["value"]).unwrap_or_default();
        if let Some((user, password)) = str::from_utf8(&decoded)
            .ok()
            .and_then(|it| it.split_once(':'))
        {
            found.add(user, password);
        }
    }
    found.values
}

#[derive(Default)]
struct Extraction {
    values: BTreeSet<SecretValue>,
}

impl Extraction {
    fn add(&mut self, key: &str, value: &str) {
        self.values.extend(SecretValue::new(key, value));
    }

    fn addresses(&mut self, text: &str) {
        for hit in ADDRESS.captures_iter(text) {
            self.add(&hit["key"], &hit["value"]);
        }
    }

    fn json(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(text) => {
                let rest = self.blocks(text);
                self.addresses(&rest);
                self.pair(key, &rest);
                self.tokens(&rest);
            }
            Value::Array(items) => items.iter().for_each(|item| self.json(key, item)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| self.json(key, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Extracts the lines of private keys. Returns the text without its PEM blocks.
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
                    self.add("", line);
                }
            }
        }
        PEM.replace_all(text, "\n").into_owned()
    }

    fn pair(&mut self, key: &str, value: &str) {
        if suggests_secret(key) && may_be_secret(value) {
            self.add(key, value);
        }
        // `Server=db;Password=…`
        for (key, value) in value
            .split([';', '&'])
            .filter_map(|part| part.split_once('='))
        {
            if suggests_secret(key.trim()) && !is_stand_in(value) {
                self.add(key.trim(), value);
            }
        }
    }

    /// Extracts the words that look random.
    fn tokens(&mut self, text: &str) {
        let between = |c: char| c.is_whitespace() || "\"'`,;:&?@=|<>(){}[]".contains(c);
        for token in text.split(between).filter(|token| is_random(token)) {
            self.add("", token);
        }
    }

    /// Extracts the password of each line. A line has five fields. The fourth is the name of the user, which becomes the key; the
    /// fifth is the password, which becomes the value.
    fn pgpass(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (mut fields, mut escaped) = (0, false);
            let password = line.char_indices().find_map(|(at, c)| {
                fields += usize::from(c == ':' && !escaped);
                escaped = c == '\\' && !escaped;
                (fields == 4).then_some(at + 1)
            });
            if let Some(at) = password {
                let user = line[..at - 1].rsplit(':').next().unwrap_or_default();
                self.add(user, &line[at..]);
            }
        }
    }
}

/// Returns false for a placeholder, a path and a URL.
fn may_be_secret(value: &str) -> bool {
    let stem = value.trim_start_matches(['/', '.', '~']);
    let is_path = stem.len() < value.len() && (stem.contains('/') || !is_random(stem));
    !is_stand_in(value) && !is_path && !value.contains("://")
}

/// Returns a value without its quotation marks and without a comment after it.
fn unquoted(value: &str) -> &str {
    let value = value.trim();
    if let Some(quote) = value.chars().next().filter(|c| "\"'`".contains(*c)) {
        let inner = &value[1..];
        return inner.rfind(quote).map_or(inner, |end| &inner[..end]);
    }
    let end = value.find(" #").unwrap_or(value.len());
    value[..end].trim_end_matches([',', ';', ' ', '\t'])
}

/// Returns true if the text looks random: a program chose it, not a person.
fn is_random(text: &str) -> bool {
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
    use super::super::value::Place;
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[&str]) {
        let found = match name {
            "config" => git_config(text),
            name => values(name, text),
        };
        let found: Vec<_> = found.iter().map(|value| &*value.text).collect();
        assert_eq!(found, expected, "{text}");
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
            "PASSWORD=changeme\nPASSWORD=short\nPASSWORD=s1-x\nKEY_PATH=/etc/some/key\nTOKEN=${OTHER_TOKEN}\n",
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
    fn credentials_in_a_git_configuration() {
        check(
            "config",
            "[remote \"origin\"]\n\turl = https://me:hunterhunter@h/r\n[user]\n\tsigningkey = 0123456789abcdefABCD\n",
            &["hunterhunter"],
        );
        check(
            "config",
            "[url \"https://abcdef0123456789abcd:x-oauth-basic@h/\"]\n\tinsteadOf = h:\n",
            &["abcdef0123456789abcd", "x-oauth-basic"],
        );
        check(
            "config",
            "[http \"https://h/\"]\n\textraheader = AUTHORIZATION: basic bWU6aHVudGVyaHVudGVy\n",
            &["bWU6aHVudGVyaHVudGVy", "hunterhunter"],
        );
        check(
            "config",
            "[http]\n\textraHeader = \"X-Token: hunterhunter\"\n\turl = git@h:r\n\tproxy = http://h:80/\n",
            &["hunterhunter"],
        );
    }

    #[test]
    fn a_plain_word_has_the_key_beside_it() {
        let place = |name, text| {
            let found = values(name, text);
            found.last().map(|value| value.place.clone())
        };
        let key = |key: &str| Some(Place::Key(key.into()));
        assert_eq!(place(".env", "DB_PASSWORD=postgres\n"), key("db_password"));
        assert_eq!(place("db_password", "postgres\n"), key("db_password"));
        assert_eq!(place(".pgpass", "h:1:db:me:postgres\n"), key("me"));
        assert_eq!(place(".env", "URL=a://me:postgres@h\n"), key("me"));
        assert_eq!(place(".env", "URL=a://:postgres@h\n"), None);
        assert_eq!(place(".env", "DB_PASSWORD=S3cret\n"), Some(Place::Word));
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
