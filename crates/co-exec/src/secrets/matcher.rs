//! Finds secret values in a text, in the encodings in which a command may print them.
//!
//! Text and values are compared in one normal form. So one pattern finds a value with any line breaks, escapes and
//! capitals.

use std::ops::Range;

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

/// The least length of a value. A shorter one would match ordinary words.
pub(super) const MIN: usize = 8;

/// The least part of a value that counts at the end of a text.
const MIN_PART: usize = 6;

/// Finds a set of values.
#[derive(Debug, Default)]
pub struct Matcher {
    text: Option<Patterns>,
    digits: Option<Patterns>,
}

/// The patterns of all values for one normal form.
#[derive(Debug)]
struct Patterns {
    forms: Vec<Vec<u8>>,
    search: AhoCorasick,
}

/// A text in normal form, with the position of each byte in the original.
#[derive(Default)]
struct NormalText {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Matcher {
    /// Returns a matcher for `values`. It ignores those that are too short.
    ///
    /// # Errors
    /// The values are too many for one search.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, BuildError> {
        let (mut text, mut digits) = (Vec::new(), Vec::new());
        for value in values {
            let normal = NormalText::text(value).bytes;
            if normal.len() < MIN {
                continue;
            }
            let reversed: String = value.chars().rev().collect();
            text.push(NormalText::text(&reversed).bytes);
            text.extend((0..3).map(|shift| base64(value.as_bytes(), shift)));
            digits.push(hex(value.as_bytes()));
            text.push(normal);
        }
        Ok(Self {
            text: Patterns::new(text)?,
            digits: Patterns::new(digits)?,
        })
    }

    /// Returns the positions of values in `text`, in no order. Ranges may overlap.
    ///
    /// A part of a value counts at the start and the end of the text, because a text may be one piece of a stream.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        if let Some(patterns) = &self.text {
            patterns.find(&NormalText::text(text), &mut found);
        }
        if let Some(patterns) = &self.digits {
            patterns.find(&NormalText::digits(text), &mut found);
        }
        for range in &mut found {
            while !text.is_char_boundary(range.start) {
                range.start -= 1;
            }
            while !text.is_char_boundary(range.end) {
                range.end += 1;
            }
        }
        found
    }
}

impl Patterns {
    /// Returns nothing if there are no forms.
    fn new(mut forms: Vec<Vec<u8>>) -> Result<Option<Self>, BuildError> {
        if forms.is_empty() {
            return Ok(None);
        }
        forms.sort();
        forms.dedup();
        let search = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(&forms)?;
        Ok(Some(Self { forms, search }))
    }

    fn find(&self, view: &NormalText, found: &mut Vec<Range<usize>>) {
        let hits = self.search.find_overlapping_iter(&view.bytes);
        found.extend(hits.map(|hit| view.place(hit.start()..hit.end())));
        let bytes = view.bytes.as_slice();
        let starts = |form: &Vec<u8>| part(form, |at| bytes.ends_with(&form[..at]));
        if let Some(length) = self.forms.iter().filter_map(starts).max() {
            found.push(view.place(bytes.len() - length..bytes.len()));
        }
        let ends = |form: &Vec<u8>| part(form, |at| bytes.starts_with(&form[form.len() - at..]));
        if let Some(length) = self.forms.iter().filter_map(ends).max() {
            found.push(view.place(0..length));
        }
    }
}

/// Returns the length of the longest part of a form that fits.
fn part(form: &[u8], fits: impl Fn(usize) -> bool) -> Option<usize> {
    (MIN_PART..form.len()).rev().find(|length| fits(*length))
}

impl NormalText {
    /// Makes a normal form without blanks, line breaks and backslashes, in small letters, with percent-encoding
    /// decoded and one base64 alphabet.
    fn text(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut view = Self::default();
        let mut at = 0;
        while at < bytes.len() {
            let (byte, length) = match bytes[at] {
                b'%' => match percent(&bytes[at + 1..]) {
                    Some(byte) => (byte, 3),
                    None => (b'%', 1),
                },
                byte => (byte, 1),
            };
            match byte {
                b'\\' => {}
                byte if byte.is_ascii_whitespace() => {}
                b'-' => view.push(b'+', at, length),
                b'_' => view.push(b'/', at, length),
                byte => view.push(byte.to_ascii_lowercase(), at, length),
            }
            at += length;
        }
        view
    }

    /// Makes a normal form of letters and digits only, in small letters, without the `0x` and `\x` before a byte.
    fn digits(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut view = Self::default();
        let mut at = 0;
        while at < bytes.len() {
            let prefix =
                |first| bytes[at] == first && matches!(bytes.get(at + 1), Some(b'x' | b'X'));
            if prefix(b'0') || prefix(b'\\') {
                at += 2;
                continue;
            }
            if bytes[at].is_ascii_alphanumeric() {
                view.push(bytes[at].to_ascii_lowercase(), at, 1);
            }
            at += 1;
        }
        view
    }

    fn push(&mut self, byte: u8, at: usize, length: usize) {
        self.bytes.push(byte);
        self.places.push(at..at + length);
    }

