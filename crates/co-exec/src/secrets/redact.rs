//! Removes secrets from text for a model. The person still sees the original text.
//!
//! Finds well-known formats of keys, private-key blocks, credentials in URLs, values with suspicious names, the person's own
//! keys, and the secret values of the workspace. Leaves ordinary source text unchanged.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use regex::Regex;

use super::matcher::Matcher;

mod names;

pub(super) use names::{is_stand_in, suggests_secret};

/// The least length of one of the person's own keys. A shorter text would match ordinary words.
const MIN_OWN: usize = 8;

/// Returns true if the value of a variable is a secret, judging by the variable's name. Secrets with a known format are found
/// elsewhere, in any text.
pub fn is_secret_variable(name: &str, value: &str) -> bool {
    suggests_secret(name) && !is_stand_in(value)
}

/// A text from which secrets were removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RedactedText {
    pub text: String,
    /// The number of different secrets that were removed.
    pub hidden: usize,
}

impl From<String> for RedactedText {
    fn from(text: String) -> Self {
        Self { text, hidden: 0 }
    }
}

/// Finds secrets in a text and replaces them.
#[derive(Debug, Clone)]
pub struct Redactor {
    own: Vec<String>,
    values: Arc<Matcher>,
}

impl Redactor {
    /// Creates a redactor that, besides known formats, finds the values `own`.
    pub fn new(own: &[String]) -> Self {
        let mut own: Vec<String> = own
            .iter()
            .map(|secret| secret.trim().to_owned())
            .filter(|secret| secret.len() >= MIN_OWN)
            .collect();
        own.sort();
        own.dedup();
        Self {
            own,
            values: Arc::default(),
        }
    }

    /// Returns a redactor that also finds the values `more`.
    #[must_use]
    pub fn with(&self, more: &[String]) -> Self {
        Self::new(&[self.own.as_slice(), more].concat()).with_values(Arc::clone(&self.values))
    }

    /// Sets the matcher for secret values of the workspace, which also finds encoded values.
    #[must_use]
    pub fn with_values(self, values: Arc<Matcher>) -> Self {
        Self { values, ..self }
    }

    /// Returns `text` with every secret replaced by `[redacted: kind]`.
    pub fn redact(&self, text: &str) -> RedactedText {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for secret in &self.own {
            let hits = text.match_indices(secret.as_str());
            found.extend(hits.map(|(at, hit)| (at..at + hit.len(), "provider key")));
        }
        let values = self.values.find(text).into_iter();
        found.extend(values.map(|place| (place, "secret value")));
        for (kind, shape) in SHAPES.iter() {
            for hit in shape.captures_iter(text) {
                if let Some(secret) = hit.name("s").or_else(|| hit.get(0)) {
                    found.push((secret.range(), kind));
                }
            }
        }
        names::find(text, &mut found);
        blocks(text, &mut found);
        replace(text, found)
    }
}

/// Finds private-key blocks, even if their end is missing.
fn blocks(text: &str, found: &mut Vec<(Range<usize>, &str)>) {
    if !text.contains("PRIVATE KEY") {
        return;
    }
    let mut block: Option<Range<usize>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if let Some(mut open) = block.take() {
            let marker = line.contains("-----END ").then(|| line.rfind("-----"));
            if let Some(marker) = marker.flatten() {
                open.end = start + marker + "-----".len();
            } else if is_key_line(line) {
                open.end = start + line.trim_end().len();
                block = Some(open);
                continue;
            }
            found.push((open, "private key"));
        }
        if let Some(begins) = BEGINS.find(line) {
            block = Some(start + begins.start()..start + line.trim_end().len());
        }
    }
    found.extend(block.map(|open| (open, "private key")));
}

/// The first line of a private-key block. Nothing but spaces follows the marker in this line.
static BEGINS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\s*$")
        .expect("the shape is tested to compile")
});

