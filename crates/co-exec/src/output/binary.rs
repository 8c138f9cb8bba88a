//! Distinguishes binary data from text that contains some NUL bytes, by the first bytes of a stream.

/// The highest percentage of bytes that do not occur in text. If more bytes of the data are of this kind, the data is binary.
const MAX_ODD_PERCENT: usize = 30;

/// Returns true if the stream that begins with `start` is unreadable for a person.
///
/// If complete lines of text come before the first NUL byte, such as the errors of a compiler, the stream counts as readable.
pub(crate) fn is_unreadable(start: &[u8]) -> bool {
    let Some(nul) = memchr::memchr(0, start) else {
        return false;
    };
    let lines = memchr::memrchr(b'\n', &start[..nul]).map_or(0, |newline| newline + 1);
    let begins_with_text = lines > 0 && odd_bytes(&start[..lines]) == 0;
    !begins_with_text && odd_bytes(start) * 100 > start.len() * MAX_ODD_PERCENT
}

/// Counts the bytes that do not occur in text. A single NUL byte may separate names, so a NUL counts only if another NUL precedes
/// it directly.
fn odd_bytes(bytes: &[u8]) -> usize {
    let mut last = b' ';
    let mut count = 0;
    for chunk in bytes.utf8_chunks() {
        for &byte in chunk.valid().as_bytes() {
            let odd = match byte {
                0 => last == 0,
                b'\x07'..=b'\r' | b'\x1b' => false,
                _ => byte.is_ascii_control(),
            };
            count += usize::from(odd);
            last = byte;
        }
        count += chunk.invalid().len();
        last = chunk.invalid().last().copied().unwrap_or(last);
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(start: &[u8], expected: bool) {
        assert_eq!(is_unreadable(start), expected, "{}", start.escape_ascii());
    }

    #[test]
    fn text_with_nul_bytes_is_readable() {
        check(b"", false);
        check(b"a\0b\n", false);
        check(b"a\0b\0c\0", false);
        check(b"\0", false);
        check(b"\xff\xfe\xfd", false);
        check("n\u{e4}\0\u{6f22}\0".as_bytes(), false);
        check(b"\x1b[31mred\x1b[m\r\n\0\0\0\0\0\0\0\0\0\0", false);
    }

    #[test]
    fn data_is_not_readable() {
        check(b"\0\0", true);
        check(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0>\0", true);
        check(
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\x06\0\0\0\x1f\xf3\xff",
            true,
        );
        check(
            b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\xe7",
            true,
        );
    }
}
