use proptest::prelude::*;

use super::*;

/// Replaces the first `old` of a file by `new`.
fn replaced(bytes: &[u8], old: &str, new: &str) -> Vec<u8> {
    let mut file = FileText::decode(bytes).unwrap();
    let at = file.as_str().find(old).unwrap();
    file.replace(at..at + old.len(), new);
    file.encode().unwrap()
}

#[test]
fn a_file_keeps_its_encoding_and_its_mark() {
    for (bytes, expected) in [
        (&b"n\xc3\xa9 x"[..], &b"n\xc3\xa9 \xc3\xbc"[..]),
        (b"\xef\xbb\xbfa x", b"\xef\xbb\xbfa \xc3\xbc"),
        (b"\xff\xfea\0 \0x\0", b"\xff\xfea\0 \0\xfc\0"),
        (b"\xfe\xff\0a\0 \0x", b"\xfe\xff\0a\0 \0\xfc"),
        (b"n\xe9 x", b"n\xe9 \xfc"),
    ] {
        assert_eq!(
            replaced(bytes, "x", "\u{fc}"),
            expected,
            "{}",
            bytes.escape_ascii()
        );
    }
}

#[test]
fn a_file_keeps_its_line_breaks() {
    for (bytes, old, new, expected) in [
        ("a\nb\n", "b", "b\nc", "a\nb\nc\n"),
        ("a\r\nb\r\n", "b", "b\nc", "a\r\nb\r\nc\r\n"),
        ("a\r\nb\r\n", "b", "b\r\nc", "a\r\nb\r\nc\r\n"),
        ("a\nb\n", "b", "b\r\nc", "a\nb\nc\n"),
        // A new line gets the break of the line where the replaced text starts.
        ("a\r\nb\nc\r\n", "b\n", "b\nx\n", "a\r\nb\nx\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\n", "a\nx\n", "a\r\nx\r\nb\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc", "a\nx\nc", "a\r\nx\nc\r\n"),
        ("a\nb\r\n", "a\n", "", "b\r\n"),
        ("a\r\nb", "b", "c\nd", "a\r\nc\r\nd"),
        ("a", "a", "b\nc", "b\nc"),
        ("a\r\r\nb\r\n", "b", "c", "a\r\r\nc\r\n"),
        ("a\rb\n", "b", "c", "a\rc\n"),
    ] {
        let result = replaced(bytes.as_bytes(), old, new);
        assert_eq!(
            result.escape_ascii().to_string(),
            expected.as_bytes().escape_ascii().to_string(),
            "{bytes:?} {old:?} {new:?}"
        );
    }
}

#[test]
fn a_rewritten_file_keeps_its_form() {
    for (bytes, new, expected) in [
        ("a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n"),
        ("a\r\nb\n", "a\nx\nb\n", "a\r\nx\nb\n"),
        ("a\n", "x", "x\n"),
        ("a", "x\n", "x"),
        ("", "x\n", "x\n"),
        ("", "x", "x"),
        ("a\n", "", ""),
    ] {
        let mut file = FileText::decode(bytes.as_bytes()).unwrap();
        file.rewrite(new);
        assert_eq!(
            file.encode().unwrap(),
            expected.as_bytes(),
            "{bytes:?} {new:?}"
        );
    }
}

#[test]
fn what_is_not_text_is_refused() {
    for (bytes, expected) in [
        (&b"a\0b"[..], NotText::Binary),
        (b"\x89PNG\r\n\x1a\n", NotText::Binary),
        (b"\xff\xfea", NotText::Utf16),
        (b"\xff\xfe\0\xd8a\0", NotText::Utf16),
    ] {
        assert_eq!(FileText::decode(bytes), Err(expected));
    }
    let mut latin1 = FileText::decode(b"\xe9").unwrap();
    latin1.rewrite("\u{20ac}");
    assert_eq!(latin1.encode(), Err(NotText::NotLatin1('\u{20ac}')));
}

proptest! {
    #[test]
    fn bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(file) = FileText::decode(&bytes) {
            prop_assert_eq!(file.encode().unwrap(), bytes);
        }
    }

    #[test]
    fn a_replacement_changes_the_range_alone(
        text in "[ab\r\n]{0,24}", new in "[ab\n]{0,8}", (from, to) in (0..25_usize, 0..25_usize)
    ) {
        let mut file = FileText::decode(text.as_bytes()).unwrap();
        let length = file.as_str().len();
        let (from, to) = (from.min(to).min(length), from.max(to).min(length));
        let mut expected = file.as_str().to_owned();
        expected.replace_range(from..to, &new);
        let before = file.clone();
        file.replace(from..to, &new);
        prop_assert_eq!(file.as_str(), expected.as_str());
        let (old, new) = (before.encode().unwrap(), file.encode().unwrap());
        let kept = before.breaks.restore(&before.text[..from]);
        prop_assert!(new.starts_with(kept.as_bytes()));
        let rest = length - to;
        let tail = |file: &FileText| file.breaks.restore(&file.text).into_owned();
        let same = tail(&before).chars().rev().zip(tail(&file).chars().rev()).take_while(|(a, b)| a == b).count();
        prop_assert!(same >= rest, "{old:?} {new:?}");
    }
}