/// Returns true for a line inside a block. A line number, a file name or a `+` may precede the key.
fn is_key_line(line: &str) -> bool {
    let line = line.trim_end();
    let last = line
        .rsplit([' ', '\t', ':', '|', '+', '-'])
        .next()
        .unwrap_or_default();
    let base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    line.trim().is_empty()
        || line.trim_start().chars().all(base64)
        || (last.len() >= 16 && last.chars().all(base64))
        || line.starts_with("Proc-Type:")
        || line.starts_with("DEK-Info:")
        || line.starts_with("Version:")
        || line.starts_with("Comment:")
}

/// Patterns that always mean a secret. If a pattern has a group `s`, the secret is this group, otherwise the whole match.
static SHAPES: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let shapes = [
        ("AWS key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}\b"),
        (
            "GitHub token",
            r"\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{36,255})\b",
        ),
        (
            "GitLab token",
            r"\bgl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat)-[A-Za-z0-9_\-.]{20,255}",
        ),
        (
            "Slack token",
            r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,255}|\bxapp-\d-[A-Za-z0-9\-]{10,255}|hooks\.slack\.com/services/(?P<s>T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,})",
        ),
        (
            "Stripe key",
            r"\b(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,255}|\bwhsec_[A-Za-z0-9+/=]{20,255}",
        ),
        (
            "Google key",
            r"\bAIza[0-9A-Za-z_\-]{35}|\bya29\.[0-9A-Za-z_\-.]{20,}|\bGOCSPX-[0-9A-Za-z_\-]{20,}",
        ),
        (
            "model provider key",
            r"\bsk-(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_\-]{20,}|\bsk-[A-Za-z0-9]{32,}\b|\bgsk_[A-Za-z0-9]{40,}|\bxai-[A-Za-z0-9]{40,}|\bhf_[A-Za-z0-9]{30,}\b",
        ),
        (
            "registry token",
            r"\bnpm_[A-Za-z0-9]{36}\b|\bpypi-AgE[A-Za-z0-9_\-]{40,}|\bdckr_pat_[A-Za-z0-9_\-]{20,}|\bcio[A-Za-z0-9]{32}\b",
        ),
        (
            "JWT",
            r"\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}",
        ),
        (
            "private key",
            r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:\\n|\\r|[A-Za-z0-9+/= \t]){16,}(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?",
        ),
        (
            "password in an address",
            r#"\b[A-Za-z][A-Za-z0-9+.\-]*://[^\s/@:'"<>$`{}]*:(?P<s>[^\s/@'"<>$`{}%(]{3,}|[^\s/@'"<>$`{}(]*%[0-9A-Fa-f]{2}[^\s/@'"<>$`{}(]*)@[A-Za-z0-9\[]"#,
        ),
        (
            "token in an address",
            r"\b[a-z][a-z0-9+.\-]*://(?P<s>[A-Za-z0-9_\-]{20,})@[A-Za-z0-9]",
        ),
        (
            "authorization header",
            r#"(?i)\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+(?P<s>[A-Za-z0-9_\-.~+/=]{8,})"#,
        ),
    ];
    shapes
        .into_iter()
        .map(|(kind, shape)| {
            (
                kind,
                Regex::new(shape).expect("the shapes are tested to compile"),
            )
        })
        .collect()
});

/// Replaces the found secrets. Overlapping secrets are replaced as one.
fn replace(text: &str, mut found: Vec<(Range<usize>, &str)>) -> RedactedText {
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    found.dedup_by(|(next, _), (range, _)| {
        let overlaps = next.start < range.end;
        if overlaps {
            range.end = range.end.max(next.end);
        }
        overlaps
    });
    let (mut clean, mut at) = (String::with_capacity(text.len()), 0);
    for (range, kind) in &found {
        clean.push_str(&text[at..range.start]);
        clean.push_str(&format!("[redacted: {kind}]"));
        at = range.end;
    }
    clean.push_str(&text[at..]);
    let secrets: HashSet<&str> = found.into_iter().map(|(range, _)| &text[range]).collect();
    RedactedText {
        text: clean,
        hidden: secrets.len(),
    }
}

#[cfg(test)]
mod tests;
