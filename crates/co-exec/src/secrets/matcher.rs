//! Finds secret values in a text: in their plain form, and encoded as JSON, base64, hex or URL.

use std::ops::Range;

use aho_corasick::{AhoCorasick, BuildError};
use base64::engine::{Engine, GeneralPurpose};
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};

use super::value::{Place, SecretValue};

/// The most bytes of a secret value. co does not search the encoded forms of a longer value.
const MAX_ENCODED: usize = 4 << 10;

/// Finds the secret values of a set in a text.
#[derive(Debug, Default)]
pub struct Matcher {
    search: Option<AhoCorasick>,
    /// For each search pattern, the places in a text at which a hit counts.
    places: Vec<Place>,
}

impl Matcher {
    /// Creates a matcher for `values`.
    ///
    /// # Errors
    /// The values are too many for one search.
    pub(super) fn new<'a>(
        values: impl IntoIterator<Item = &'a SecretValue>,
    ) -> Result<Self, BuildError> {
        let mut patterns = Vec::new();
        for value in values {
            if !matches!(value.place, Place::Key(_)) && value.text.len() <= MAX_ENCODED {
                let encoded = encodings(&value.text).into_iter();
                patterns.extend(encoded.map(|form| (form, Place::Anywhere)));
            }
            patterns.push((value.text.to_string(), value.place.clone()));
        }
        if patterns.is_empty() {
            return Ok(Self::default());
        }
        let (forms, places): (Vec<_>, Vec<_>) = patterns.into_iter().unzip();
        Ok(Self {
            search: Some(AhoCorasick::new(forms)?),
            places,
        })
    }

    /// Returns the ranges of `text` that contain values. Ranges may overlap.
    pub fn find(&self, text: &str) -> Vec<Range<usize>> {
        let Some(search) = &self.search else {
            return Vec::new();
        };
        let hits = search.find_overlapping_iter(text);
        hits.filter(|hit| self.places[hit.pattern()].is_at(text, hit.start(), hit.end()))
            .map(|hit| hit.range())
            .collect()
    }
}

/// Returns the encoded forms of a value that differ from the value itself.
fn encodings(value: &str) -> Vec<String> {
    // The last digit also depends on what follows, such as a line end.
    let digits = 8 * value.len() / 6;
    let base64 = |alphabet: &GeneralPurpose| alphabet.encode(value)[..digits].to_owned();
    let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
    let json = serde_json::Value::from(value).to_string();
    let mut forms = vec![
        base64(&BASE64_STANDARD_NO_PAD),
        base64(&BASE64_URL_SAFE_NO_PAD),
        hex.to_ascii_uppercase(),
        hex,
        url(value, |byte| format!("%{byte:02X}")),
        url(value, |byte| format!("%{byte:02x}")),
        json[1..json.len() - 1].to_owned(),
    ];
    forms.sort();
    forms.dedup();
    forms.retain(|form| form != value);
    forms
}