    /// Returns the position of some bytes in the original text.
    fn place(&self, bytes: Range<usize>) -> Range<usize> {
        self.places[bytes.start].start..self.places[bytes.end - 1].end
    }
}

/// Returns the byte for two hexadecimal digits.
fn percent(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| {
        let digit = char::from(*digits.get(at)?).to_digit(16)?;
        u8::try_from(digit).ok()
    };
    Some(digit(0)? << 4 | digit(1)?)
}

fn hex(value: &[u8]) -> Vec<u8> {
    let digits = b"0123456789abcdef";
    let both = |byte: &u8| {
        [
            digits[usize::from(byte >> 4)],
            digits[usize::from(byte & 15)],
        ]
    };
    value.iter().flat_map(both).collect()
}

/// Returns the base64 digits, in normal form, that depend on `value` alone if `shift` bytes are before it.
fn base64(value: &[u8], shift: usize) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut padded = vec![0; shift];
    padded.extend(value);
    let (first, last) = ((8 * shift).div_ceil(6), 8 * padded.len() / 6);
    let digit = |at: usize| {
        let (byte, bit) = (6 * at / 8, 6 * at % 8);
        let next = padded.get(byte + 1).copied().unwrap_or(0);
        let pair = u16::from_be_bytes([padded[byte], next]);
        DIGITS[usize::from(pair >> (10 - bit) & 63)]
    };
    (first..last).map(digit).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    const VALUE: &str = "k9-Zq_7w/Xa+Lm2p";

    /// Returns `text` without what is found.
    fn without(values: &[&str], text: &str) -> String {
        let mut found = Matcher::new(values.iter().copied()).unwrap().find(text);
        found.sort_by_key(|range| (range.start, range.end));
        let (mut left, mut at) = (String::new(), 0);
        for range in found {
            if range.start > at {
                left.push_str(&text[at..range.start]);
            }
            at = at.max(range.end);
        }
        left + &text[at..]
    }

    /// Returns what a command prints of `input`.
    fn pipe(command: &str, input: &str) -> String {
        let mut child = Command::new("bash")
            .args(["-c", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{command}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_value_is_found_in_the_encodings_of_common_programs() {
        let perl = |code: &str| format!("perl -CS -e '$_ = join \"\", <STDIN>; {code}'");
        for command in [
            "cat".to_owned(),
            "rev".into(),
            "base64".into(),
            "base64 -w 7".into(),
            "base64 | tr +/ -_".into(),
            "sed 's/^/x/' | base64".into(),
            "sed 's/^/xy/' | base64".into(),
            "od -An -v -tx1".into(),
            "od -An -v -c".into(),
            "od -An -v -tx1 | tr a-f A-F".into(),
            "fold -w 3".into(),
            "tr a-z A-Z".into(),
            perl("s/(.)/sprintf \"%%%02X\", ord $1/ge; print"),
            perl("s/([^A-Za-z0-9])/sprintf \"%%%02x\", ord $1/ge; print"),
            perl("s/(.)/sprintf \"\\\\x%02x\", ord $1/ge; print"),
            perl("s/(.)/sprintf \"0x%02x, \", ord $1/ge; print"),
            "printf %q \"$(cat)\"".into(),
        ] {
            let text = pipe(&command, &format!("{VALUE}\n"));
            let left = without(&[VALUE], &text);
            let letters = left.chars().filter(char::is_ascii_alphanumeric).count();
            // The base64 of the line end, and of letters before the value.
            assert!(letters <= 5, "{command}: {text:?} leaves {left:?}");
        }
    }

    #[test]
    fn the_rest_of_a_text_stays() {
        let check =
            |text: &str, left: &str| assert_eq!(without(&[VALUE, "pässwörd-ü"], text), left);
        check(&format!("a={VALUE};\n"), "a=;\n");
        check(&format!("ü{VALUE}ü"), "üü");
        check("x pässwörd-ü y", "x  y");
        check("ü-dröwssäp", "");
        check("p%C3%A4ssw%c3%b6rd-%C3%BC!", "!");
        check(
            "nothing of it: k9-Zq in here",
            "nothing of it: k9-Zq in here",
        );
        assert_eq!(without(&["short"], "short"), "short");
        assert_eq!(without(&[], VALUE), VALUE);
    }

    #[test]
    fn a_part_is_found_at_the_edges_of_a_text() {
        for at in MIN_PART..VALUE.len() - MIN_PART {
            let (first, last) = VALUE.split_at(at);
            assert_eq!(without(&[VALUE], &format!("a: {first}")), "a: ");
            assert_eq!(without(&[VALUE], &format!("{last}\nb")), "\nb");
        }
    }

    #[test]
    fn many_values_and_a_long_text_take_little_time() {
        let values: Vec<String> = (0..1_000)
            .map(|n| format!("value-{n:x}-{}-end", n * 7919))
            .collect();
        let matcher = Matcher::new(values.iter().map(String::as_str)).unwrap();
        let text =
            "an ordinary line of a command's output, 64 bytes long or longer\n".repeat(1_600);
        let begun = std::time::Instant::now();
        assert!(matcher.find(&text).is_empty());
        assert!(begun.elapsed().as_millis() < 500, "{:?}", begun.elapsed());
    }
}
