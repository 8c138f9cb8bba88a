//! Takes secrets out of what goes to a model; the screen keeps the original.
//!
//! Knows well-known shapes of keys, private-key blocks, credentials in addresses, values of names
//! that promise a secret, and the person's own keys. Ordinary source text stays as it is.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use regex::Regex;

mod names;

/// A person's own keys shorter than this would hide ordinary words.
const MIN_OWN: usize = 8;
/// A line longer than this is let go in pieces.
const MAX_LINE: usize = 256 * 1024;
/// What is kept back of such a line: no secret is longer.
const OVERLAP: usize = 16 * 1024;

/// Finds and replaces secrets.
#[derive(Debug, Clone)]
pub struct Redactor {
    own: Arc<Vec<String>>,
}

impl Redactor {
    /// Knows the values of `own` besides the shapes.
    pub fn new(own: &[String]) -> Self {
        let mut own: Vec<String> = own
            .iter()
            .map(|secret| secret.trim().to_owned())
            .filter(|secret| secret.len() >= MIN_OWN)
            .collect();
        // The longest first: one key may start with another.
        own.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self { own: Arc::new(own) }
    }

    /// Returns one that knows the values of `more` as well.
    #[must_use]
    pub fn with(&self, more: &[String]) -> Self {
        let mut own = self.own.to_vec();
        own.extend(more.iter().cloned());
        own.sort();
        own.dedup();
        Self::new(&own)
    }

    /// Returns `text` with every secret replaced by `[redacted: kind]`.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut stream = self.stream();
        let mut clean = stream.push(text);
        clean.push_str(&stream.finish());
        if clean == text {
            Cow::Borrowed(text)
        } else {
            Cow::Owned(clean)
        }
    }

    /// Redacts text that comes in pieces.
    pub fn stream(&self) -> RedactStream {
        RedactStream {
            redactor: self.clone(),
            held: String::new(),
            in_key: false,
        }
    }

    /// Replaces what is within lines.
    fn lines(&self, text: &str) -> String {
        let mut found: Vec<(Range<usize>, &str)> = Vec::new();
        for secret in self.own.iter() {
            found.extend(
                text.match_indices(secret.as_str())
                    .map(|(at, hit)| (at..at + hit.len(), "provider key")),
            );
        }
        for (kind, shape) in SHAPES.iter() {
            for hit in shape.captures_iter(text) {
                if let Some(secret) = hit.name("s").or_else(|| hit.get(0)) {
                    found.push((secret.range(), kind));
                }
            }
        }
        names::find(text, &mut found);
        replace(text, found)
    }
}

/// Redacts text that comes in pieces: a secret split over pieces is found, since lines are let go whole.
#[derive(Debug)]
pub struct RedactStream {
    redactor: Redactor,
    held: String,
    in_key: bool,
}

impl RedactStream {
    /// Takes a piece, and returns what can be told by now.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        if let Some(end) = self.held.rfind('\n') {
            let rest = self.held.split_off(end + 1);
            let lines = std::mem::replace(&mut self.held, rest);
            return self.scrub(&lines);
        }
        if self.held.len() > MAX_LINE {
            return self.part_of_a_line();
        }
        String::new()
    }

    /// Returns what was still held back.
    pub fn finish(&mut self) -> String {
        let held = std::mem::take(&mut self.held);
        self.scrub(&held)
    }

    /// Lets go of a very long line as far as a blank that no secret crosses.
    fn part_of_a_line(&mut self) -> String {
        let mut limit = self.held.len() - OVERLAP;
        while !self.held.is_char_boundary(limit) {
            limit -= 1;
        }
        let cut = self.held[..limit]
            .rfind(|c: char| c.is_ascii_whitespace() || c == ',' || c == ';')
            .map_or(limit, |at| at + 1);
        let rest = self.held.split_off(cut);
        let part = std::mem::replace(&mut self.held, rest);
        self.scrub(&part)
    }

    /// Redacts whole lines, following private-key blocks from line to line.
    fn scrub(&mut self, text: &str) -> String {
        if !self.in_key && !text.contains("PRIVATE KEY") {
            return self.redactor.lines(text);
        }
        let mut clean = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            if self.in_key {
                if line.contains("-----END ") {
                    self.in_key = false;
                    let tail = line.rsplit("-----").next().unwrap_or_default();
                    clean.push_str(tail);
                    continue;
                }
                if is_key_line(line) {
                    continue;
                }
                self.in_key = false;
                clean.push('\n');
            }
            if let Some(start) = BEGINS.find(line) {
                clean.push_str(&self.redactor.lines(&line[..start.start()]));
                clean.push_str("[redacted: private key]");
                self.in_key = true;
                continue;
            }
            clean.push_str(&self.redactor.lines(line));
        }
        clean
    }
}

/// The first line of a block: nothing follows the marker.
static BEGINS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----\s*$")
        .expect("the shape is tested to compile")
});

/// A line inside a block, perhaps after a line number, a file name or a `+`.
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

/// Shapes that are secrets wherever they stand; the group `s` is the secret, where it is not all of it.
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

fn replace(text: &str, mut found: Vec<(Range<usize>, &str)>) -> String {
    if found.is_empty() {
        return text.to_owned();
    }
    found.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    for (range, kind) in found {
        if range.start < at {
            // Two shapes that overlap are one secret.
            at = at.max(range.end);
            continue;
        }
        clean.push_str(&text[at..range.start]);
        clean.push_str("[redacted: ");
        clean.push_str(kind);
        clean.push(']');
        at = range.end;
    }
    clean.push_str(&text[at..]);
    clean
}

#[cfg(test)]
mod tests;
