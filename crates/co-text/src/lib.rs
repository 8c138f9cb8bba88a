#![doc = include_str!("../README.md")]

use std::fmt::Display;
use std::time::{Duration, SystemTime};

/// The largest number of files that a text names.
pub const MOST_NAMED: usize = 20;

/// The largest number of characters in the short form of a command.
const SHORT_CHARS: usize = 60;

/// Returns `text` with control, zero-width and bidirectional characters escaped.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && c != '\t' && is_hidden(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Returns `text` as one line: line breaks are escaped too. See [`printable`].
pub fn one_line(text: &str) -> String {
    printable(text).replace('\n', "\\n")
}

/// Returns the byte offset of the first invisible or control character, and the character.
pub fn first_hidden(text: &str) -> Option<(usize, char)> {
    text.char_indices()
        .find(|(_, c)| !matches!(c, ' ' | '\t' | '\n') && is_hidden(*c))
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{1680}'
            | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{2000}'..='\u{200f}'
            | '\u{2028}'..='\u{202f}' | '\u{205f}'..='\u{206f}' | '\u{2800}' | '\u{3000}'
            | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns the start of a text: as many whole characters as fit into `most` bytes.
pub fn start_of(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the end of a text: as many whole characters as fit into `most` bytes.
pub fn end_of(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Returns the first line that is not blank.
pub fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}

/// Returns a text, cut after `most` bytes if it is longer. A mark shows the cut.
pub fn shorten(text: &str, most: usize) -> String {
    marked(text, start_of(text, most))
}

/// Returns a text, cut after `most` characters if it is longer. A mark shows the cut.
pub fn shorten_chars(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map_or(text.len(), |it| it.0);
    marked(text, &text[..end])
}

/// Returns the start of the first line of a command, for lists and titles.
pub fn short_command(command: &str) -> String {
    let end = first_line(command).char_indices().nth(SHORT_CHARS);
    let end = end.map_or(first_line(command).len(), |it| it.0);
    marked(command.trim(), &command.trim()[..end])
}

fn marked(text: &str, start: &str) -> String {
    let mark = if start.len() < text.len() { "…" } else { "" };
    format!("{start}{mark}")
}

/// Returns `text` as inline code of markdown. Its delimiters have more backquotes than any sequence of backquotes in the text.
pub fn code(text: &str) -> String {
    let fence = "`".repeat(longest_backquotes(text) + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Returns `text` as a fenced code block of markdown. The fence is longer than any fence in the text. The block has no line break
/// at its end.
pub fn code_block(language: &str, text: &str) -> String {
    let fence = "`".repeat(3.max(longest_backquotes(text) + 1));
    format!(
        "{fence}{language}\n{}\n{fence}",
        text.trim_end_matches('\n')
    )
}

fn longest_backquotes(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Returns a size in words, such as "1.5 MiB". The unit is the largest power of 1024 that fits, and the number is rounded to a
/// tenth.
pub fn size_text(bytes: u64) -> String {
    for (shift, name) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        let unit = 1_u64 << shift;
        if bytes >= unit {
            let number = format!("{:.1}", bytes as f64 / unit as f64);
            return format!("{} {name}", number.trim_end_matches(".0"));
        }
    }
    counted(bytes, "byte")
}

/// Returns a number with its noun, such as `1 file` or `2 files`.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    plural(count, noun, &format!("{noun}s"))
}

/// Returns a number with a noun whose plural is irregular, such as `1 entry` or `2 entries`.
pub fn plural<N: Display + PartialEq + From<u8>>(count: N, one: &str, many: &str) -> String {
    let noun = if count == N::from(1) { one } else { many };
    format!("{count} {noun}")
}

/// Returns a duration in words, such as "1.5 s". A duration below a second is in milliseconds.
pub fn duration_text(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        seconds => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

/// Returns the time since `then` in words, such as "5 min ago".
pub fn age(then: SystemTime) -> String {
    let age = SystemTime::now().duration_since(then).unwrap_or_default();
    match age.as_secs() {
        0..60 => "just now".to_owned(),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} ago", counted(seconds / 86_400, "day")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hides_nothing() {
        assert_eq!(printable("a\u{202e}b\u{7}"), "a\\u{202e}b\\u{7}");
        assert_eq!(printable("ä\tb\n"), "ä\tb\n");
        assert_eq!(first_hidden("ls\rrm"), Some((2, '\r')));
        assert_eq!(first_hidden("ls 'ä'"), None);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!((start_of("aäb", 2), end_of("aäb", 2)), ("a", "b"));
        assert_eq!((start_of("ä", 9), end_of("ä", 9)), ("ä", "ä"));
        assert_eq!(shorten("aäb", 3), "aä…");
        assert_eq!(shorten_chars("aäb", 2), "aä…");
        assert_eq!(shorten_chars("aäb", 3), "aäb");
        assert_eq!(short_command(" ls\nrm x\n"), "ls…");
        assert_eq!(short_command(" ls \n"), "ls");
    }

    #[test]
    fn code_survives_backquotes() {
        assert_eq!(code("ls"), "`ls`");
        assert_eq!(code("echo `id`"), "`` echo `id` ``");
        assert_eq!(code_block("sh", "a\n```\nb\n"), "````sh\na\n```\nb\n````");
    }

    #[test]
    fn a_size_is_a_short_number() {
        for (bytes, told) in [
            (2 << 30, "2 GiB"),
            (3 << 29, "1.5 GiB"),
            (100 << 20, "100 MiB"),
            (1000, "1000 bytes"),
            (1, "1 byte"),
            (0, "0 bytes"),
            (1_610_612_735, "1.5 GiB"),
            (5 << 40, "5 TiB"),
        ] {
            assert_eq!(size_text(bytes), told);
        }
    }
}
