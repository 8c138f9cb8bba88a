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
        // UTF-8 but for some bytes.
        (b"n\xc3\xa9 \xe9 x", b"n\xc3\xa9 \xe9 \xc3\xbc"),
        (b"\xef\xbb\xbf\xff\xfe x", b"\xef\xbb\xbf\xff\xfe \xc3\xbc"),
    ] {
        assert_eq!(
            replaced(bytes, "x", "\u{fc}"),
            expected,
            "{}",
            bytes.escape_ascii()
        );
    }
}

/// The bytes of a file after an edit, or the reason why there are none.
fn edited(bytes: &[u8], old: &str, new: &str) -> Result<String, String> {
    let file = FileText::decode(bytes).map_err(|error| error.to_string())?;
    let edit = crate::Edit {
        old: old.to_owned(),
        new: new.to_owned(),
        all: true,
    };
    let edited = crate::apply(&file, &[edit]).map_err(|error| error.to_string())?;
    let bytes = edited.file.encode().map_err(|error| error.to_string())?;
    Ok(bytes.escape_ascii().to_string())
}

#[test]
fn a_byte_that_is_no_utf8_is_kept_moved_or_left_out() {
    let check = |bytes: &[u8], old: &str, new: &str, expected: &str| {
        let found = edited(bytes, old, new);
        assert_eq!(found.as_deref(), Ok(expected), "{old:?} {new:?}");
    };
    let name = b"\xc3\xa9 cat\xe9 9\n";
    check(
        name,
        "cat\u{fffd}E9",
        "un cat\u{fffd}E9",
        "\\xc3\\xa9 un cat\\xe9 9\\n",
    );
    check(
        name,
        "cat\u{fffd}E9",
        "\u{fffd}E9\u{fffd}E9",
        "\\xc3\\xa9 \\xe9\\xe9 9\\n",
    );
    check(
        name,
        "cat\u{fffd}E9",
        "cat\u{e9}",
        "\\xc3\\xa9 cat\\xc3\\xa9 9\\n",
    );
    check(name, "t\u{fffd}E9", "t", "\\xc3\\xa9 cat 9\\n");
    // The digits of an escape are no text of the file.
    check(name, "9", "8", "\\xc3\\xa9 cat\\xe9 8\\n");
    check(
        name,
        "\u{e9} ",
        "\u{2713} ",
        "\\xe2\\x9c\\x93 cat\\xe9 9\\n",
    );
    // A replacement character of the file stays one.
    let both = b"\xc3\xa9 \xef\xbf\xbd\xff x";
    check(both, "x", "y", "\\xc3\\xa9 \\xef\\xbf\\xbd\\xff y");
    check(
        "\u{fffd}E9 x".as_bytes(),
        "\u{fffd}E9 x",
        "\u{fffd}E8",
        "\\xef\\xbf\\xbdE8",
    );
    for (old, new) in [
        ("cat\u{fffd}E9", "cat\u{fffd}"),
        ("cat\u{fffd}E9", "cat\u{fffd}E"),
        ("cat\u{fffd}E9", "cat\u{fffd}e9"),
        ("cat\u{fffd}E9", "cat\u{fffd}41"),
        ("9\n", "\u{fffd}\n"),
    ] {
        let why = edited(name, old, new).unwrap_err();
        assert!(
            why.contains("needs the two digits behind it"),
            "{old:?} {new:?} {why}"
        );
    }
    let why = edited(name, "cat\u{fffd}", "x").unwrap_err();
    assert!(why.contains("cat\u{fffd}E9 9"), "{why}");
}