/// URL-encodes all characters except the unreserved ones.
fn url(value: &str, escape: fn(u8) -> String) -> String {
    let encode = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => {
            char::from(byte).to_string()
        }
        byte => escape(byte),
    };
    value.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "DB_PASSWORD";

    /// Returns `text` with each value replaced by `*`.
    fn without(values: &[&str], text: &str) -> String {
        let values: Vec<_> = values
            .iter()
            .filter_map(|value| SecretValue::new(KEY, value))
            .collect();
        let mut found = Matcher::new(&values).unwrap().find(text);
        found.sort_by_key(|range| (range.start, range.end));
        let (mut left, mut at) = (String::new(), 0);
        for range in found.into_iter().filter(|range| range.start < range.end) {
            if range.start >= at {
                left.push_str(&text[at..range.start]);
                left.push('*');
            }
            at = at.max(range.end);
        }
        left + &text[at..]
    }

    #[track_caller]
    fn check(value: &str, cases: &[(&str, &str)]) {
        for (text, left) in cases {
            assert_eq!(without(&[value], text), *left, "{value} in {text}");
        }
    }

    #[test]
    fn a_value_is_found_as_it_is_and_encoded() {
        check(
            r#"k9-Zq"7w/X+é"#,
            &[
                (r#"a=k9-Zq"7w/X+é;"#, "a=*;"),
                (r#"ük9-Zq"7w/X+éü"#, "ü*ü"),
                (r#"{"a": "k9-Zq\"7w/X+é"}"#, r#"{"a": "*"}"#),
                ("azktWnEiN3cvWCvDqQ==", "*Q=="),
                ("azktWnEiN3cvWCvDqQo=", "*Qo="),
                ("6b392d5a712237772f582bc3a9", "*"),
                ("6B392D5A712237772F582BC3A9", "*"),
                ("?x=k9-Zq%227w%2FX%2B%C3%A9&", "?x=*&"),
                ("?x=k9-Zq%227w%2fX%2b%c3%a9&", "?x=*&"),
            ],
        );
        check("?>?>?>?>", &[("Pz4_Pj8-Pz4", "*4"), ("Pz4/Pj8+Pz4", "*4")]);
    }

    #[test]
    fn a_part_or_another_order_of_a_value_stays() {
        for text in [
            "k9-Zq_7w/Xa",
            "p2mL+aX/w7_qZ-9k",
            "k9-Zq_7w\n/Xa+Lm2p",
            "k 9 - Z q _ 7 w / X a + L m 2 p",
            "K9-ZQ_7W/XA+LM2P",
            "6b392d5a715f3777\n2f58612b4c6d3270",
        ] {
            check("k9-Zq_7w/Xa+Lm2p", &[(text, text)]);
        }
    }

    #[test]
    fn short_letters_and_digits_match_as_a_word_only() {
        check(
            "S3cret",
            &[
                ("mysql -pS3cret db", "mysql -p* db"),
                ("-pS3cret", "-p*"),
                ("x=S3cret", "x=*"),
                ("(S3cret)", "(*)"),
                ("S3cret", "*"),
                ("S3crets", "S3crets"),
                ("aS3cret", "aS3cret"),
                ("a-pS3cret", "a-pS3cret"),
                ("--ppS3cret", "--ppS3cret"),
                ("S3cret_2", "S3cret_2"),
                ("éS3cret", "éS3cret"),
            ],
        );
        check(
            "123456789",
            &[("1234567890", "1234567890"), ("123456789.", "*.")],
        );
        check("a1b2c3d4e5f6g7h8", &[("xa1b2c3d4e5f6g7h8y", "x*y")]);
        check(
            "lettersalone",
            &[
                ("the lettersalone", "the *"),
                ("lettersalones", "lettersalones"),
            ],
        );
    }

    #[test]
    fn a_plain_word_matches_beside_its_key_only() {
        check(
            "postgres",
            &[
                ("DB_PASSWORD=postgres", "DB_PASSWORD=*"),
                ("db_password: postgres\n", "db_password: *\n"),
                (r#""DB_PASSWORD" => "postgres""#, r#""DB_PASSWORD" => "*""#),
                ("DB_PASSWORD=postgresql", "DB_PASSWORD=postgresql"),
                ("DB_PASSWORD:\npostgres", "DB_PASSWORD:\npostgres"),
                ("postgres", "postgres"),
                ("image: postgres", "image: postgres"),
                ("cG9zdGdyZXM", "cG9zdGdyZXM"),
            ],
        );
        check("short", &[("DB_PASSWORD=short", "DB_PASSWORD=short")]);
    }

    #[test]
    fn a_value_among_many_is_found_in_a_long_text() {
        let values: Vec<_> = (0..1_000)
            .map(|n| format!("value-{n:x}-{}-end", n * 7919))
            .filter_map(|text| SecretValue::new(KEY, &text))
            .collect();
        let matcher = Matcher::new(&values).unwrap();
        let text =
            "an ordinary line of a command's output, 64 bytes long or longer\n".repeat(1_600);
        assert!(matcher.find(&text).is_empty());
        assert_eq!(matcher.find(&format!("{text}value-2-15838-end")).len(), 1);
    }
}
