use super::*;

use proptest::prelude::*;

fn lines(pieces: &[&[u8]], encoding: Encoding) -> Vec<Line> {
    let mut text = LineDecoder::new(encoding);
    for piece in pieces {
        text.feed(piece);
    }
    text.finish();
    let mut lines = text.take();
    lines.extend(text.rest());
    lines
}

fn check(input: &[u8], expected: &str) {
    let lines = lines(&[input], Encoding::of(input));
    let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(
        texts.join("\n"),
        expected,
        "{:?}",
        input.escape_ascii().to_string()
    );
}

#[test]
fn plain_text_stays() {
    check(b"", "");
    check(b"hello\n", "hello");
    check(b"a\n\nb", "a\n\nb");
    check("naïve 漢字 🎉\n".as_bytes(), "naïve 漢字 🎉");
    check(b"a\tb", "a\tb");
}

#[test]
fn broken_utf8_is_replaced() {
    check(b"\xffok", "\u{fffd}ok");
    check(b"a\xe6\xbc", "a\u{fffd}");
    check(b"\xe6\xbcx\xe6\xbc\xa2", "\u{fffd}x漢");
    check(b"\xc0\xaf", "\u{fffd}\u{fffd}");
}

#[test]
fn carriage_returns_and_backspaces_overwrite() {
    check(b"one\r\ntwo\r\n", "one\ntwo");
    check(b" 10%\r 50%\r100%\n", "100%");
    check(b"hello\rab", "abllo");
    check(b"hello\r\x1b[Kab", "ab");
    check(b"hello\x1b[2K\rab", "ab");
    check(b"hello\x1b[3D\x1b[Kp", "hep");
    check(b"abc\x1b[1Kd", "   d");
    check(b"N\x08Na\x08a", "Na");
    check(b"\x08\x08x", "x");
    check(b"a\x1b[5Gb", "a   b");
    check(b"a\x1b[2Cb", "a  b");
}