#[test]
fn a_file_in_an_unknown_encoding_takes_ascii_where_that_breaks_nothing() {
    let kept = |bytes: &[u8], old: &str, new: &str, expected: &[u8]| {
        let expected = expected.escape_ascii().to_string();
        assert_eq!(edited(bytes, old, new), Ok(expected), "{old:?} {new:?}");
    };
    let refused = |bytes: &[u8], old: &str, new: &str, expected: &str| {
        let why = edited(bytes, old, new).unwrap_err();
        assert!(why.contains(expected), "{old:?} {new:?}: {why}");
        assert!(why.contains("right 'fileencoding'"), "{why}");
    };
    let latin1 = b"Gr\xfc\xdfe, M\xfcller (\xe9t\xe9)\n";
    kept(
        latin1,
        "Gr",
        "Viele Gr",
        b"Viele Gr\xfc\xdfe, M\xfcller (\xe9t\xe9)\n",
    );
    kept(
        latin1,
        "ller ",
        "ller, ",
        b"Gr\xfc\xdfe, M\xfcller, (\xe9t\xe9)\n",
    );
    kept(
        latin1,
        "\u{fffd}E9t\u{fffd}E9",
        "summer",
        b"Gr\xfc\xdfe, M\xfcller (summer)\n",
    );
    kept(
        latin1,
        "\u{fffd}E9)",
        "\u{fffd}E9s)",
        b"Gr\xfc\xdfe, M\xfcller (\xe9t\xe9s)\n",
    );
    kept(
        latin1,
        "\n",
        "\nM\u{fffd}FCller\n",
        b"Gr\xfc\xdfe, M\xfcller (\xe9t\xe9)\nM\xfcller\n",
    );
    refused(latin1, "(", "\u{e9}", "so `\u{e9}` cannot be added");
    refused(
        latin1,
        "ller",
        "hle",
        "may break a character at `\u{fffd}FCl`",
    );
    refused(
        latin1,
        "\n",
        " \u{fffd}D6\n",
        "may break a character at `\u{fffd}D6`",
    );
    // Shift-JIS: the second byte of the first character is a backslash.
    let sjis = b"\x95\x5c \x94\x5c\x97\xcd C:\\ \x95\x7c\n";
    kept(
        sjis,
        "C:",
        "D:",
        b"\x95\x5c \x94\x5c\x97\xcd D:\\ \x95\x7c\n",
    );
    refused(sjis, "\\", "|", "may break a character at `\u{fffd}95\\");
    refused(sjis, "\\ ", "", "may break a character");
    // GB18030: four bytes are one character.
    let gb18030 = b"a \x81\x30\x81\x31 1\n";
    kept(gb18030, "a ", "b ", b"b \x81\x30\x81\x31 1\n");
    refused(gb18030, "0", "2", "may break a character");
    refused(gb18030, "1", "2", "may break a character");
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
        (&b"a\0b"[..], NotText::Nul),
        (b"a\0\n\0", NotText::Nul),
        (b"\x89PNG\r\n\x1a\n", NotText::Binary),
        (b"\xff\xfea", NotText::Utf16),
        (b"\xff\xfe\0\xd8a\0", NotText::Utf16),
    ] {
        assert_eq!(FileText::decode(bytes), Err(expected));
    }
}

#[test]
fn a_reader_of_escapes_is_told_of_them() {
    let check = |bytes: &[u8], expected: &str| {
        let note = FileText::decode(bytes).unwrap().encoding_note();
        assert_eq!(note.unwrap_or_default(), expected);
    };
    check(b"a\xc3\xa9 \xef\xbf\xbd", "");
    check(
        b"a\xc3\xa9 \xe9",
        "one byte is no UTF-8: \u{fffd} and two digits stand for it",
    );
    check(
        b"\xef\xbb\xbf\xe9\xe9",
        "2 bytes are no UTF-8: \u{fffd} and two digits stand for each",
    );
    check(
        b"\xe9t\xe9",
        "it is not UTF-8, and its encoding is not known: \u{fffd} and two digits stand for each byte that is not ASCII",
    );
}

const PIECES: &[&[u8]] = &[
    b"\xc3\xa9",
    b"\xe2\x9c\x93",
    b"\xe9",
    b"\xef\xbf\xbd",
    b"9",
    b"E",
];

proptest! {
    #[test]
    fn an_edit_of_ascii_changes_no_byte_around_it(
        start in "[a9E\n]{0,4}", pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..8), new in "[9E\u{e9}]{0,3}"
    ) {
        let before = [start.as_bytes(), "\u{2713}\u{2713}\u{2713}\u{2713}\u{2713}\u{2713}\u{2713}\u{2713}".as_bytes(), b"OLD"].concat();
        let whole = [&before[..], &pieces.concat()].concat();
        let expected = [&before[..before.len() - 3], new.as_bytes(), &pieces.concat()].concat();
        prop_assert_eq!(edited(&whole, "OLD", &new), Ok(expected.escape_ascii().to_string()));
        // Digits alone are found where the file has them.
        let expected: Vec<_> = whole.iter().map(|it| if *it == b'9' { b'8' } else { *it }).collect();
        if expected != whole {
            prop_assert_eq!(edited(&whole, "9", "8"), Ok(expected.escape_ascii().to_string()));
        }
    }

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
