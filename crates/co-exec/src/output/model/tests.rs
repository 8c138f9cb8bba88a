use super::*;
use crate::output::capture::{MIN_HEAD_BYTES, MIN_TAIL_BYTES};

fn ends(stream: &[u8]) -> HeadAndTail {
    let lines = stream.iter().filter(|byte| **byte == b'\n').count() as u64;
    let open = stream.last().is_some_and(|byte| *byte != b'\n');
    let (head, tail) = stream.split_at(stream.len().min(MIN_HEAD_BYTES));
    let from = tail.len().saturating_sub(MIN_TAIL_BYTES);
    let line = if from == 0 {
        0
    } else {
        tail[from..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1)
    };
    HeadAndTail {
        head: head.to_vec(),
        tail: tail[from + line..].to_vec(),
        bytes: stream.len() as u64,
        lines: lines + u64::from(open),
        binary: false,
        encoding: Encoding::of(stream),
    }
}

fn check(stream: &str, expected: &str) {
    assert_eq!(view(&ends(stream.as_bytes()), 30_000, None).text, expected);
}

/// Returns the numbers in the line about left out output, and the text around it.
fn left_out(text: &str) -> (u64, u64, &str, &str) {
    let at = text
        .lines()
        .position(|line| line.contains("bytes left out"))
        .unwrap();
    let line = text.lines().nth(at).unwrap();
    let (front, back) = text.split_once(line).unwrap();
    let numbers: Vec<u64> = line
        .split([' ', '['])
        .filter_map(|word| word.parse().ok())
        .collect();
    (
        numbers[0],
        numbers[1],
        front,
        back.strip_prefix('\n').unwrap(),
    )
}

#[test]
fn short_output_is_what_it_is() {
    check("", "");
    check("hello\n", "hello\n");
    check("hi", "hi");
    check("a\r\nb\x1b[1mc\x1b[m", "a\nbc");
}

#[test]
fn long_output_is_cut_at_line_ends_and_counted() {
    let words = ["ant", "bee", "cat", "dog"];
    for count in [2_000_u64, 6_000, 100_000] {
        let stream: String = (0..count)
            .map(|n| format!("{n} {}\n", words[n as usize % 4]))
            .collect();
        let view = view(
            &ends(stream.as_bytes()),
            10_000,
            Some("all of it: /state/spill/1.out"),
        );
        assert!(view.text.len() <= 10_000 && view.text.len() > 9_800);
        let (lines, bytes, front, back) = left_out(&view.text);
        assert_eq!(
            view.left_out.unwrap(),
            format!("co left out {lines} lines, {bytes} bytes; all of it: /state/spill/1.out")
        );
        assert!(stream.starts_with(front) && stream.ends_with(back));
        let shown = front.lines().count() + back.lines().count();
        assert_eq!(lines, count - shown as u64);
        assert_eq!(bytes, (stream.len() - front.len() - back.len()) as u64);
        assert!(
            front.len() > 1_900 && front.len() <= 2_000,
            "{}",
            front.len()
        );
    }
}

#[test]
fn a_line_without_end_is_cut_between_two_characters() {
    for (character, size) in [("é", 40_000), ("é", 200_000), ("漢", 50_000)] {
        let stream = character.repeat(size);
        let view = view(&ends(stream.as_bytes()), 10_000, None);
        assert!(view.text.len() <= 10_000, "{}", view.text.len());
        assert!(!view.text.contains(char::REPLACEMENT_CHARACTER));
        let (_, bytes, front, back) = left_out(&view.text);
        let shown = front.trim_end().len() + back.len();
        assert_eq!(bytes, (stream.len() - shown) as u64);
    }
}

#[test]
fn runs_alike_but_for_digits_are_folded() {
    let stream: String = (1..=100).map(|n| format!("Fetched {n} of 100\n")).collect();
    check(
        &format!("start\n{stream}end\n"),
        "start\nFetched 1 of 100\nFetched 2 of 100\n[96 more lines alike but for digits left out]\n\
         Fetched 99 of 100\nFetched 100 of 100\nend\n",
    );
    check(
        &"y\n".repeat(20),
        "y\ny\n[16 more lines alike but for digits left out]\ny\ny\n",
    );
    check(
        &"y\n".repeat(MIN_SIMILAR_LINES),
        "y\ny\n[12 more lines alike but for digits left out]\ny\ny\n",
    );
}

#[test]
fn a_line_counts_all_that_was_left_out() {
    let words = ["ant", "bee", "cat", "dog"];
    let alike: String = (0..100).map(|n| format!("row {n:03}\n")).collect();
    let rest: String = (0..2_000)
        .map(|n| format!("{n:04} {}\n", words[n % 4]))
        .collect();
    let short = view(&ends(alike.as_bytes()), 10_000, None);
    assert_eq!(short.left_out.unwrap(), "co left out 96 lines, 768 bytes");
    let long = view(&ends((alike + &rest).as_bytes()), 10_000, None);
    let shown = long.text.lines().filter(|it| !it.starts_with('[')).count();
    let (lines, ..) = left_out(&long.text);
    assert!(long.text.contains("[96 more lines"), "{}", long.text);
    assert_eq!(lines as usize + 96 + shown, 2_100);
    assert_eq!(
        long.left_out.unwrap(),
        format!(
            "co left out {} lines, {} bytes",
            lines + 96,
            lines * 9 + 96 * 8
        )
    );
}

#[test]
fn whole_output_has_no_line() {
    assert_eq!(view(&ends(b"a\nb"), 10_000, None).left_out, None);
}

#[test]
fn numbers_are_data_and_short_runs_stay() {
    let numbers: String = (1..=100).map(|n| format!("{n}\n")).collect();
    check(&numbers, &numbers);
    let short: String = (1..=15).map(|n| format!("row {n}\n")).collect();
    check(&short, &short);
}

#[test]
fn binary_output_is_named_with_its_size() {
    let ends = HeadAndTail {
        binary: true,
        ..ends(b"a\0b")
    };
    let view = view(&ends, 1_000, Some("all of it: /1.out"));
    assert_eq!(view.text, "");
    assert_eq!(
        view.left_out.unwrap(),
        "binary output, 3 bytes; all of it: /1.out"
    );
}