#[test]
fn sequences_print_nothing() {
    check(b"\x1b[1;31mred\x1b[0m", "red");
    check(b"\x1b]0;title\x07text", "text");
    check(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link");
    check(b"\x1bPq#0;2\x1b\\after", "after");
    check(b"\x1b(Bx\x1b=y\x1b7z", "xyz");
    check(b"\x1b[?25l\x1b[2J\x1b[Hx", "x");
    check("\u{9b}31mx\u{9d}title\u{9c}y".as_bytes(), "xy");
    check(b"a\x00\x07\x0bb", "ab");
    check(b"\x1b[12\x18x\x1b]0;title\x1ay", "xy");
}

#[test]
fn a_newline_ends_any_sequence() {
    check(b"\x1b]0;never closed\nshown", "\nshown");
    check(b"\x1b[12\nshown", "\nshown");
    check(b"\x1bPdata\nshown", "\nshown");
}

#[test]
fn utf16_is_text() {
    let mut little = vec![0xff, 0xfe];
    little.extend("hé🎉\nx".encode_utf16().flat_map(u16::to_le_bytes));
    check(&little, "hé🎉\nx");
    let mut big = vec![0xfe, 0xff];
    big.extend("hé🎉\r\nx".encode_utf16().flat_map(u16::to_be_bytes));
    check(&big, "hé🎉\nx");
    check(b"\xff\xfeA\x00B", "A\u{fffd}");
}

#[test]
fn styles_are_kept_with_their_place() {
    let lines = lines(
        &[b"a\x1b[1;31mb\xc3\xa9\x1b[0mc\n\x1b[32mnext\nstill"],
        Encoding::Utf8,
    );
    let spans: Vec<Vec<_>> = lines
        .iter()
        .map(|line| {
            line.spans
                .iter()
                .map(|it| (it.start, it.end, it.sgr.parameters()))
                .collect()
        })
        .collect();
    assert_eq!(spans[0], [(1, 4, "1;31".to_owned())]);
    assert_eq!(spans[1], [(0, 4, "32".to_owned())]);
    assert_eq!(spans[2], [(0, 5, "32".to_owned())]);
}

#[test]
fn what_only_looks_like_a_style_is_none() {
    // What an editor sends to a terminal's keyboard, and more parameters than are kept.
    let many = "31;".repeat(MAX_PARAMETER_BYTES);
    for sequence in ["\x1b[>4;1m", "\x1b[?4m", &format!("\x1b[{many}31m")] {
        let lines = lines(&[sequence.as_bytes(), b"text"], Encoding::Utf8);
        assert_eq!(lines[0].spans, [], "{sequence:?}");
    }
}

#[test]
fn a_line_keeps_a_bounded_length() {
    let mut text = LineDecoder::new(Encoding::Utf8);
    for _ in 0..100 {
        text.feed(&[b'x'; 65_536]);
        text.feed("漢".repeat(100).as_bytes());
    }
    assert_eq!(text.cells.len(), MAX_LINE_CHARS);
    text.feed(b"\x1b[999999999C\x1b]");
    text.feed(&[b'y'; 1 << 20]);
    assert!(text.cells.capacity() <= 2 * MAX_LINE_CHARS && text.partial.capacity() < 64);
    text.feed(b"\nnext\n");
    let lines = text.take();
    // All but the cursor's movement and the bytes of a sequence that never ended.
    let lost = 100 * (65_536 + 100) - MAX_LINE_CHARS;
    let told = format!("… {lost} more characters");
    assert_eq!(
        lines[0].text.chars().count(),
        MAX_LINE_CHARS + told.chars().count()
    );
    assert!(lines[0].text.ends_with(&told));
    assert_eq!(lines[1].text, "next");
}

#[test]
fn what_a_line_lost_is_told_at_its_end_and_while_it_is_lost() {
    let long = "x".repeat(MAX_LINE_CHARS);
    check(
        format!("{long}yy").as_bytes(),
        &format!("{long}… 2 more characters"),
    );
    check(format!("{long}yy\r\x1b[Kz\n").as_bytes(), "z");
    let again = format!("{long}yyy\r{long}yy");
    check(again.as_bytes(), &format!("{long}… 3 more characters"));
    let mut text = LineDecoder::new(Encoding::Utf8);
    text.feed(format!("{long}yy").as_bytes());
    assert_eq!(text.rest().unwrap().text, long);
}

#[test]
fn fifty_thousand_wide_characters_stay_whole() {
    let wide = "漢".repeat(50_000);
    check(wide.as_bytes(), &wide);
}

/// Bytes in which the bytes that the normaliser treats specially are frequent.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let special = prop::sample::select(vec![
        &b"\x1b["[..],
        b"\x1b]",
        b"\x1bP",
        b"\x1b\\",
        b"\x07",
        b"\r",
        b"\n",
        b"\x08",
        b"31m",
        b"2K",
        b"9D",
        b"\xe6\xbc\xa2",
        b"\xe6",
        b"\xf0\x9f",
        b"\xff\xfe",
        b"\x00",
        b"word",
        b"\x9b",
        b";",
    ])
    .prop_map(<[u8]>::to_vec);
    let any = prop::collection::vec(any::<u8>(), 0..8);
    prop::collection::vec(prop_oneof![3 => special, 1 => any], 0..60).prop_map(|it| it.concat())
}

proptest! {
    #[test]
    fn any_cut_gives_the_same_lines(bytes in stream(), cuts in prop::collection::vec(0.0..1.0f64, 0..8)) {
        let whole = lines(&[&bytes], Encoding::of(&bytes));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a share of a short length")]
        let mut at: Vec<usize> = cuts.iter().map(|cut| (cut * bytes.len() as f64) as usize).collect();
        at.extend([0, bytes.len()]);
        at.sort_unstable();
        let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(&lines(&pieces, Encoding::of(&bytes)), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&lines(&single, Encoding::of(&bytes)), &whole);
    }

    #[test]
    fn every_newline_ends_a_line_and_every_byte_is_counted(bytes in stream()) {
        prop_assume!(Encoding::of(&bytes) == Encoding::Utf8);
        let mut text = LineDecoder::new(Encoding::Utf8);
        text.feed(&bytes);
        let lines = text.take();
        let newlines = bytes.iter().filter(|byte| **byte == b'\n').count();
        prop_assert_eq!(lines.len(), newlines);
        let ended = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        prop_assert_eq!(lines.iter().map(|line| line.raw).sum::<u64>(), ended as u64);
    }
}
