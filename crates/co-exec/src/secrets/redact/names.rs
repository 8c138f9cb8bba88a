//! Finds values with suspicious names: `API_KEY=…`, `"password": "…"`, `token: …`.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

const KIND: &str = "secret value";

/// A pair `NAME=value`, as in a shell or a dotenv file.
static UPPER: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"(?m)(?P<lead>^[ \t+\-]*(?:export[ \t]+|declare -x[ \t]+|set[ \t]+)?)?\b(?P<name>[A-Z][A-Z0-9_]*)=(?:"(?P<d>[^"\n]+)"|'(?P<q>[^'\n]+)'|(?P<b>[^\s"'`,;&|<>]+))"#,
    )
});

/// A name with a quoted value: `name: "value"`, `"name": "value"` or `name = 'value'`. The name may be in lower case, in camel
/// case or with dashes.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r#"\b(?P<name>[A-Za-z][A-Za-z0-9_.\-]*)["']?\]?[ \t]*(?::|=|:=|=>)[ \t]*(?:"(?P<d>[^"\n]+)"|'(?P<q>[^'\n]+)')"#,
    )
});

/// A name with an unquoted value: `name: value` alone on its line, as in YAML, or `name=value`, as in settings, flags and URLs.
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    compile(
        r"(?m)(?:^[ \t+\-]*(?P<yaml>[A-Za-z][A-Za-z0-9_.\-]*):[ \t]+(?P<y>[A-Za-z0-9_\-+/=.!@#$%^&*~]+)[ \t]*\r?$|\b(?P<name>[A-Za-z][A-Za-z0-9_.\-]*)=(?P<b>[A-Za-z0-9_\-+/=.!@#%^*~]+))",
    )
});

fn compile(source: &str) -> Regex {
    Regex::new(source).expect("the shapes are tested to compile")
}

pub(super) fn find(text: &str, found: &mut Vec<(Range<usize>, &'static str)>) {
    for hit in UPPER.captures_iter(text) {
        let Some(value) = hit.name("d").or(hit.name("q")).or(hit.name("b")) else {
            continue;
        };
        let whole_line = hit.name("lead").is_some() && ends_line(text, value.end());
        let says = suggested_secret(&hit["name"]).is_some();
        if says && is_value(value.as_str()) && (whole_line || !is_code(value.as_str())) {
            found.push((value.range(), KIND));
        }
    }
    for hit in QUOTED.captures_iter(text) {
        let Some(value) = hit.name("d").or(hit.name("q")) else {
            continue;
        };
        if let Some(kind) = suggested_secret(&hit["name"])
            && is_secret(value.as_str(), kind)
        {
            found.push((value.range(), KIND));
        }
    }
    for hit in BARE.captures_iter(text) {
        let yaml = hit.name("yaml").zip(hit.name("y"));
        let Some((name, value)) = yaml.or_else(|| hit.name("name").zip(hit.name("b"))) else {
            continue;
        };
        if let Some(kind) = suggested_secret(name.as_str())
            && is_random(value.as_str(), kind)
        {
            found.push((value.range(), KIND));
        }
    }
}

/// The kind of secret value that a name suggests.
#[derive(Clone, Copy, PartialEq)]
enum SuggestedSecret {
    /// A password. It may be any text, because a person chooses it.
    Password,
    /// A key: random letters and digits that a program generated.
    Key,
}

/// Returns whether the name of a key in a secret file suggests a secret value. Counts more words as suspicious than in source
/// text.
pub(in crate::secrets) fn suggests_secret(key: &str) -> bool {
    const WORDS: [&str; 12] = [
        "pass", "passwd", "password", "pwd", "pw", "auth", "key", "pat", "private", "salt", "dsn",
        "psk",
    ];
    let has = |words: Vec<String>| words.iter().any(|word| WORDS.contains(&word.as_str()));
    suggested_secret(key).is_some() || telling_words(key).is_some_and(has)
}

/// Returns whether a text is only a placeholder for a value.
pub(in crate::secrets) fn is_stand_in(value: &str) -> bool {
    !is_value(value)
}

/// Splits a name into words. Returns `None` if the name is about a property of a secret, such as its length.
fn telling_words(name: &str) -> Option<Vec<String>> {
    const NOT_LAST: [&str; 30] = [
        "id", "len", "length", "size", "count", "max", "min", "path", "file", "dir", "url", "uri",
        "name", "type", "kind", "ttl", "expiry", "expires", "env", "var", "field", "header",
        "label", "prefix", "suffix", "index", "regex", "pattern", "format", "policy",
    ];
    let words = words(name);
    let last = words.last()?.as_str();
    if NOT_LAST.contains(&last) || words.iter().any(|word| word == "public" || word == "max") {
        return None;
    }
    Some(words)
}

/// Returns the kind of secret that the words of a name suggest.
fn suggested_secret(name: &str) -> Option<SuggestedSecret> {
    let words = telling_words(name)?;
    let last = words.last()?.as_str();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(&["password", "passwd", "passphrase", "pwd"]) && words.len() < 5 && last != "pwd"
        || has(&["dbpass"])
    {
        return Some(SuggestedSecret::Password);
    }
    let alone = words.len() == 1;
    if has(&[
        "secret",
        "token",
        "credential",
        "credentials",
        "apikey",
        "accesskey",
        "secretkey",
        "authtoken",
    ]) {
        return Some(SuggestedSecret::Key);
    }
    let upper = name.chars().all(|c| !c.is_lowercase());
    let kinds = [
        "api",
        "access",
        "secret",
        "private",
        "auth",
        "signing",
        "encryption",
        "service",
        "account",
        "master",
        "deploy",
        "license",
        "storage",
    ];
    let key = last == "key" && !alone && (upper || has(&kinds));
    key.then_some(SuggestedSecret::Key)
}

fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        let starts = c.is_uppercase() && before.is_lowercase();
        if matches!(c, '_' | '-' | '.') {
            words.push(String::new());
        } else {
            if starts || words.is_empty() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

fn ends_line(text: &str, at: usize) -> bool {
    let rest = text[at..].trim_start_matches(['"', '\'']);
    let rest = rest.split('\n').next().unwrap_or_default().trim();
    rest.is_empty() || rest.starts_with('#')
}

/// Returns false if a text is only a placeholder for a value.
fn is_value(value: &str) -> bool {
    const STAND_INS: [&str; 13] = [
        "true",
        "false",
        "null",
        "none",
        "nil",
        "undefined",
        "changeme",
        "xxx",
        "xxxx",
        "example",
        "placeholder",
        "string",
        "secret",
    ];
    !STAND_INS.contains(&value.to_ascii_lowercase().as_str())
        && !value.starts_with(['$', '<', '{', '%', '@', '*', '('])
        && !value.starts_with("your")
        && !value.starts_with("[redacted")
        && !value
            .chars()
            .all(|c| c == value.chars().next().unwrap_or(c))
}

/// Returns whether a text looks like an expression in program code.
fn is_code(value: &str) -> bool {
    let dotted = value.split('.').count() > 1
        && value.split('.').all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
    value.contains(['(', ')', '[', ']', '{', '}']) || value.contains("::") || dotted
}

/// Returns whether a quoted value is a secret. A password needs a character other than small letters and `_-.`, and a key needs
/// both letters and digits. A sentence is no secret.
fn is_secret(value: &str, kind: SuggestedSecret) -> bool {
    if !is_value(value)
        || value.contains(char::is_whitespace)
        || value.contains("{}")
        || value.contains("${")
        || value.len() < 6
    {
        return false;
    }
    if value.contains("://") || value.starts_with(['/', '.', '#', '-']) || is_code(value) {
        return false;
    }
    match kind {
        SuggestedSecret::Password => {
            value.contains(|c: char| !c.is_ascii_lowercase() && c != '_' && c != '-' && c != '.')
        }
        SuggestedSecret::Key => value.len() >= 8 && is_mixed(value),
    }
}

fn is_random(value: &str, kind: SuggestedSecret) -> bool {
    let length = match kind {
        SuggestedSecret::Password => 6,
        SuggestedSecret::Key => 10,
    };
    value.len() >= length
        && is_value(value)
        && !is_code(value)
        && is_mixed(value)
        && !is_identifier(value)
}

/// Returns whether a text contains both letters and digits.
fn is_mixed(value: &str) -> bool {
    value.contains(|c: char| c.is_ascii_digit())
        && value.contains(|c: char| c.is_ascii_alphabetic())
}

/// Returns whether a text is an identifier that ends with a number: `token_2`, `password2`.
fn is_identifier(value: &str) -> bool {
    let stem = value.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.len() + 2 >= value.len() && (stem.contains('_') || suggested_secret(stem).is_some())
}
